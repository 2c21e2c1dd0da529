"""Gaps against plain loops and Fairlearn, their intervals, and what must never set one."""

from __future__ import annotations

from dataclasses import replace

import fairlearn.metrics as fairlearn
import numpy as np
import pytest

from tests.builders import make_data, make_facts
from tests.engine.facts.audits import make_audit
from tests.engine.facts.test_marks import against_women
from worker.engine.catalogue import METRICS
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.disparities import disparity_rows
from worker.engine.facts.gaps import equalized_odds, gap_rows
from worker.engine.facts.grid import attribute_set
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.loss import LOSS
from worker.engine.results import EVERYONE

BY_KEY = {metric.key: metric for metric in METRICS}


@pytest.fixture(scope="module")
def facts():
    return make_audit(seeds=5, harm=against_women).facts


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_gaps_are_spreads_of_the_cost_rows(facts, metric):
    rows = {(r.method, r.epsilon_asked, r.group): r for r in cost_rows(facts, metric)}
    sets = {}
    for group in facts.groups:
        if group.key != EVERYONE:
            sets.setdefault(attribute_set(group.attributes), []).append(group.key)
    checked = 0
    for row in gap_rows(facts, metric):
        own = [rows[row.method, row.epsilon_asked, key] for key in sets[row.by]]
        fit = [r for r in own if r.value is not None and "to judge" not in (r.reason or "")]
        assert (row.groups, row.groups + row.left_out) == (len(fit), len(own))
        if len(fit) < 2:
            assert row.gap is None
            assert row.reason_code == "fewer_than_two_groups"
            continue
        values = [r.value for r in fit]
        assert row.gap == pytest.approx(max(values) - min(values), abs=1e-9)
        if row.method == "non-private":
            assert row.excess is None
            continue
        checked += 1
        base, costs = [r.baseline for r in fit], [r.cost for r in fit]
        whole = rows[row.method, row.epsilon_asked, EVERYONE].cost
        assert row.baseline_gap == pytest.approx(max(base) - min(base), abs=1e-9)
        assert row.excess == pytest.approx(row.gap - row.baseline_gap, abs=1e-9)
        assert row.cost_gap == pytest.approx(max(costs) - min(costs), abs=1e-9)
        assert row.xi == pytest.approx(max(abs(cost - whole) for cost in costs), abs=1e-9)
        assert row.ratio == pytest.approx(min(values) / max(values), abs=1e-9)
        assert row.gap_low <= row.gap <= row.gap_high
        assert row.low <= row.excess <= row.high
        assert abs(row.excess) <= row.cost_gap + 1e-9
    assert checked >= 4


def test_disparities_of_one_network_are_those_of_fairlearn():
    made = make_audit(make_data(3000, intersections=()), seeds=1, epsilons=(1.0,), with_floors=False)
    data, test = made.data, made.data.parts == 2
    sex = np.where(next(g.member for g in data.groups if g.key == "sex=Female")[test], "f", "m")
    truth = data.labels[test]
    said = _predicted(made)
    named = {(r.metric, r.by): r for key in ("selection_rate", "true_positive_rate", "false_positive_rate")
             for r in gap_rows(made.facts, BY_KEY[key]) if r.method == "dp-sgd"}  # fmt: skip
    parity = named["selection_rate", "sex"]
    assert parity.gap == pytest.approx(fairlearn.demographic_parity_difference(truth, said, sensitive_features=sex))
    assert parity.ratio == pytest.approx(fairlearn.demographic_parity_ratio(truth, said, sensitive_features=sex))
    opportunity = named["true_positive_rate", "sex"]
    assert opportunity.gap == pytest.approx(fairlearn.equal_opportunity_difference(truth, said, sensitive_features=sex))
    pair = [
        [r for r in gap_rows(made.facts, BY_KEY[f"{kind}_positive_rate"]) if r.by == "sex"]
        for kind in ("true", "false")
    ]
    odds = next(r for r in equalized_odds(*pair) if r.method == "dp-sgd")
    assert odds.gap == pytest.approx(fairlearn.equalized_odds_difference(truth, said, sensitive_features=sex))


def _predicted(made):
    """Predictions of the private run that give its counts: by sex and race, rows are interchangeable."""
    data, test = made.data, np.flatnonzero(made.data.parts == 2)
    run = next(run for run in made.facts.runs if run.method == "dp-sgd")
    found = np.zeros(len(test), int)
    for key in ("sex=Female", "sex=Male"):
        member = next(g.member for g in data.groups if g.key == key)[test]
        for row in run.statistics:
            if row.group == key and row.part == "test":
                places = np.flatnonzero(member & (data.labels[test] == row.label))
                found[places[: row.predicted[1]]] = 1
    return found


def test_a_planted_gap_is_found_and_its_interval_excludes_zero(facts):
    rows = {(r.epsilon_asked, r.by): r for r in gap_rows(facts, ACCURACY)}
    harmed, spared = rows[1.0, "sex"], rows[8.0, "sex"]
    assert harmed.lowest == "sex=Female"
    assert harmed.excess > harmed.low > 0
    assert harmed.gap > harmed.floor_upper > harmed.floor > 0
    assert harmed.excess > harmed.excess_floor_upper
    assert spared.low < 0 < spared.high


def test_a_tiny_group_sets_no_gap_and_is_counted():
    given = (("sex=Female", 200), ("sex=Male", 300), ("sex=X", 12))
    facts = make_facts(groups=given, shares={"sex=X": 0.0})
    row = next(r for r in gap_rows(facts, ACCURACY) if r.epsilon_asked == 1.0)
    assert (row.groups, row.left_out) == (2, 1)
    assert "sex=X" not in (row.highest, row.lowest)


def test_a_turned_order_shows_in_the_signed_difference():
    facts = make_facts(
        groups=(("sex=Female", 3000), ("sex=Male", 3000)), shares={"sex=Female": 0.6, "sex=Male": 0.9}, seed=3
    )
    base = make_facts(groups=(("sex=Female", 3000), ("sex=Male", 3000)), seed=3)
    row = next(r for r in gap_rows(facts, ACCURACY) if r.epsilon_asked == 1.0)
    assert row.signed == pytest.approx(row.gap) or row.signed == pytest.approx(-row.gap)
    assert row.cost_gap >= abs(row.excess)
    assert gap_rows(base, ACCURACY)


def test_without_measurements_there_is_a_gap_and_a_reason_for_no_interval(facts):
    row = next(r for r in gap_rows(replace(facts, measurements=()), ACCURACY) if r.epsilon_asked == 1.0)
    assert row.gap is not None
    assert (row.low, row.gap_low) == (None, None)
    assert row.reason_code == "unmeasured"


def test_groups_stand_beside_the_best_and_beside_a_reference(facts):
    for metric in (ACCURACY, LOSS):
        costs = cost_rows(facts, metric)
        best = [r for r in disparity_rows(costs, metric) if r.epsilon_asked == 1.0]
        sign = 1 if metric is ACCURACY else -1
        judged = [r for r in best if r.group != EVERYONE and r.reason is None]
        assert all(sign * r.difference <= 1e-12 for r in judged)
        assert sum(r.difference == 0 for r in judged) >= 1
        against = disparity_rows(costs, metric, "sex=Male")
        male = next(r for r in against if r.group == "sex=Male" and r.epsilon_asked == 1.0)
        assert (male.difference, male.ratio) == (0.0, 1.0)
    nobody = disparity_rows(costs, LOSS, "sex=Nobody")
    assert all(r.difference is None and r.reason for r in nobody)
