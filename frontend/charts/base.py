"""What every chart is: facts in, and a figure, a table and a caption out. All three say the same numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from frontend.charts.theme import FONT, PAPERS, Tone
from worker.engine.results import EVERYONE, CostRow

Figure = dict[str, Any]
"""A Plotly figure as plain JSON: ``data`` and ``layout``."""

MOST_GROUPS = 8
MOST_TRACES = 24
TAG = "audit-only"


@dataclass(frozen=True)
class CostFacts:
    """The rows of ``/audits/{id}/costs`` for one metric and interval, with the words that go with them.

    ``direction`` is the metric's: higher or lower is better, or None, where a difference is a *change*, not a cost.
    ``percent`` says that values are shares, shown as percent and their differences as percentage points.
    """

    rows: tuple[CostRow, ...]
    metric: str
    metric_title: str
    direction: str | None
    percent: bool
    interval: str
    method_titles: Mapping[str, str] = field(default_factory=dict)
    seeds_planned: int = 0
    sentence: str = ""

    @property
    def noun(self) -> str:
        return "change" if self.direction is None else "cost"

    @property
    def unit(self) -> str:
        return "points" if self.percent else "nats"

    @property
    def scale(self) -> float:
        return 100.0 if self.percent else 1.0

    def method_title(self, method: str) -> str:
        return self.method_titles.get(method, method)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that have a cost, in the order of their rows."""
        return tuple(dict.fromkeys(row.method for row in self.rows if row.epsilon_asked is not None))

    def of(self, method: str, group: str) -> tuple[CostRow, ...]:
        """Rows of one method and group, strongest privacy first."""
        chosen = [r for r in self.rows if r.method == method and r.group == group and r.epsilon_asked is not None]
        return tuple(sorted(chosen, key=lambda row: row.epsilon_asked or 0.0))


@dataclass(frozen=True)
class View:
    """What a reader chose to see; it lives in the URL. ``groups`` are at most eight keys, everyone first.

    ``family`` are all groups made by the chosen attributes, for views that hold more; empty means every group.
    """

    method: str
    groups: tuple[str, ...]
    family: tuple[str, ...] = ()
    group: str | None = None
    epsilon: float | None = None
    absolute: bool = False
    tone: Tone = "light"
    narrow: bool = False


@dataclass(frozen=True)
class Cell:
    """One cell: what is read, and what it is sorted by."""

    text: str
    value: float | str | None = None
    number: bool = False


@dataclass(frozen=True)
class Table:
    """The twin of a chart. ``keys`` link rows to marks: ``method|epsilon asked|group``."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    keys: tuple[str, ...]


class Chart(Protocol):
    """One file in this folder and one line in ``CHARTS``."""

    @property
    def key(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def help(self) -> str: ...

    def figure(self, facts: CostFacts, view: View) -> Figure:
        """The picture, at most 24 traces."""

    def table(self, facts: CostFacts, view: View) -> Table:
        """The same numbers as rows."""

    def caption(self, facts: CostFacts, view: View) -> str:
        """How to read it, in plain sentences made from the facts."""


def mark_key(row: CostRow) -> str:
    """What links a mark to its row in a table."""
    epsilon = "none" if row.epsilon_asked is None else f"{row.epsilon_asked:g}"
    return f"{row.method}|{epsilon}|{row.group}"


def hollow(row: CostRow) -> bool:
    """Whether a number must not be judged by itself: too few rows, as its reason says."""
    return row.reason is not None and ("to judge" in row.reason or "cannot be computed" in row.reason)


def plain(text: str, most: int = 200) -> str:
    """Foreign text made harmless for Plotly, which reads a little HTML in labels, and cut to ``most`` characters."""
    flat = " ".join(text.split())
    short = flat if len(flat) <= most else flat[: most - 1] + "…"
    return html.escape(short, quote=False)


def brief(text: str, most: int) -> str:
    """As ``plain``, but cut in the middle: names of groups differ at their end."""
    flat = " ".join(text.split())
    if len(flat) > most:
        tail = most * 2 // 3
        flat = f"{flat[: most - tail - 1]}…{flat[-tail:]}"
    return html.escape(flat, quote=False)


def signed(value: float | None, digits: int = 1) -> str:
    """A difference with its sign, a true minus, and never a minus zero."""
    if value is None:
        return "—"
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0.0:
        return text
    return ("+" if value > 0 else "−") + text


def digits_of(facts: CostFacts) -> int:
    """Decimals of a printed number: points have one, nats three."""
    return 1 if facts.percent else 3


def epsilon_text(value: float | None) -> str:
    """Epsilon to three significant figures, rounded up as a claim must be; ``no DP`` where there is none."""
    if value is None:
        return "no DP"
    from math import ceil, floor, log10

    if value <= 0:
        return "0"
    places = 2 - floor(log10(value))
    factor = 10.0**places
    text = f"{ceil(round(value * factor, 6)) / factor:.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown_groups(facts: CostFacts, groups: tuple[str, ...]) -> tuple[str, ...]:
    """At most eight groups for one panel; everyone, the reference, always first if it is there."""
    present = tuple(dict.fromkeys(row.group for row in facts.rows))
    wanted = [key for key in (groups or present) if key in present and key != EVERYONE]
    reference = (EVERYONE,) if EVERYONE in present else ()
    return (*reference, *wanted[: MOST_GROUPS - len(reference)])


def quiet_layout(tone: Tone, height: int) -> dict[str, Any]:
    """Layout that all charts share: no ground, one family, no legend, no bar of buttons' worth of margins."""
    paper = PAPERS[tone]
    return {
        "paper_bgcolor": paper.paper,
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13, "color": paper.ink},
        "height": height,
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "hoverlabel": {
            "bgcolor": paper.paper,
            "bordercolor": paper.edge,
            "align": "left",
            "font": {"family": FONT, "size": 13, "color": paper.ink},
        },
    }


LEGEND_ROW = 26
"""Pixels of one row of a legend."""


def legend_below(layout: dict[str, Any], entries: int, *, narrow: bool) -> None:
    """A legend under the axis, with as much more height as its rows need, so that it covers nothing."""
    rows = entries if narrow else -(-entries // 3)
    margin, inside = layout["margin"], layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
    layout["showlegend"] = True
    layout["legend"] = {"orientation": "h", "x": 0, "y": -margin["b"] / inside, "yanchor": "top"}
    layout["height"] += rows * LEGEND_ROW
    layout["margin"] = margin | {"b": margin["b"] + rows * LEGEND_ROW}
