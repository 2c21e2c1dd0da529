"""Marks: Holm by hand, contrasts by brute force, a planted cost is found, a filter changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.facts.audits import make_audit
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.marks import family_groups, holm, mark_rows, marked
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.loss import LOSS
from worker.engine.results import EVERYONE


def against_women(data, epsilon):
    women = next(group.member for group in data.groups if group.key == "sex=Female")
    return np.where(women & (epsilon < 4), 2.0, 0.0)


@pytest.fixture(scope="module")
def planted():
    return make_audit(seeds=6, methods=("dp-sgd", "pate"), harm=against_women, with_floors=False).facts


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03], 3) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.01, None, 0.03], 3) == pytest.approx([0.03, None, 0.06])
    assert holm([0.9, 0.8], 5) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_adjusted_chances_are_larger_and_keep_their_order(chances):
    adjusted = holm(chances, len(chances))
    pairs = sorted(zip(chances, adjusted, strict=True))
    assert all(0 <= p <= q <= 1 for p, q in pairs)
    assert [q for _, q in pairs] == sorted(q for _, q in pairs)


def test_the_family_is_every_judged_group_and_method(planted):
    rows = mark_rows(planted)
    groups = [planted.groups[at].key for at in family_groups(planted)]
    assert EVERYONE not in groups
    assert {(row.method, row.group) for row in rows} == {(m, g) for m in ("dp-sgd", "pate") for g in groups}
    assert {row.family for row in rows} == {2 * len(groups)}


def test_a_difference_is_a_groups_cost_less_that_of_the_others(planted):
    costs = {(r.method, r.epsilon_asked, r.group): r.cost for r in cost_rows(planted, ACCURACY)}
    sizes = {group.key: group.n for group in planted.groups}
    everyone = sizes[EVERYONE]
    for row in mark_rows(planted):
        expected = []
        for epsilon in (1.0, 8.0):
            own, whole = costs[row.method, epsilon, row.group], costs[row.method, epsilon, EVERYONE]
            expected.append(own - (everyone * whole - sizes[row.group] * own) / (everyone - sizes[row.group]))
        assert row.difference == pytest.approx(np.mean(expected), abs=1e-9)
        assert row.low < row.difference < row.high


def test_a_planted_cost_is_marked_and_only_where_it_is(planted):
    by_group = {(row.method, row.group): row.marked for row in mark_rows(planted)}
    assert by_group["dp-sgd", "sex=Female"] is True
    assert by_group["dp-sgd", "sex=Male"] is False
    found = marked(planted)
    assert found["dp-sgd", 1.0, "sex=Female"] is True
    assert found["dp-sgd", 8.0, "sex=Female"] is False
    assert found["dp-sgd", 1.0, "sex=Male"] is False


def test_marks_do_not_depend_on_the_metric_looked_at(planted):
    known = marked(planted)
    for metric in (ACCURACY, LOSS):
        rows = cost_rows(planted, metric, "sampling", known)
        shown = {(r.method, r.epsilon_asked, r.group): r.marked for r in rows if r.marked is not None}
        assert shown == {key: value for key, value in known.items() if value is not None}


def test_under_three_seeds_nothing_is_marked_and_it_says_why():
    facts = make_audit(seeds=2, harm=against_women, with_floors=False).facts
    rows = mark_rows(facts)
    assert rows
    assert all(row.marked is None and row.p is None and row.reason_code == "too_few_seeds" for row in rows)


def test_a_family_without_measurements_waits(planted):
    rows = mark_rows(replace(planted, measurements=()))
    assert all(row.marked is None and row.reason_code == "unmeasured" for row in rows)
