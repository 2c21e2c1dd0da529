"""Who pays for privacy, and how much: the cost of each group against the epsilon spent, one panel a method.

Lines are groups, told apart by mark and label; the hue is the method's. Whiskers are 95 % intervals. The result
without DP stands in a column of its own at the far right, never at an invented epsilon. Hollow marks cannot be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import Any

from frontend.charts import epsilon_axis
from frontend.charts.base import (
    CostFacts,
    Figure,
    Table,
    View,
    brief,
    hollow,
    mark_key,
    plain,
    quiet_layout,
    shown_groups,
)
from frontend.charts.cost_lines import Line, heights
from frontend.charts.cost_table import INTERVALS, cost_table, hover_text, level
from frontend.charts.labels import apart
from frontend.charts.theme import PAPERS, dash, hue, veil
from worker.engine.results import EVERYONE

HEIGHT = 440
NARROW_HEIGHT = 400
TOP, BOTTOM = 34, 64
SIZES = {"star": 12, "triangle-up": 11, "triangle-down": 11, "cross": 10}
"""Marks that look smaller than they are."""


WHISKER = {"sampling": 1.0, "seeds": 3.0, "both": 1.5}


@dataclass(frozen=True)
class GroupCosts:
    """Privacy cost per group against epsilon spent."""

    key: str = "group_costs"
    title: str = "Privacy cost per group against epsilon spent"
    help: str = __doc__ or ""

    def figure(self, facts: CostFacts, view: View) -> Figure:
        groups = shown_groups(facts, view.groups)
        lines = [Line.of(facts, view, group, at, len(groups)) for at, group in enumerate(groups)]
        low, high = heights(facts, view, groups)
        traces = [_ribbon(line, view) for line in lines if line.group == view.group and line.has_interval]
        traces += [_trace(facts, line, view) for line in lines]
        traces += _no_dp(facts, lines, view)
        traces += _beyond(lines, view, low, high)
        return {"data": traces, "layout": _layout(facts, view, lines, low, high)}

    def table(self, facts: CostFacts, view: View) -> Table:
        order = tuple(dict.fromkeys(row.group for row in facts.rows))
        rows = tuple(row for group in order for row in facts.of(view.method, group))
        title = f"{facts.method_title(view.method)}: {facts.metric_title.lower()}, {facts.noun} per group"
        return cost_table(facts, rows, title)

    def caption(self, facts: CostFacts, view: View) -> str:
        seeds = max((row.seeds for row in facts.rows), default=0)
        over = INTERVALS.get(facts.interval, facts.interval)
        what = (
            f"{facts.metric_title} of each group, with and without DP"
            if view.absolute
            else f"{facts.noun.capitalize()} in {facts.metric_title.lower()}: the difference from the run without "
            "DP of the same seed"
        )
        parts = [
            f"{facts.method_title(view.method)}. {what}, on test rows.",
            f"Whiskers: 95 % intervals over {over}, {seeds} {'seed' if seeds == 1 else 'seeds'}.",
            "Marks of one epsilon are set slightly apart. An arrowhead: the interval runs on, see the table. "
            "Hollow marks: not enough to judge.",
            "Computed on raw rows, outside the guarantee: for the audit only.",
        ]
        if seeds < 3 and facts.interval != "sampling":
            parts.insert(2, "Under 3 seeds there is no interval over seeds.")
        return " ".join(parts)


def _beyond(lines: list[Line], view: View, low: float, high: float) -> list[dict[str, Any]]:
    """Arrowheads where an interval runs out of the panel; the table has its end."""
    points = [(x, high, "triangle-up") for line in lines for x, end in _pairs(line.x, line.high) if end > high]
    points += [(x, low, "triangle-down") for line in lines for x, end in _pairs(line.x, line.low) if end < low]
    if not points:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "interval runs on",
            "x": [x for x, _, _ in points],
            "y": [y for _, y, _ in points],
            "marker": {"symbol": [s for _, _, s in points], "size": 7, "color": veil(hue(view.method, view.tone), 0.6)},
            "cliponaxis": False,
            "hoverinfo": "text",
            "hovertext": "this interval runs on; the table has its end",
        }
    ]


def _pairs(x: tuple[float, ...], ends: tuple[float | None, ...]) -> list[tuple[float, float]]:
    return [(at, end) for at, end in zip(x, ends, strict=True) if end is not None]


def _trace(facts: CostFacts, line: Line, view: View) -> dict[str, Any]:
    """Line and marks of one group. ``customdata`` holds the key of the table row and the exact numbers."""
    paper = PAPERS[view.tone]
    colour = paper.ink if line.group == EVERYONE else hue(view.method, view.tone)
    dim = view.group is not None and line.group not in (view.group, EVERYONE)
    symbols = [f"{line.mark}-open" if hollow(row) else line.mark for row in line.rows]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{plain(line.label, 60)}, n = {line.n:,}",
        "meta": {"group": line.group},
        "x": list(line.x),
        "y": list(line.y),
        "opacity": 0.45 if dim else 1.0,
        "line": {
            "color": colour,
            "width": 2.4 if line.group in (view.group, EVERYONE) else 1.4,
            "dash": dash(view.method),
        },
        "marker": {
            "symbol": symbols,
            "size": SIZES.get(line.mark, 9),
            "color": colour,
            "line": {"width": 1.5, "color": [colour if hollow(row) else paper.paper for row in line.rows]},
        },
        "error_y": _whiskers(line, colour, WHISKER.get(facts.interval, 1.5), line.group in (view.group, EVERYONE)),
        "customdata": [
            [mark_key(row), row.epsilon_spent, row.cost, row.low, row.high, row.value, row.baseline]
            for row in line.rows
        ],
        "hoverinfo": "text",
        "hovertext": [hover_text(facts, row) for row in line.rows],
    }


def _whiskers(line: Line, colour: str, thickness: float, bold: bool) -> dict[str, Any]:
    up = [None if h is None or y is None else h - y for h, y in zip(line.high, line.y, strict=True)]
    down = [None if w is None or y is None else y - w for w, y in zip(line.low, line.y, strict=True)]
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "color": veil(colour, 0.75 if bold else 0.42),
        "thickness": thickness,
        "width": 0,
    }


def _ribbon(line: Line, view: View) -> dict[str, Any]:
    """The interval of the chosen group as a band."""
    whole = [(x, w, h) for x, w, h in zip(line.x, line.low, line.high, strict=True) if w is not None and h is not None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"interval of {plain(line.label, 60)}",
        "x": [x for x, _, _ in whole] + [x for x, _, _ in reversed(whole)],
        "y": [h for _, _, h in whole] + [w for _, w, _ in reversed(whole)],
        "fill": "toself",
        "fillcolor": veil(hue(view.method, view.tone), 0.16),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _no_dp(facts: CostFacts, lines: list[Line], view: View) -> list[dict[str, Any]]:
    """The broken-off column: each group's level without DP, or the one zero that every cost is measured from."""
    paper = PAPERS[view.tone]
    base: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "xaxis": "x2",
        "hoverinfo": "text",
    }
    if not view.absolute:
        mark = {"symbol": "diamond-open", "size": 10, "color": paper.quiet, "line": {"width": 1.5}}
        text = f"without DP: {facts.noun} 0, every {facts.noun} is measured from here"
        return [{**base, "name": "no DP", "x": [0], "y": [0], "marker": mark, "hovertext": [text]}]
    traces = []
    for at, line in enumerate(lines):
        baseline = next((row.baseline for row in line.rows if row.baseline is not None), None)
        if baseline is None:
            continue
        colour = paper.ink if line.group == EVERYONE else PAPERS[view.tone].quiet
        traces.append(
            {
                **base,
                "name": f"{plain(line.label, 60)}, no DP",
                "meta": {"group": line.group},
                "x": [(at - (len(lines) - 1) / 2) * 0.12],
                "y": [baseline * facts.scale],
                "marker": {"symbol": line.mark, "size": 9, "color": colour},
                "hovertext": [f"{plain(line.label, 60)} without DP: {level(facts, baseline)}, n = {line.n:,}"],
            }
        )
    return traces


