"""Laws that every chart keeps: figure and table say the facts, few traces, valid Plotly, harmless names."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.charts.base import MOST_GROUPS, MOST_TRACES, Chart, epsilon_text, mark_key, plain, signed
from frontend.charts.catalogue import CHARTS
from frontend.charts.group_costs import GROUP_COSTS
from frontend.charts.labels import apart
from frontend.charts.theme import HUES, PAPERS, stylesheet
from tests.frontend.facts import HOSTILE, make_facts, make_view
from worker.engine.results import EVERYONE

VIEWS = [{}, {"absolute": True}, {"narrow": True, "tone": "dark"}, {"group": f"sex={HOSTILE}"}, {"method": "pate-soft"}]
every_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.key)
every_view = pytest.mark.parametrize("changes", VIEWS, ids=str)
every_size = pytest.mark.parametrize("groups", [0, 2, 30])


@every_chart
@every_view
@every_size
def test_figure_is_valid_small_json(chart: Chart, changes: dict[str, object], groups: int) -> None:
    import plotly.graph_objects as go

    facts = make_facts(groups)
    figure = chart.figure(facts, make_view(facts, **changes))
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    go.Figure(figure)
    assert 0 < len(figure["data"]) <= MOST_TRACES
    assert len({t.get("meta", {}).get("group") for t in figure["data"] if "customdata" in t}) <= MOST_GROUPS


@every_chart
@every_view
@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_marks_say_the_facts(chart: Chart, changes: dict[str, object], metric: str) -> None:
    facts = make_facts(metric=metric)
    view = make_view(facts, **changes)
    by_key = {mark_key(row): row for row in facts.rows if row.epsilon_asked is not None}
    absolute = view.absolute and chart is GROUP_COSTS
    seen = 0
    for trace in chart.figure(facts, view)["data"]:
        for at, (key, spent, cost, low, high, value, baseline) in enumerate(trace.get("customdata", [])):
            row = by_key[key]
            assert (spent, cost, low, high, value, baseline) == (
                row.epsilon_spent, row.cost, row.low, row.high, row.value, row.baseline
            )  # fmt: skip
            axis = "y" if chart is GROUP_COSTS else "x"
            drawn, shown = trace[axis][at], row.value if absolute else row.cost
            assert (drawn is None) == (shown is None)
            if drawn is not None and row.low is not None and row.high is not None:
                error = trace[f"error_{axis}"]
                assert drawn == pytest.approx(shown * facts.scale)
                assert error["array"][at] + error["arrayminus"][at] == pytest.approx((row.high - row.low) * facts.scale)
                seen += 1
    assert seen


@every_chart
@every_view
def test_table_has_every_mark_with_its_numbers(chart: Chart, changes: dict[str, object]) -> None:
    facts = make_facts()
    view = make_view(facts, **changes)
    table = chart.table(facts, view)
    assert len(table.rows) == len(table.keys) == len(set(table.keys))
    assert all(len(cells) == len(table.columns) for cells in table.rows)
    marks = {entry[0] for trace in chart.figure(facts, view)["data"] for entry in trace.get("customdata", [])}
    assert marks <= set(table.keys)
    rows = {mark_key(row): row for row in facts.rows if row.epsilon_asked is not None}
    cost = table.columns.index("Cost (points)")
    for key, cells in zip(table.keys, table.rows, strict=True):
        row = rows[key]
        assert cells[1].text == row.group_label
        assert cells[cost].value == (None if row.cost is None else row.cost * 100)
        assert cells[cost].text == signed(None if row.cost is None else row.cost * 100)
        assert cells[-1].text == (row.reason or "")


@every_chart
def test_foreign_text_is_harmless_in_a_figure(chart: Chart) -> None:
    facts = make_facts()
    figure = chart.figure(facts, make_view(facts))
    for trace in figure["data"]:  # keys for linking, never rendered
        trace.pop("meta", None)
        trace.pop("customdata", None)
    text = json.dumps(figure)
    assert "<script" not in text
    assert "<b>" not in text
    assert "hovertemplate" not in text
    assert "&lt;script" in text


def test_epsilon_spent_is_drawn_on_a_log_axis_with_fixed_ticks() -> None:
    facts = make_facts()
    figure = GROUP_COSTS.figure(facts, make_view(facts))
    axis = figure["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert axis["tickvals"] == [0.1, 0.3, 1, 3, 10]
    for trace in figure["data"]:
        for x, entry in zip(trace.get("x", []), trace.get("customdata", []), strict=False):
            assert abs(math.log10(x / entry[1])) < 0.1
            assert axis["range"][0] < math.log10(x) < axis["range"][1]
    assert figure["layout"]["xaxis2"]["ticktext"] == ["no DP"]
    assert figure["layout"]["xaxis"]["domain"][1] < figure["layout"]["xaxis2"]["domain"][0]


def test_thirty_appears_where_points_lie_there() -> None:
    facts = make_facts(epsilons=(1.0, 30.0))
    assert 30 in GROUP_COSTS.figure(facts, make_view(facts))["layout"]["xaxis"]["tickvals"]


def test_panels_share_their_height_and_zero_is_in_it() -> None:
    facts = make_facts()
    ranges = [GROUP_COSTS.figure(facts, make_view(facts, method=m))["layout"]["yaxis"]["range"] for m in facts.methods]
    assert ranges[0] == ranges[1]
    assert ranges[0][0] < 0 < ranges[0][1]


def test_what_cannot_be_judged_is_hollow_and_what_is_withheld_is_named() -> None:
    facts = make_facts(groups=4)
    figure = GROUP_COSTS.figure(facts, make_view(facts))
    by_group = {trace["meta"]["group"]: trace for trace in figure["data"] if "customdata" in trace}
    assert all(symbol.endswith("-open") for symbol in by_group["race=group 2"]["marker"]["symbol"])
    assert not any(symbol.endswith("-open") for symbol in by_group[EVERYONE]["marker"]["symbol"])
    assert by_group["race=group 3"]["y"] == [None, None, None]
    assert any("race: group 3" in note["text"] for note in figure["layout"]["annotations"])


def test_a_wide_interval_runs_out_of_the_panel_and_says_so() -> None:
    facts = make_facts()
    figure = GROUP_COSTS.figure(facts, make_view(facts))
    low, high = figure["layout"]["yaxis"]["range"]
    beyond = next(trace for trace in figure["data"] if trace["name"] == "interval runs on")
    assert set(beyond["y"]) <= {low, high}
    marks = [y for trace in figure["data"] if "customdata" in trace for y in trace["y"] if y is not None]
    assert low < min(marks) <= max(marks) < high


@given(st.lists(st.floats(-50, 50), max_size=12), st.floats(0.1, 8))
def test_labels_keep_apart_and_in_order(heights: list[float], gap: float) -> None:
    placed = apart(heights, gap, -60, 60)
    room = min(gap, 120 / max(len(heights) - 1, 1))
    assert all(-60 - 1e-6 <= value <= 60 + 1e-6 for value in placed)
    for below, above in pairwise(sorted(placed)):
        assert above - below >= room - 1e-6
    for (a, at), (b, bt) in pairwise(sorted(zip(heights, placed, strict=True))):
        assert a == b or at < bt


@given(st.floats(1e-3, 1e3))
def test_epsilon_is_rounded_up_and_little(value: float) -> None:
    shown = float(epsilon_text(value))
    assert value <= shown * (1 + 1e-6)
    assert shown <= value * 1.011


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0.0"), (-0.04, "0.0"), (1.25, "+1.2"), (-1.3, "−1.3"), (None, "—")]
)
def test_signs(value: float | None, text: str) -> None:
    assert signed(value) == text


def test_plain_text_cannot_be_markup() -> None:
    assert plain(HOSTILE).count("<") == 0
    assert len(plain("x" * 500, 20)) == 20


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("tone", ["light", "dark"])
def test_colours_reach_the_contrast_of_aa(tone: str) -> None:
    paper = PAPERS[tone]  # type: ignore[index] # the two tones
    for ground in (paper.paper, paper.wash):
        for text in (paper.ink, paper.quiet, paper.accent, paper.warning):
            assert contrast(text, ground) >= 4.5
    assert contrast(paper.on_accent, paper.accent) >= 4.5
    assert contrast(paper.edge, paper.paper) >= 3
    for hue in HUES.values():
        assert contrast(hue.on(tone), paper.paper) >= 3  # type: ignore[arg-type] # the two tones


def test_style_sheets_have_no_colours_of_their_own() -> None:
    from frontend.pages.rendering import FILES

    for name, body in FILES.items():
        if name.endswith(".css") and name != "theme.css":
            assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", body.decode()), name
    assert PAPERS["dark"].paper in stylesheet()
