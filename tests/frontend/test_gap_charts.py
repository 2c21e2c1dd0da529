"""Laws of the charts of gaps and of the trade-off: figure and table say the facts, valid JSON, harmless names."""

from __future__ import annotations

import json

import plotly.graph_objects
import pytest

from frontend.charts.gap_lines import GapFacts, gap_caption, gap_figure, gap_table
from frontend.charts.tradeoff_points import CandidateFacts, candidate_figure, candidate_table
from tests.frontend.facts import HOSTILE
from worker.engine.facts.rows import CandidateRow, GapRow

METHODS = ("dp-sgd", "pate")


def gaps(percent: bool = True) -> GapFacts:
    """A baseline, and two methods with a point that has no number and one that has no interval."""
    rows = [GapRow("non-private", None, None, "accuracy", "sex", 2, 1, gap=0.05, reason="this is the baseline")]
    for method in METHODS:
        for epsilon in (0.3, 1.0, 8.0):
            names = (method, epsilon, epsilon * 0.99, "accuracy", "sex", 2, 1)
            whole = GapRow(
                *names, highest="sex=a", lowest=f"sex={HOSTILE}", gap=0.08, gap_low=0.02, gap_high=0.12, baseline_gap=0.05,
                excess=0.03, low=-0.01, high=0.06, signed=-0.08, ratio=0.9, cost_gap=0.04, xi=0.02, floor=0.02,
                floor_upper=0.03, excess_floor=0.01, excess_floor_upper=0.02, seeds=5,
            )  # fmt: skip
            bare = GapRow(*names, gap=0.07, baseline_gap=0.05, excess=0.02, reason="the rows are still being measured")
            nothing = GapRow(*names, reason="cannot be computed: fewer than two groups can be judged")
            rows.append({0.3: nothing, 1.0: bare}.get(epsilon, whole))
    labels = {f"sex={HOSTILE}": f"sex: {HOSTILE}", "sex=a": "sex: a"}
    return GapFacts(tuple(rows), "Accuracy gap", "sex", percent, labels, {"dp-sgd": "DP-SGD", "pate": HOSTILE})


def candidates() -> CandidateFacts:
    rows = [
        CandidateRow(m, e, e, "accuracy", 0.8, 0.02, 0.03, f"sex={HOSTILE}", 0.01, "sex", e == 1.0, True, 2)
        for m in METHODS
        for e in (1.0, 8.0)
    ]
    rows.append(
        CandidateRow("dp-sgd", 0.1, None, "accuracy", None, None, None, None, None, None, None, None, 2, reason="x")
    )
    labels = {f"sex={HOSTILE}": HOSTILE}
    return CandidateFacts(tuple(rows), "Accuracy", True, True, 3.0, labels, {"dp-sgd": "DP-SGD", "pate": HOSTILE})


@pytest.mark.parametrize("shown", ["gap", "excess"])
@pytest.mark.parametrize("percent", [True, False])
@pytest.mark.parametrize("narrow", [True, False])
def test_marks_of_gaps_say_the_facts_and_every_row_is_in_the_table(shown, percent, narrow):
    facts = gaps(percent)
    figure = gap_figure(facts, shown, "dark" if narrow else "light", narrow=narrow)
    text = json.dumps(figure, allow_nan=False)
    plotly.graph_objects.Figure(figure)
    assert "<script" not in text
    rows = {row[0]: row for trace in figure["data"] for row in trace.get("customdata", [])}
    numbers = [row for row in facts.rows if row.method != "non-private" and getattr(row, shown) is not None]
    assert len(rows) == len(numbers) == 4
    low, high = figure["layout"]["yaxis"]["range"]
    for trace in figure["data"]:
        for y in trace["y"]:
            assert low <= y <= high
        for entry, y in zip(trace.get("customdata", []), trace["y"], strict=False):
            assert y == pytest.approx(entry[2] * facts.scale)
    table = gap_table(facts)
    assert len(table.rows) == len(facts.rows)
    assert set(rows) <= set(table.keys)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert any("still being measured" in row[-1].text for row in table.rows)


def test_a_caption_says_who_is_left_out():
    assert "1 of 3 groups cannot be judged and set no gap" in gap_caption(gaps(), "gap")


def test_the_trade_off_draws_what_has_numbers_and_lists_all():
    facts = candidates()
    figure = candidate_figure(facts, "light", narrow=False)
    text = json.dumps(figure, allow_nan=False)
    plotly.graph_objects.Figure(figure)
    assert "<script" not in text
    marks = [entry for trace in figure["data"] for entry in trace["customdata"]]
    assert len(marks) == 4
    filled = [symbol for trace in figure["data"] for symbol in trace["marker"]["symbol"]]
    assert filled == ["circle", "circle-open"] * 2
    table = candidate_table(facts)
    assert len(table.rows) == 5
    assert {entry[0] for entry in marks} <= set(table.keys)


def test_without_any_candidate_the_figure_is_still_valid():
    empty = CandidateFacts((), "Accuracy", True, True, 3.0)
    plotly.graph_objects.Figure(candidate_figure(empty, "dark", narrow=True))
