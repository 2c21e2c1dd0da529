"""The sentence at the top of an audit, made from the same rows as its chart and table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from worker.engine.facts.costs import BASELINE
from worker.engine.metrics import reasons
from worker.engine.metrics.base import Metric
from worker.engine.results import EVERYONE, CostRow


@dataclass(frozen=True)
class _Words:
    metric: Metric
    titles: Mapping[str, str]

    def amount(self, value: float) -> str:
        """An absolute amount with its unit: ``6.1 points of accuracy``, ``0.041 nats of loss``."""
        return f"{self.number(value)} {self.metric.unit} of {self.metric.title.lower()}"

    def number(self, value: float) -> str:
        shown = f"{100 * value:.1f}" if self.metric.unit == "points" else f"{value:.3f}"
        return shown.lstrip("-") if float(shown) == 0 else shown


def shown_epsilon(epsilon: float) -> str:
    """Two significant figures, rounded up: ``0.5``, ``1``, ``3.5``."""
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    return f"{math.ceil(epsilon / step - 1e-3) * step:.6g}"


def headline(
    rows: Sequence[CostRow],
    metric: Metric,
    titles: Mapping[str, str],
    *,
    seeds_planned: int,
    method: str | None = None,
    epsilon: float | None = None,
) -> str:
    """Who pays most at one epsilon, in a sentence; or why nothing can be said yet.

    Only a group whose interval excludes 0 is said to pay. Where there is none, the sentence says that instead.

    Args:
        rows: from ``cost_rows``.
        titles: method titles by key.
        seeds_planned: how many seeds the audit will have; fewer finished ones are said.
        method, epsilon: the point to speak of (epsilon as asked); the first method, and the epsilon next to 1, if None.
    """
    words = _Words(metric, titles)
    known = [row for row in rows if row.method != BASELINE and row.cost is not None and row.epsilon_asked is not None]
    known = [row for row in known if method is None or row.method == method]
    if not known:
        return _nothing(rows)
    chosen = _nearest(known, known[0].method, epsilon if epsilon is not None else 1.0)
    everyone = next((row for row in chosen if row.group == EVERYONE), None)
    judged = [row for row in chosen if row.group != EVERYONE and _is_judged(row)]
    if not judged:
        few = "persons in the test part" if any("persons" in (row.reason or "") for row in chosen) else "test rows"
        return f"{_point(chosen[0], words)}: no group has enough {few} to be judged."
    sure = [row for row in judged if row.low is not None and row.high is not None and (row.low > 0 or row.high < 0)]
    paying = [row for row in sure if metric.better is None or (row.cost or 0.0) > 0]
    worst = max(paying or judged, key=lambda row: abs(row.cost or 0.0) if metric.better is None else (row.cost or 0.0))
    said = _cost(worst, everyone, words) if paying or worst.low is None else _unsure(worst, words)
    return f"{_point(worst, words)}{said}; {_seeds(worst, seeds_planned)}{_interval(worst, words)}."


def _nothing(rows: Sequence[CostRow]) -> str:
    """Why no cost is known: runs that diverged will never have one, the others may."""
    why = {row.reason: None for row in rows if row.method != BASELINE and row.group == EVERYONE}
    lost = [reason for reason in why if reason and "diverged" in reason]
    if lost and len(lost) == len(why):
        return f"No cost can be given: {lost[0]}. Ask again with a smaller learning rate."
    if why and not any(reason is None or reason == reasons.words(reasons.UNFINISHED) for reason in why):
        return f"No cost can be given: {next(iter(why))}."
    return "No private run has finished yet, so nothing can be said about its cost."


def _nearest(rows: Sequence[CostRow], method: str, epsilon: float) -> list[CostRow]:
    asked = sorted({row.epsilon_asked for row in rows if row.method == method and row.epsilon_asked is not None})
    nearest = min(asked, key=lambda value: abs(math.log(value / epsilon)))
    return [row for row in rows if row.method == method and row.epsilon_asked == nearest]


def _is_judged(row: CostRow) -> bool:
    return "to judge" not in (row.reason or "")


def _point(row: CostRow, words: _Words) -> str:
    epsilon = row.epsilon_spent if row.epsilon_spent is not None else row.epsilon_asked or 1.0
    return f"At epsilon {shown_epsilon(epsilon)}, {words.titles.get(row.method, row.method)}"


def _cost(row: CostRow, everyone: CostRow | None, words: _Words) -> str:
    cost = row.cost or 0.0
    if words.metric.better is None:
        verb = "raises" if cost >= 0 else "lowers"
        title = words.metric.title.lower()
        return f" {verb} the {title} of group {row.group_label} by {words.number(abs(cost))} {words.metric.unit}"
    if cost <= 0:
        return (
            f" costs no group anything on average: group {row.group_label}, the worst off, gains {words.amount(-cost)}"
        )
    text = f" costs group {row.group_label} {words.amount(cost)}"
    if everyone is not None and everyone.cost is not None:
        more = cost - everyone.cost
        shown = words.number(abs(more))
        same = float(shown) == 0
        text += ", as much as everyone" if same else f", {shown} {'more' if more >= 0 else 'less'} than everyone"
    return text


def _unsure(row: CostRow, words: _Words) -> str:
    """Where every interval includes 0, the largest estimate is mostly the smallest group's: no cost is claimed."""
    of = words.metric.title.lower()
    if words.metric.better is None:
        least = f"changes the {of} of no group by more than chance can explain"
        return f" {least}: the largest estimate is that of group {row.group_label}"
    if (row.cost or 0.0) < 0:
        return (
            f" costs no group more than chance can explain: even the worst off, group {row.group_label}, gains"
            f" {words.amount(-(row.cost or 0.0))} by estimate"
        )
    return (
        f" costs no group more than chance can explain: the largest estimate, {words.amount(row.cost or 0.0)},"
        f" is that of group {row.group_label}"
    )


def _seeds(row: CostRow, planned: int) -> str:
    noun = "seed" if row.seeds == 1 else "seeds"
    return f"{row.seeds} {noun}" if row.seeds >= planned else f"{row.seeds} of {planned} seeds so far"


def _interval(row: CostRow, words: _Words) -> str:
    if row.low is None or row.high is None:
        return ", no interval yet"
    span = f", 95 % interval {words.number(row.low)} to {words.number(row.high)}"
    span += "" if row.interval == "both" else f" ({'rows' if row.interval == 'sampling' else 'seeds'} only)"
    return span + (", which includes 0" if row.low <= 0 <= row.high else "")
