"""The trade-off: overall metric against the worst group's cost, one mark a method and epsilon; filled marks are unbeaten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frontend.charts.base import Cell, Figure, Table, epsilon_text, legend_below, plain, quiet_layout, signed
from frontend.charts.theme import PAPERS, Tone, hue
from worker.engine.facts.rows import CandidateRow

HEIGHT = 400
PLACES = ("top center", "middle right", "bottom center", "middle left")
"""Where an epsilon stands beside its mark; neighbours differ, for good points lie close together."""


@dataclass(frozen=True)
class CandidateFacts:
    """Candidates with the words that go with them; ``limit`` is the largest tolerated cost in the unit of the axis."""

    rows: tuple[CandidateRow, ...]
    metric_title: str
    higher: bool
    percent: bool
    limit: float
    labels: Mapping[str, str] = field(default_factory=dict)
    method_titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def unit(self) -> str:
        return "points" if self.percent else "nats"

    def cost(self, value: float | None) -> str:
        return signed(None if value is None else value * self.scale, 1 if self.percent else 3)

    def level(self, value: float | None) -> str:
        return "—" if value is None else f"{value * 100:.1f} %" if self.percent else f"{value:.3f}"


def candidate_key(row: CandidateRow) -> str:
    """What links a mark to its row in the table."""
    return f"{row.method}|{row.epsilon_asked:g}|tradeoff"


def candidate_figure(facts: CandidateFacts, tone: Tone, *, narrow: bool) -> Figure:
    """The picture: one trace a method, larger marks for weaker privacy, the limit as a dashed line."""
    known = [row for row in facts.rows if row.overall is not None and row.worst_cost is not None]
    grid = sorted({row.epsilon_asked for row in known})
    methods = dict.fromkeys(row.method for row in known)
    traces = [_trace(facts, [row for row in known if row.method == method], grid, tone) for method in methods]
    paper = PAPERS[tone]
    layout = quiet_layout(tone, HEIGHT)
    layout["margin"] = {"l": 56, "r": 12, "t": 34, "b": 56}
    title = {"size": 13, "color": paper.quiet}
    axis = {"fixedrange": True, "gridcolor": paper.hairline, "zeroline": False, "nticks": 5 if narrow else 8}
    overall = f"{plain(facts.metric_title).lower()} of everyone, {'percent' if facts.percent else 'nats'}"
    better = "→" if facts.higher else "←"
    layout["xaxis"] = {**axis, "title": {"text": f"{overall}, better {better}", "font": title}}
    layout["yaxis"] = {**axis, "autorange": "reversed"}
    layout["annotations"] = [
        {
            **{"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"},
            **{"xshift": -56, "yshift": 10, "showarrow": False, "font": title},
            "text": f"↑ better: cost of the worst-off group, {facts.unit}",
        }
    ]
    line = {"color": paper.quiet, "width": 1, "dash": "dash"}
    limit = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": facts.limit, "y1": facts.limit, "line": line}
    layout["shapes"] = [limit] if known else []
    if len(methods) > 1:
        legend_below(layout, len(methods), narrow=narrow)
    layout["meta"] = {"tag": "audit-only"}
    return {"data": traces, "layout": layout}


def _trace(facts: CandidateFacts, rows: list[CandidateRow], grid: list[float], tone: Tone) -> dict[str, Any]:
    colour = hue(rows[0].method, tone)
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": plain(facts.method_titles.get(rows[0].method, rows[0].method), 60),
        "x": [(row.overall or 0.0) * facts.scale for row in rows],
        "y": [(row.worst_cost or 0.0) * facts.scale for row in rows],
        "text": [f"{row.epsilon_asked:g}" for row in rows],
        "textposition": [PLACES[at % len(PLACES)] for at in range(len(rows))],
        "textfont": {"size": 12, "color": PAPERS[tone].quiet},
        "cliponaxis": False,
        "marker": {
            "symbol": ["circle" if row.pareto else "circle-open" for row in rows],
            "size": [8 + 8 * grid.index(row.epsilon_asked) / max(len(grid) - 1, 1) for row in rows],
            "color": colour,
            "line": {"width": 1.5, "color": colour},
        },
        "customdata": [[candidate_key(row), row.overall, row.worst_cost] for row in rows],
        "hoverinfo": "text",
        "hovertext": [_hover(facts, row) for row in rows],
    }


def _hover(facts: CandidateFacts, row: CandidateRow) -> str:
    worst = plain(facts.labels.get(row.worst_group or "", row.worst_group or "—"), 50)
    return "<br>".join(
        [
            f"{plain(facts.method_titles.get(row.method, row.method))}, epsilon spent {epsilon_text(row.epsilon_spent)}",
            f"everyone {facts.level(row.overall)}; worst off: {worst}, {facts.cost(row.worst_cost)} {facts.unit}, "
            f"upper limit {facts.cost(row.worst_upper)}",
        ]
    )


def candidate_table(facts: CandidateFacts) -> Table:
    """The same numbers as rows."""
    columns = (
        "Method",
        "Epsilon spent",
        f"{facts.metric_title} of everyone",
        "Worst cost",
        "Worst group",
        "Upper limit",
        "Excess gap",
        "Excess by",
        "Unbeaten",
        "Within the limit",
        "Note",
    )
    answers = {True: "yes", False: "no", None: "—"}
    rows = tuple(
        (
            Cell(facts.method_titles.get(row.method, row.method), row.method),
            Cell(epsilon_text(row.epsilon_spent), row.epsilon_spent, number=True),
            Cell(facts.level(row.overall), row.overall, number=True),
            Cell(facts.cost(row.worst_cost), row.worst_cost, number=True),
            Cell(facts.labels.get(row.worst_group or "", row.worst_group or "—"), row.worst_group),
            Cell(facts.cost(row.worst_upper), row.worst_upper, number=True),
            Cell(facts.cost(row.excess), row.excess, number=True),
            Cell(row.excess_by or "—", row.excess_by),
            Cell(answers[row.pareto], answers[row.pareto]),
            Cell(answers[row.passes], answers[row.passes]),
            Cell(row.reason or ""),
        )
        for row in facts.rows
    )
    caption = f"Candidates, {facts.metric_title.lower()}; costs and gaps in {facts.unit}"
    return Table(caption, columns, rows, tuple(candidate_key(row) for row in facts.rows))


CAPTION = (
    "One mark a method and epsilon asked (printed beside it); larger marks are weaker privacy. Filled: no other point is as "
    "good in the overall metric, the worst group's cost, the excess gap and epsilon, and better in one. Dashed: the limit. "
    "Outside the guarantee: for the audit only."
)
