"""The sentence says that a group pays only where its interval excludes 0."""

from __future__ import annotations

from dataclasses import replace

from worker.engine.catalogue import METRICS
from worker.engine.facts.headline import headline
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