def _layout(facts: CostFacts, view: View, lines: list[Line], low: float, high: float) -> dict[str, Any]:
    paper = PAPERS[view.tone]
    height = NARROW_HEIGHT + 22 * len(lines) if view.narrow else HEIGHT
    bottom = BOTTOM + (18 + 22 * len(lines) if view.narrow else 0)
    spent = [row.epsilon_spent for row in facts.rows if row.epsilon_spent]
    left, right = epsilon_axis.epsilon_range(spent, labels=not view.narrow)
    layout = quiet_layout(view.tone, height)
    layout.update(epsilon_axis.epsilon_axes(left, right, view.tone, narrow=view.narrow))
    layout["margin"] = {"l": 44 if view.narrow else 56, "r": 8, "t": TOP, "b": bottom}
    layout["yaxis"] = {
        "range": [low, high],
        "fixedrange": True,
        "zeroline": not view.absolute,
        "zerolinecolor": paper.quiet,
        "zerolinewidth": 1,
        "gridcolor": paper.hairline,
        "nticks": 7,
        "ticksuffix": " " if view.narrow else "  ",
        "tickformat": ".1f" if facts.percent and high - low < 6 else ("" if facts.percent else ".2f"),
    }
    labels = [] if view.narrow else _labels(lines, view, left, low, high)
    layout["annotations"] = [_axis_words(facts, view), *epsilon_axis.end_words(view.tone, narrow=view.narrow), *labels]
    if view.narrow:
        layout["showlegend"] = True
        layout["legend"] = {"orientation": "h", "x": 0, "y": -BOTTOM / (height - TOP - bottom), "yanchor": "top"}
        layout["legend"] |= {
            "itemclick": False,
            "itemdoubleclick": False,
            "entrywidth": 1,
            "entrywidthmode": "fraction",
        }
    layout["meta"] = {"method": view.method, "metric": facts.metric, "interval": facts.interval, "tag": "audit-only"}
    return layout


