"""The sentence says that a group pays only where its interval excludes 0."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import make_facts
from worker.engine.catalogue import METRICS
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.headline import headline, shown_epsilon
from worker.engine.metrics.loss import LOSS
from worker.engine.metrics.selection_rate import SELECTION_RATE
from worker.engine.results import EVERYONE, CostRow

ACCURACY = METRICS[0]
TITLES = {"dp-sgd": "DP-SGD"}
ROW = CostRow(
    method="dp-sgd",
    epsilon_asked=1.0,
    epsilon_spent=0.99998,
    group="g",
    group_label="women",
    n=2000,
    value=0.80,
    baseline=0.82,
    cost=0.02,
    low=0.01,
    high=0.03,
    interval="both",
    seeds=5,
)
ALL = replace(ROW, group=EVERYONE, group_label="everyone", cost=0.005, low=0.002, high=0.008)
TINY = replace(ROW, group="t", group_label="the few", n=30, cost=0.09, low=-0.05, high=0.23)


def _said(*rows: CostRow) -> str:
    return headline(rows, ACCURACY, TITLES, seeds_planned=5)


def test_a_large_estimate_of_a_tiny_group_does_not_outshout_a_sure_cost() -> None:
    assert _said(ALL, ROW, TINY) == (
        "At epsilon 1, DP-SGD costs group women 2.0 points of accuracy, 1.5 more than everyone; "
        "5 seeds, 95 % interval 1.0 to 3.0."
    )


def test_where_every_interval_includes_zero_no_cost_is_claimed() -> None:
    assert _said(ALL, TINY) == (
        "At epsilon 1, DP-SGD costs no group more than chance can explain: the largest estimate, 9.0 points of "
        "accuracy, is that of group the few; 5 seeds, 95 % interval -5.0 to 23.0, which includes 0."
    )


def test_a_sure_gain_is_not_called_a_cost() -> None:
    gain = replace(ROW, cost=-0.02, low=-0.03, high=-0.01)
    assert "costs no group" in _said(ALL, gain)


def test_before_the_rows_are_measured_the_largest_estimate_is_said_without_interval() -> None:
    assert _said(ALL, replace(ROW, low=None, high=None)).endswith("5 seeds, no interval yet.")


def test_partial_results_say_how_many_seeds_are_in() -> None:
    assert "3 of 5 seeds so far" in headline([ALL, replace(ROW, seeds=3)], ACCURACY, TITLES, seeds_planned=5)


def _say(facts, metric=ACCURACY, **point):
    return headline(cost_rows(facts, metric), metric, TITLES, seeds_planned=5, **point)


def test_nothing_finished_says_so() -> None:
    said = _say(make_facts(seeds=0, measured=False))
    assert said == "No private run has finished yet, so nothing can be said about its cost."


def test_under_three_seeds_the_interval_is_said_to_be_of_rows_only() -> None:
    assert "2 of 5 seeds so far, 95 % interval" in _say(make_facts(seeds=2))
    assert "(rows only)" in _say(make_facts(seeds=2))


def test_groups_that_cannot_be_judged_are_not_named() -> None:
    shares = {"sex=X": 0.0}
    assert "sex: X" not in _say(make_facts(groups=(("sex=X", 12), ("sex=Male", 300)), shares=shares))
    nobody = _say(make_facts(groups=(("sex=X", 12), ("sex=Y", 15))))
    assert nobody.endswith("no group has enough test rows to be judged.")


def test_a_change_has_no_cost_and_a_loss_is_in_nats() -> None:
    facts = make_facts(shares={"sex=Female": 0.4})
    rows = [replace(row, low=row.cost - 0.01, high=row.cost + 0.01) for row in cost_rows(facts, LOSS) if row.cost]
    assert "nats of loss" in headline(rows, LOSS, TITLES, seeds_planned=5)
    assert "costs" not in _say(facts, SELECTION_RATE)


def test_the_chosen_point_is_spoken_of() -> None:
    assert _say(make_facts(), epsilon=8.0).startswith("At epsilon 8, DP-SGD")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.99991, "1"), (1.0, "1"), (0.5, "0.5"), (3.41, "3.5"), (7.9999, "8"), (0.0312, "0.032"), (12.3, "13")],
)
def test_epsilon_is_rounded_up(value: float, shown: str) -> None:
    assert shown_epsilon(value) == shown


def test_what_diverged_is_not_said_to_be_coming() -> None:
    lost = replace(ALL, cost=None, low=None, high=None, reason="2 of 2 runs diverged and are left out")
    assert _said(lost).startswith("No cost can be given: 2 of 2 runs diverged and are left out.")
    waiting = replace(lost, reason="no run with a finished baseline yet")
    assert _said(waiting).startswith("No private run has finished yet")


def test_a_difference_that_rounds_to_nothing_is_not_named() -> None:
    assert "as much as everyone" in _said(replace(ALL, cost=0.0201), ROW)
