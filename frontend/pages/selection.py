"""What a reader chose on an audit's page. It lives in the URL and is shared by all charts and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from frontend.charts.base import MOST_GROUPS, CostFacts, View
from frontend.charts.theme import Tone
from worker.engine import catalogue
from worker.engine.facts.costs import INTERVALS, Interval, cost_rows
from worker.engine.facts.grid import attribute_set
from worker.engine.facts.headline import headline
from worker.engine.facts.marks import marked
from worker.engine.metrics.base import Metric
from worker.engine.results import EVERYONE, AuditFacts, GroupFacts

INTERVAL_WORDS: dict[str, str] = {"both": "rows and seeds", "sampling": "rows", "seeds": "seeds"}
VIEWS = (("cost", "Cost against no DP"), ("value", "The metric itself"))
FAVOURITE_EPSILON = 1.0
ALL = "*"
"""Groups by all attributes together."""


@dataclass(frozen=True)
class Asked:
    """The query of the page, checked: what is unknown falls back to what is usual."""

    metric: Metric
    interval: Interval
    method: str | None
    epsilon: float | None
    group: str | None
    by: str
    page: int
    absolute: bool

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        metrics = {metric.key: metric for metric in catalogue.METRICS}
        interval = next((key for key in INTERVALS if key == query.get("interval")), INTERVALS[0])
        return cls(
            metric=metrics.get(query.get("metric", ""), catalogue.METRICS[0]),
            interval=interval,
            method=query.get("method") or None,
            epsilon=_number(query.get("epsilon")),
            group=query.get("group") or None,
            by=query.get("by", ""),
            page=max(1, int(_number(query.get("page")) or 1)),
            absolute=query.get("view") == "value",
        )


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value < 1e6 else None


def titles() -> dict[str, str]:
    """Titles of all methods by key."""
    return {method.key: method.title for method in catalogue.METHODS}


@dataclass(frozen=True)
class Selection:
    """The choice met with the facts of one audit: only what exists can be chosen."""

    asked: Asked
    facts: CostFacts
    method: str | None
    epsilon: float | None
    group: str | None
    by: str
    groups: tuple[str, ...]
    pages: tuple[tuple[GroupFacts, ...], ...]
    page: int
    sets: tuple[str, ...]

    @classmethod
    def of(cls, audit: AuditFacts, query: Mapping[str, str]) -> Selection:
        asked = Asked.of(query)
        rows = tuple(cost_rows(audit, asked.metric, asked.interval, marked(audit)))
        methods = tuple(dict.fromkeys(row.method for row in rows if row.epsilon_asked is not None))
        method = asked.method if asked.method in methods else None
        said = headline(
            rows,
            asked.metric,
            titles(),
            seeds_planned=audit.seeds_planned,
            method=method,
            epsilon=asked.epsilon,
        )
        facts = CostFacts(
            rows=rows,
            metric=asked.metric.key,
            metric_title=asked.metric.title,
            direction=asked.metric.better,
            percent=asked.metric.unit == "points",
            interval=asked.interval,
            method_titles=titles(),
            seeds_planned=audit.seeds_planned,
            sentence=said,
        )
        sets = attribute_sets(audit.groups)
        by = asked.by if asked.by in sets else _usual_set(audit.groups, sets)
        group = asked.group if any(found.key == asked.group for found in audit.groups) else None
        pages = group_pages(audit.groups, by)
        page = _page_of(pages, group) if group else min(asked.page, len(pages))
        shown = (EVERYONE, *(found.key for found in pages[page - 1])) if pages else (EVERYONE,)
        epsilon = _nearest(rows, method or next(iter(methods), ""), asked.epsilon)
        return cls(asked, facts, method, epsilon, group, by, shown, pages, page, sets)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods with a panel: the chosen one, or all."""
        return (self.method,) if self.method else self.facts.methods

    def view(self, method: str, *, tone: Tone = "light", narrow: bool = False) -> View:
        """What a chart is asked to show."""
        return View(
            method=method,
            groups=self.groups,
            family=() if self.by == ALL else (EVERYONE, *(each.key for page in self.pages for each in page)),
            group=self.group,
            epsilon=self.epsilon,
            absolute=self.asked.absolute,
            tone=tone,
            narrow=narrow,
        )

    def query(self, **changes: Any) -> str:
        """This choice as a query string; what is usual is left out."""
        pairs: dict[str, Any] = {
            "metric": self.asked.metric.key if self.asked.metric is not catalogue.METRICS[0] else None,
            "interval": self.asked.interval if self.asked.interval != INTERVALS[0] else None,
            "method": self.method,
            "epsilon": f"{self.epsilon:g}" if self.asked.epsilon and self.epsilon else None,
            "group": self.group,
            "by": self.by if self.asked.by == self.by else None,
            "view": "value" if self.asked.absolute else None,
            "page": self.page if self.page > 1 else None,
        }
        return urlencode({key: value for key, value in (pairs | changes).items() if value is not None})


def attribute_sets(groups: tuple[GroupFacts, ...]) -> tuple[str, ...]:
    """The attributes that groups are made by, as keys; ``ALL`` comes first."""
    found = dict.fromkeys(set_of(group) for group in groups if group.key != EVERYONE)
    return (ALL, *found) if len(found) > 1 else (ALL,)


def set_of(group: GroupFacts) -> str:
    """Which attributes make this group."""
    return attribute_set(group.attributes)


def _usual_set(groups: tuple[GroupFacts, ...], sets: tuple[str, ...]) -> str:
    return ALL if len(groups) <= MOST_GROUPS or len(sets) < 2 else sets[1]


def group_pages(groups: tuple[GroupFacts, ...], by: str) -> tuple[tuple[GroupFacts, ...], ...]:
    """Groups for one panel at a time: everyone is in all of them, and takes one place."""
    chosen = [group for group in groups if group.key != EVERYONE and (by == ALL or set_of(group) == by)]
    at_once = MOST_GROUPS - 1
    return tuple(tuple(chosen[at : at + at_once]) for at in range(0, len(chosen), at_once))


def _page_of(pages: tuple[tuple[GroupFacts, ...], ...], group: str) -> int:
    found = (at for at, page in enumerate(pages, 1) if any(each.key == group for each in page))
    return next(found, 1)


def _nearest(rows: Any, method: str, epsilon: float | None) -> float | None:
    """The asked epsilon, or the one of the grid next to it; next to 1 where none was asked for."""
    from math import log

    grid = sorted({row.epsilon_asked for row in rows if row.method == method and row.epsilon_asked is not None})
    return min(grid, key=lambda value: abs(log(value / (epsilon or FAVOURITE_EPSILON))), default=None)