def _axis_words(facts: CostFacts, view: View) -> dict[str, Any]:
    """The y axis in words, set flat above it."""
    metric = plain(facts.metric_title)
    if view.absolute:
        text = f"{metric}, {'percent' if facts.percent else 'nats'}"
    elif facts.direction is None:
        text = f"change of {metric.lower()}, percentage points"
    else:
        text = f"↑ cost in {metric.lower()}, {'percentage points' if facts.percent else 'nats'}"
    return {
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 1,
        "xanchor": "left",
        "yanchor": "bottom",
        "xshift": -44 if view.narrow else -56,
        "yshift": 10,
        "showarrow": False,
        "text": text,
        "font": {"size": 13, "color": PAPERS[view.tone].quiet},
    }


def _labels(lines: list[Line], view: View, left: float, low: float, high: float) -> list[dict[str, Any]]:
    """A label at the strongest-privacy end of each line; groups without a number are named below, with the reason."""
    drawn = [(line, line.first) for line in lines if line.first]
    per_pixel = (high - low) / (HEIGHT - TOP - BOTTOM)
    wished = [first[1] for _, first in drawn if first]
    placed = apart(wished, 17 * per_pixel, low + 10 * per_pixel, high - 8 * per_pixel)
    start = min((log10(first[0]) for _, first in drawn if first), default=0.0) - 0.12
    labels = [
        _label(line, first, max(start, left), height, view)
        for (line, first), height in zip(drawn, placed, strict=True)
        if first
    ]
    missing = [line for line in lines if not line.first and line.rows]
    if missing:
        text = "not shown: " + "; ".join(f"{brief(line.label, 26)} (n = {line.n:,})" for line in missing)
        quiet = {"size": 12, "color": PAPERS[view.tone].quiet}
        place = {"xref": "x domain", "yref": "paper", "x": 0.99, "y": 1, "xanchor": "right", "yanchor": "top"}
        labels.append({**place, "showarrow": False, "text": text, "font": quiet})
    return labels


def _label(line: Line, first: tuple[float, float], start: float, height: float, view: View) -> dict[str, Any]:
    """Text at the left with a hair to the mark it names. Coordinates on the log axis are powers of ten."""
    paper = PAPERS[view.tone]
    chosen = line.group in (view.group, EVERYONE)
    text = f"{brief(line.label, 26)}  n = {line.n:,}"
    return {
        "xref": "x",
        "yref": "y",
        "x": log10(first[0]) - 0.02,
        "y": first[1],
        "axref": "x",
        "ayref": "y",
        "ax": start,
        "ay": height,
        "xanchor": "right",
        "yanchor": "middle",
        "showarrow": True,
        "arrowhead": 0,
        "arrowwidth": 0.8,
        "arrowcolor": paper.edge,
        "bgcolor": paper.paper,
        "borderpad": 1,
        "standoff": 4,
        "align": "right",
        "text": text,
        "font": {
            "size": 12.5,
            "color": paper.ink if chosen else paper.quiet,
            "weight": "bold" if chosen else "normal",  # markup in the text would need inline styles
        },
    }


GROUP_COSTS = GroupCosts()
