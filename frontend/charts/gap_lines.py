"""How far groups lie apart, and how much of it privacy added: gap or excess gap against epsilon, one line a method.

Whiskers are 95 % intervals that hold for all pairs of groups at once. The dashed line is the gap without DP, which was
there before; the grey band is the gap that would show if all groups were equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from frontend.charts import epsilon_axis
from frontend.charts.base import Cell, Figure, Table, epsilon_text, legend_below, plain, quiet_layout, signed
from frontend.charts.theme import PAPERS, Tone, dash, hue, veil
from worker.engine.facts.grid import BASELINE
from worker.engine.facts.rows import GapRow

Shown = Literal["gap", "excess"]
HEIGHT, TOP, BOTTOM = 340, 34, 64
NUDGE = 0.02
"""Decades by which neighbouring methods are set apart."""


@dataclass(frozen=True)
class GapFacts:
    """Gap rows of one set of attributes, with the words that go with them; ``percent``: shares, shown as points."""

    rows: tuple[GapRow, ...]
    title: str
    by: str
    percent: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    method_titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def unit(self) -> str:
        return "percentage points" if self.percent else "nats"

    @property
    def digits(self) -> int:
        return 1 if self.percent else 3

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.method for row in self.rows if row.method != BASELINE and row.epsilon_asked))

    def of(self, method: str) -> tuple[GapRow, ...]:
        """Rows of a method that have a place on the axis, strongest privacy first."""
        own = [row for row in self.rows if row.method == method and row.epsilon_spent]
        return tuple(sorted(own, key=lambda row: row.epsilon_spent or 0.0))

    def number(self, value: float | None) -> str:
        return "—" if value is None else f"{value * self.scale:.{self.digits}f}"

    def difference(self, value: float | None) -> str:
        return signed(None if value is None else value * self.scale, self.digits)

    def group(self, key: str | None) -> str:
        return "—" if key is None else self.labels.get(key, key)


def gap_key(row: GapRow) -> str:
    """What links a mark to its row in the table."""
    return f"{row.method}|{row.epsilon_asked:g}|{row.by}" if row.epsilon_asked else f"{row.method}||{row.by}"


def gap_figure(facts: GapFacts, shown: Shown, tone: Tone, *, narrow: bool) -> Figure:
    """The picture: at most two traces a method, and the line without DP."""
    traces = [_line(facts, method, at, shown, tone) for at, method in enumerate(facts.methods)]
    baseline = next((row.gap for row in facts.rows if row.method == BASELINE and row.gap is not None), None)
    heights = [value for trace in traces for value in _ends(trace)]
    if shown == "gap" and baseline is not None:
        traces.append(_without_dp(facts, baseline, tone))
        heights.append(baseline * facts.scale)
    floor = _floor(facts, shown)
    low, high = min([0.0, *heights]), max([0.0, *heights, floor or 0.0])
    room = max(high - low, 1.0 if facts.percent else 0.01) * 0.08
    return {"data": traces, "layout": _layout(facts, shown, tone, narrow, (low - room, high + room), floor)}


def _ends(trace: Mapping[str, Any]) -> list[float]:
    bars = trace["error_y"]
    ups = [y + up for y, up in zip(trace["y"], bars["array"], strict=True) if up is not None]
    downs = [y - down for y, down in zip(trace["y"], bars["arrayminus"], strict=True) if down is not None]
    return [*trace["y"], *ups, *downs]


def _numbers(row: GapRow, shown: Shown) -> tuple[float | None, float | None, float | None]:
    return (row.gap, row.gap_low, row.gap_high) if shown == "gap" else (row.excess, row.low, row.high)


def _line(facts: GapFacts, method: str, at: int, shown: Shown, tone: Tone) -> dict[str, Any]:
    rows = [row for row in facts.of(method) if _numbers(row, shown)[0] is not None]
    apart = 10 ** ((at - (len(facts.methods) - 1) / 2) * NUDGE)
    colour, scale = hue(method, tone), facts.scale
    numbers = [_numbers(row, shown) for row in rows]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plain(facts.method_titles.get(method, method), 60),
        "x": [(row.epsilon_spent or 0.0) * apart for row in rows],
        "y": [(value or 0.0) * scale for value, _, _ in numbers],
        "line": {"color": colour, "width": 2, "dash": dash(method)},
        "marker": {"size": 9, "color": colour},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [None if high is None or v is None else (high - v) * scale for v, _, high in numbers],
            "arrayminus": [None if low is None or v is None else (v - low) * scale for v, low, _ in numbers],
            "color": veil(colour, 0.6),
            "thickness": 1.5,
            "width": 0,
        },
        "customdata": [[gap_key(row), row.epsilon_spent, *_numbers(row, shown)] for row in rows],
        "hoverinfo": "text",
        "hovertext": [_hover(facts, row) for row in rows],
    }


def _hover(facts: GapFacts, row: GapRow) -> str:
    return "<br>".join(
        [
            f"{plain(facts.method_titles.get(row.method, row.method))}, epsilon spent {epsilon_text(row.epsilon_spent)}",
            f"gap {facts.number(row.gap)}, {facts.number(row.baseline_gap)} without DP; excess {facts.difference(row.excess)}",
            f"highest {plain(facts.group(row.highest), 50)}, lowest {plain(facts.group(row.lowest), 50)}",
        ]
    )


def _without_dp(facts: GapFacts, baseline: float, tone: Tone) -> dict[str, Any]:
    mark = {"symbol": "diamond-open", "size": 10, "color": PAPERS[tone].quiet, "line": {"width": 1.5}}
    text = f"gap without DP {facts.number(baseline)}: there before any privacy"
    return {
        "type": "scatter",
        "mode": "markers",
        "xaxis": "x2",
        "name": "no DP",
        "x": [0],
        "y": [baseline * facts.scale],
        "marker": mark,
        "error_y": {"array": [None], "arrayminus": [None]},
        "hoverinfo": "text",
        "hovertext": [text],
    }


def _floor(facts: GapFacts, shown: Shown) -> float | None:
    """Upper end of the grey band: the largest mean floor of the rows."""
    found = [row.floor if shown == "gap" else row.excess_floor_upper for row in facts.rows if row.method != BASELINE]
    return max((value * facts.scale for value in found if value is not None), default=None)


def _layout(
    facts: GapFacts, shown: Shown, tone: Tone, narrow: bool, span: tuple[float, float], floor: float | None
) -> dict[str, Any]:
    paper = PAPERS[tone]
    spent = [row.epsilon_spent for row in facts.rows if row.epsilon_spent]
    left, right = epsilon_axis.epsilon_range(spent, labels=False)
    layout = quiet_layout(tone, HEIGHT)
    layout.update(epsilon_axis.epsilon_axes(left, right, tone, narrow=narrow))
    layout["margin"] = {"l": 44 if narrow else 56, "r": 8, "t": TOP, "b": BOTTOM + (24 if narrow else 0)}
    layout["yaxis"] = {
        "range": list(span),
        "fixedrange": True,
        "zeroline": True,
        "zerolinecolor": paper.quiet,
        "gridcolor": paper.hairline,
        "nticks": 6,
        "ticksuffix": "  ",
    }
    words = "gap" if shown == "gap" else "what privacy added to the gap"
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    title = {
        **place,
        "xshift": -44 if narrow else -56,
        "yshift": 10,
        "showarrow": False,
        "text": f"{words}, {facts.unit}",
    }
    layout["annotations"] = [
        title | {"font": {"size": 13, "color": paper.quiet}},
        *epsilon_axis.end_words(tone, narrow=narrow),
    ]
    layout["shapes"] = _shapes(facts, shown, tone, floor)
    if len(facts.methods) > 1:
        legend_below(layout, len(facts.methods), narrow=narrow)
    layout["meta"] = {"shown": shown, "by": facts.by, "tag": "audit-only"}
    return layout


def _shapes(facts: GapFacts, shown: Shown, tone: Tone, floor: float | None) -> list[dict[str, Any]]:
    paper, shapes = PAPERS[tone], []
    whole = {"xref": "x domain", "x0": 0, "x1": 1, "yref": "y", "layer": "below"}
    if floor is not None:
        band = {"fillcolor": veil(paper.quiet, 0.14), "line": {"width": 0}}
        shapes.append({**whole, "type": "rect", "y0": 0, "y1": floor, **band})
    baseline = next((row.gap for row in facts.rows if row.method == BASELINE and row.gap is not None), None)
    if shown == "gap" and baseline is not None:
        line = {"color": paper.quiet, "width": 1, "dash": "dash"}
        shapes.append(
            {**whole, "type": "line", "y0": baseline * facts.scale, "y1": baseline * facts.scale, "line": line}
        )
    return shapes


def gap_caption(facts: GapFacts, shown: Shown) -> str:
    """How to read it."""
    rows = [row for row in facts.rows if row.method != BASELINE]
    left_out = max((row.left_out for row in rows), default=0)
    groups = max((row.groups for row in rows), default=0)
    parts = [
        f"{facts.title} over the {groups} groups by {facts.by} that can be judged: the highest less the lowest mean over "
        "seeds, on test rows.",
        "Dashed: the same gap without DP. Grey: the mean gap if all groups were equal."
        if shown == "gap"
        else "Gap less the gap without DP. Grey: up to here, 95 in 100 times, if all groups were equal.",
        "Whiskers: 95 % intervals over rows and seeds for all pairs of groups at once. A gap of the largest less the "
        "smallest is biased upward where groups are many and small.",
    ]
    if left_out:
        parts.append(
            f"{left_out} of {groups + left_out} groups cannot be judged and set no gap; the cost table has them."
        )
    return " ".join([*parts, "Outside the guarantee: for the audit only."])


COLUMNS = (
    "Method",
    "Epsilon spent",
    "Gap",
    "95 % interval",
    "Without DP",
    "Excess gap",
    "95 % interval of the excess",
    "Pair of no DP now",
    "Privacy-cost gap",
    "Xi",
    "Ratio",
    "Floor (95th)",
    "Excess floor (95th)",
    "Highest",
    "Lowest",
    "Seeds",
    "Note",
)


def gap_table(facts: GapFacts) -> Table:
    """The same numbers as rows, and what belongs beside a gap: signed pair, cost gap, xi, ratio, floors."""
    rows = tuple(facts.rows)
    unit = "points" if facts.percent else "nats"
    caption = f"{facts.title} by {facts.by}, {unit}"
    return Table(caption, COLUMNS, tuple(_cells(facts, row) for row in rows), tuple(gap_key(row) for row in rows))


def _cells(facts: GapFacts, row: GapRow) -> tuple[Cell, ...]:
    def span(low: float | None, high: float | None) -> Cell:
        text = "—" if low is None or high is None else f"{facts.difference(low)} to {facts.difference(high)}"
        return Cell(text, low, number=True)

    def plus(value: float | None, upper: float | None) -> Cell:
        text = "—" if value is None else f"{facts.difference(value)} ({facts.difference(upper)})"
        return Cell(text, value, number=True)

    return (
        Cell(facts.method_titles.get(row.method, row.method), row.method),
        Cell(epsilon_text(row.epsilon_spent), row.epsilon_spent if row.epsilon_spent else 1e9, number=True),
        Cell(facts.number(row.gap), row.gap, number=True),
        span(row.gap_low, row.gap_high),
        Cell(facts.number(row.baseline_gap), row.baseline_gap, number=True),
        Cell(facts.difference(row.excess), row.excess, number=True),
        span(row.low, row.high),
        Cell(facts.difference(row.signed), row.signed, number=True),
        Cell(facts.number(row.cost_gap), row.cost_gap, number=True),
        Cell(facts.number(row.xi), row.xi, number=True),
        Cell("—" if row.ratio is None else f"{row.ratio:.3f}", row.ratio, number=True),
        plus(row.floor, row.floor_upper),
        plus(row.excess_floor, row.excess_floor_upper),
        Cell(facts.group(row.highest), row.highest),
        Cell(facts.group(row.lowest), row.lowest),
        Cell(str(row.seeds), row.seeds, number=True),
        Cell(row.reason or ""),
    )
