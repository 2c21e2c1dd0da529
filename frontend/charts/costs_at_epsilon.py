"""What one epsilon costs each group: a dot and its interval, groups sorted by cost, everyone as an upright line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from frontend.charts.base import (
    CostFacts,
    Figure,
    Table,
    View,
    brief,
    epsilon_text,
    hollow,
    mark_key,
    plain,
    quiet_layout,
)
from frontend.charts.cost_lines import panel_range
from frontend.charts.cost_table import INTERVALS, cost_table, difference_text, hover_text
from frontend.charts.group_costs import WHISKER
from frontend.charts.theme import PAPERS, hue, veil
from worker.engine.results import EVERYONE, CostRow

ROW_HEIGHT = 30
MOST_ROWS = 24


@dataclass(frozen=True)
class CostsAtEpsilon:
    """Cost of each group at one epsilon and method."""

    key: str = "costs_at_epsilon"
    title: str = "Cost of each group at one epsilon"
    help: str = __doc__ or ""

    def figure(self, facts: CostFacts, view: View) -> Figure:
        rows = _sorted_rows(facts, view)
        dots = [row for row in rows if row.cost is not None][-MOST_ROWS:]
        span = panel_range(
            ((r.cost, r.low, r.high) for r in _scaled(facts, dots)), [0.0], least=1.0 if facts.percent else 0.01
        )
        traces = [_trace(facts, dots, view), *_beyond(_scaled(facts, dots), span, view)]
        return {"data": traces, "layout": _layout(facts, rows, dots, view, span)}

    def table(self, facts: CostFacts, view: View) -> Table:
        rows = tuple(reversed(_sorted_rows(facts, view)))
        return cost_table(facts, rows, f"{facts.method_title(view.method)} at epsilon {view.epsilon:g}")

    def caption(self, facts: CostFacts, view: View) -> str:
        spent = next((row.epsilon_spent for row in _sorted_rows(facts, view)), None)
        over = INTERVALS.get(facts.interval, facts.interval)
        return (
            f"{facts.method_title(view.method)}, epsilon spent {epsilon_text(spent)}. Dots: {facts.noun} in "
            f"{facts.metric_title.lower()} of each group, largest first; bars: 95 % intervals over {over}. The upright "
            "line is everyone; an arrowhead says that an interval runs on. Outside the guarantee: for the audit only."
        )


def _sorted_rows(facts: CostFacts, view: View) -> list[CostRow]:
    """Rows of the chosen method and epsilon, smallest cost first, those without a number before them."""
    rows = [row for row in facts.rows if row.method == view.method and row.epsilon_asked == view.epsilon]
    rows = [row for row in rows if not view.family or row.group in view.family]
    return sorted(rows, key=lambda row: (row.cost is not None, row.cost or 0.0))


def _name(row: CostRow) -> str:
    return f"{brief(row.group_label, 28)}  n = {row.n:,}"


def _trace(facts: CostFacts, rows: list[CostRow], view: View) -> dict[str, Any]:
    paper = PAPERS[view.tone]
    colour = hue(view.method, view.tone)
    colours = [paper.ink if row.group == EVERYONE else colour for row in rows]
    scale = facts.scale
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(facts.method_title(view.method), 60),
        "x": [(row.cost or 0.0) * scale for row in rows],
        "y": list(range(len(rows))),
        "marker": {
            "symbol": ["circle-open" if hollow(row) else "circle" for row in rows],
            "size": [12 if row.group == view.group else 9 for row in rows],
            "color": colours,
            "line": {"width": 1.5, "color": colours},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [None if r.high is None or r.cost is None else (r.high - r.cost) * scale for r in rows],
            "arrayminus": [None if r.low is None or r.cost is None else (r.cost - r.low) * scale for r in rows],
            "color": veil(colour, 0.8),
            "thickness": WHISKER.get(facts.interval, 1.5),
            "width": 0,
        },
        "customdata": [[mark_key(r), r.epsilon_spent, r.cost, r.low, r.high, r.value, r.baseline] for r in rows],
        "hoverinfo": "text",
        "hovertext": [hover_text(facts, row) for row in rows],
    }


def _scaled(facts: CostFacts, rows: list[CostRow]) -> list[CostRow]:
    """The same rows in the unit of the axis."""

    def times(value: float | None) -> float | None:
        return None if value is None else value * facts.scale

    return [replace(row, cost=times(row.cost), low=times(row.low), high=times(row.high)) for row in rows]


def _beyond(rows: list[CostRow], span: tuple[float, float], view: View) -> list[dict[str, Any]]:
    """Arrowheads where an interval runs out of the panel."""
    low, high = span
    points = [(high, at, "triangle-right") for at, row in enumerate(rows) if row.high is not None and row.high > high]
    points += [(low, at, "triangle-left") for at, row in enumerate(rows) if row.low is not None and row.low < low]
    if not points:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "interval runs on",
            "x": [x for x, _, _ in points],
            "y": [y for _, y, _ in points],
            "marker": {"symbol": [s for _, _, s in points], "size": 8, "color": veil(hue(view.method, view.tone), 0.8)},
            "cliponaxis": False,
            "hoverinfo": "text",
            "hovertext": "this interval runs on; the table has its end",
        }
    ]


def _layout(
    facts: CostFacts, rows: list[CostRow], dots: list[CostRow], view: View, span: tuple[float, float]
) -> dict[str, Any]:
    paper = PAPERS[view.tone]
    layout = quiet_layout(view.tone, 74 + ROW_HEIGHT * max(len(dots), 1))
    layout["margin"] = {"l": 8, "r": 12, "t": 6, "b": 50}
    unit = "percentage points" if facts.percent else "nats"
    layout["xaxis"] = {
        "range": list(span),
        "title": {
            "text": f"{facts.noun}, {unit}"
            if view.narrow
            else f"{facts.noun} in {plain(facts.metric_title).lower()}, {unit}",
            "font": {"size": 13},
            "standoff": 10,
        },
        "fixedrange": True,
        "zeroline": True,
        "zerolinecolor": paper.quiet,
        "gridcolor": paper.hairline,
        "nticks": 5 if view.narrow else 9,
    }
    layout["yaxis"] = {
        "tickvals": list(range(len(dots))),
        "ticktext": [_tick(facts, row, view) for row in dots],
        "range": [-0.6, len(dots) - 0.4],
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
    }
    everyone = next((row for row in rows if row.group == EVERYONE and row.cost is not None), None)
    layout["shapes"] = [_upright(everyone.cost * facts.scale, view)] if everyone and everyone.cost is not None else []
    layout["meta"] = {"method": view.method, "metric": facts.metric, "interval": facts.interval, "tag": "audit-only"}
    return layout


def _tick(facts: CostFacts, row: CostRow, view: View) -> str:
    if view.narrow:
        return f"{brief(row.group_label, 18)}  "
    text = f"{_name(row)}   {difference_text(facts, row)}  "
    return f"› {text}" if row.group in (view.group, EVERYONE) else text


def _upright(x: float, view: View) -> dict[str, Any]:
    line = {"color": PAPERS[view.tone].ink, "width": 1, "dash": "dot"}
    return {
        "type": "line",
        "xref": "x",
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": line,
        "layer": "below",
    }


COSTS_AT_EPSILON = CostsAtEpsilon()
