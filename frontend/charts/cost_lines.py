"""Costs as lines: heights, intervals, how far neighbours are set apart, and one range for all panels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import log10
from statistics import median

from frontend.charts.base import CostFacts, View
from frontend.charts.theme import MARKS
from worker.engine.results import CostRow

STEP_APART = 0.018
"""Decades by which neighbouring groups are set apart, so that whiskers do not hide each other."""
LONG_INTERVAL = 3.0
"""Intervals up to this many times the median one fit into the panel."""

Ends = tuple[float | None, float | None, float | None]
"""Height, lower end and upper end of an interval, in the unit of the axis."""


@dataclass(frozen=True)
class Line:
    """One group of a panel, ready to draw: heights are in points, or in the metric's own unit."""

    group: str
    label: str
    n: int
    mark: str
    rows: tuple[CostRow, ...]
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    @classmethod
    def of(cls, facts: CostFacts, view: View, group: str, at: int, count: int) -> Line:
        rows = tuple(row for row in facts.of(view.method, group) if row.epsilon_spent)
        nudge = 10 ** ((at - (count - 1) / 2) * step_apart(facts, count))
        ends = [ends_of(facts, view, row) for row in rows]
        return cls(
            group=group,
            label=rows[0].group_label if rows else group,
            n=rows[0].n if rows else 0,
            mark=MARKS[at % len(MARKS)],
            rows=rows,
            x=tuple((row.epsilon_spent or 0.0) * nudge for row in rows),
            y=tuple(height for height, _, _ in ends),
            low=tuple(low for _, low, _ in ends),
            high=tuple(high for _, _, high in ends),
        )

    @property
    def has_interval(self) -> bool:
        return sum(value is not None for value in self.low) > 1

    @property
    def first(self) -> tuple[float, float] | None:
        """Where the line starts at its strongest privacy."""
        return next(((x, y) for x, y in zip(self.x, self.y, strict=True) if y is not None), None)


def step_apart(facts: CostFacts, count: int) -> float:
    """Decades between neighbours: as far as usual, but never so far that the marks of two epsilons mix."""
    logs = sorted({log10(row.epsilon_spent) for row in facts.rows if row.epsilon_spent})
    gaps = [high - low for low, high in pairwise(logs) if high - low > 0.02]
    return min(STEP_APART, 0.6 * min(gaps, default=1.0) / max(count, 1))


def ends_of(facts: CostFacts, view: View, row: CostRow) -> tuple[float | None, float | None, float | None]:
    """Height, lower and upper end of a row. Around a level, the interval is that of its cost."""
    if row.cost is None:
        return None, None, None
    low, high = row.low, row.high
    if not view.absolute:
        return tuple(None if value is None else value * facts.scale for value in (row.cost, low, high))  # type: ignore[return-value] # three in, three out
    if row.value is None:
        return None, None, None
    height = row.value * facts.scale
    if low is None or high is None:
        return height, None, None
    down, up = (row.cost - low) * facts.scale, (high - row.cost) * facts.scale
    return (height, height - up, height + down) if facts.direction == "higher" else (height, height - down, height + up)


def heights(facts: CostFacts, view: View, groups: tuple[str, ...]) -> tuple[float, float]:
    """One range for all panels, so that methods can be compared by eye; a cost axis always holds zero."""
    shown = [row for row in facts.rows if row.group in groups and row.epsilon_asked is not None]
    always = [0.0] if not view.absolute else [r.baseline * facts.scale for r in shown if r.baseline is not None]
    low, high = panel_range((ends_of(facts, view, row) for row in shown), always, least=1.0 if facts.percent else 0.01)
    return (max(low, -1.0), min(high, 101.0)) if view.absolute and facts.percent else (low, high)


def panel_range(shown: Iterable[Ends], always: list[float], *, least: float) -> tuple[float, float]:
    """A range that holds every mark and every interval of usual width.

    Intervals much wider than the median one, as tiny groups have, may run out of it, so that they do not press all
    others flat; an arrowhead then stands at the edge and the table has the end.
    """
    values, listed = list(always), list(shown)
    widths = [(high - low) / 2 for _, low, high in listed if low is not None and high is not None]
    widest = LONG_INTERVAL * median(widths) if widths else 0.0
    for height, low, high in listed:
        if height is not None:
            values.append(height)
        if low is not None and high is not None and (high - low) / 2 <= widest:
            values += [low, high]
    low, high = min(values, default=0.0), max(values, default=least)
    room = max(high - low, least) * 0.06
    return low - room, high + room
