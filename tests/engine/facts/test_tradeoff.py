"""The trade-off: the Pareto set against brute force, and the answer by its rule."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import make_data
from tests.engine.facts.audits import make_audit
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.tradeoff import tradeoff
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.selection_rate import SELECTION_RATE

TITLES = {"dp-sgd": "DP-SGD", "pate": "PATE"}


def by_epsilon(data, epsilon):
    """Everybody loses much at strong privacy, women at epsilon 2 too."""
    women = next(group.member for group in data.groups if group.key == "sex=Female")
    return np.where(women, 1.5 if epsilon < 4 else 0.0, 1.5 if epsilon < 1 else 0.0)


@pytest.fixture(scope="module")
def facts():
    data = make_data(8000, intersections=())
    return make_audit(data, seeds=6, epsilons=(0.5, 2.0, 8.0), methods=("dp-sgd", "pate"), harm=by_epsilon,
                      with_floors=False).facts  # fmt: skip


def test_the_answer_stops_at_the_first_failure(facts):
    found = tradeoff(facts, ACCURACY, TITLES, group_min=200, max_cost=0.06)
    passes = {(row.method, row.epsilon_asked): row.passes for row in found.rows}
    assert passes["dp-sgd", 8.0] is True
    assert passes["dp-sgd", 2.0] is False
    assert found.epsilon_asked == 8.0
    assert "Down to epsilon 8" in found.answer


def test_a_strict_limit_has_no_answer_and_a_loose_one_the_strongest(facts):
    strict = tradeoff(facts, ACCURACY, TITLES, group_min=200, max_cost=-0.5)
    assert (strict.method, strict.epsilon_asked) == (None, None)
    assert "At no epsilon" in strict.answer
    loose = tradeoff(facts, ACCURACY, TITLES, group_min=200, max_cost=0.9)
    assert loose.epsilon_asked == 0.5


def test_upper_limits_lie_above_costs_and_within_the_bonferroni_interval(facts):
    rows = {(r.method, r.epsilon_asked, r.group): r for r in cost_rows(facts, ACCURACY)}
    for row in tradeoff(facts, ACCURACY, TITLES, group_min=200, max_cost=0.03).rows:
        worst = rows[row.method, row.epsilon_asked, row.worst_group]
        assert row.worst_cost == worst.cost
        assert row.worst_upper >= worst.high - 1e-9  # one-sided 0.975 with two methods is the two-sided 0.95 end


def test_unbeaten_points_are_those_that_no_other_beats(facts):
    rows = tradeoff(facts, ACCURACY, TITLES, group_min=200, max_cost=0.03).rows
    for row in rows:
        beaten = any(
            other.overall >= row.overall
            and other.worst_cost <= row.worst_cost
            and other.excess <= row.excess
            and other.epsilon_spent <= row.epsilon_spent
            and other != row
            for other in rows
        )
        assert row.pareto is (not beaten)
    assert any(row.pareto for row in rows)


def test_groups_that_are_too_small_are_not_part_of_the_question(facts):
    found = tradeoff(facts, ACCURACY, TITLES, group_min=10**6, max_cost=0.03)
    assert all(
        row.groups == 0 and row.passes is None and row.reason_code == "no_group_of_this_size" for row in found.rows
    )
    assert "no group has so many test rows" in found.answer


def test_a_metric_without_direction_has_no_cost_to_limit(facts):
    assert "no better or worse" in tradeoff(facts, SELECTION_RATE, TITLES, group_min=200, max_cost=0.03).answer


def test_under_three_seeds_nothing_is_shown():
    facts = make_audit(seeds=2, with_floors=False).facts
    found = tradeoff(facts, ACCURACY, TITLES, group_min=50, max_cost=0.9)
    assert all(row.passes is None and row.reason for row in found.rows)
    assert "cannot be said yet" in found.answer
