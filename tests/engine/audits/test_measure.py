"""Measurements against a loop over rows, and against the costs made from counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.builders import category, make_data, make_roles, make_table, table_of
from worker.engine.audits.floors import floors
from worker.engine.audits.measure import measure, run_values
from worker.engine.audits.outcomes import outcomes_of
from worker.engine.catalogue import METRICS
from worker.engine.datasets.encode import encode, make_encoding
from worker.engine.datasets.split import assign_parts
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.calibration_error import CALIBRATION_ERROR
from worker.engine.metrics.loss import LOSS
from worker.engine.metrics.precision import PRECISION
from worker.engine.metrics.selection_rate import SELECTION_RATE
from worker.engine.metrics.true_positive_rate import TRUE_POSITIVE_RATE
from worker.engine.results import LEVEL, PRIMARY, REST

SEEDS = (0, 1, 2)
EVALUATED = (1, 2)


@dataclass(frozen=True)
class Logits:
    row_ids: np.ndarray
    logits: dict[str, np.ndarray]


def make_logits(data, seed, methods=("non-private", "dp-sgd")):
    """Random logits of the validation and test rows, in an order of their own."""
    draw = np.random.default_rng(seed)
    rows = draw.permutation(data.row_ids[np.isin(data.parts, EVALUATED)])
    shape = (len(rows),) if data.classes == 2 else (len(rows), data.classes)
    return Logits(rows, {f"{method}-{seed}": draw.normal(size=shape).astype(np.float32) for method in methods})


def runs_of(seeds=SEEDS):
    known = {f"non-private-{seed}": ("non-private", None, seed) for seed in seeds}
    return known | {f"dp-sgd-{seed}": ("dp-sgd", 1.0, seed) for seed in seeds}


def slow_value(quantity, logit, label):
    scores = [0.0, float(logit)] if np.ndim(logit) == 0 else [float(x) for x in logit]
    predicted = scores.index(max(scores))
    if quantity == "accuracy":
        return float(predicted == label)
    if quantity in ("selection_rate", "true_positive_rate"):
        return float(predicted == 1)
    top = max(scores)
    return top + np.log(sum(np.exp(x - top) for x in scores)) - scores[label]


def slow_measurement(data, tables, group, label, quantity):
    """Sums over units by plain loops."""
    member = next(g.member for g in data.groups if g.key == group)
    by_unit: dict[int, list[float]] = {}
    rows: dict[int, int] = {}
    for i in np.flatnonzero(member & (data.parts == 2)):
        if label is not None and data.labels[i] != label:
            continue
        unit = int(data.unit_ids[i])
        rows[unit] = rows.get(unit, 0) + 1
        sums = by_unit.setdefault(unit, [0.0] * len(tables))
        for place, (seed, table) in enumerate(tables.items()):
            at = int(np.flatnonzero(table.row_ids == data.row_ids[i])[0])
            base, run = (table.logits[f"{method}-{seed}"][at] for method in ("non-private", "dp-sgd"))
            sums[place] += slow_value(quantity, base, data.labels[i]) - slow_value(quantity, run, data.labels[i])
    means = {unit: sum(sums) / len(sums) for unit, sums in by_unit.items()}
    each = [sum(sums[place] ** 2 for sums in by_unit.values()) for place in range(len(tables))]
    return {
        "units": len(rows),
        "rows": sum(rows.values()),
        "total": sum(means.values()),
        "total_squared": sum(value**2 for value in means.values()),
        "cross": sum(means[unit] * rows[unit] for unit in rows),
        "rows_squared": sum(n**2 for n in rows.values()),
        "total_each_squared": sum(each) / len(each),
    }


def persons_data():
    table, roles = make_table(), make_roles(person_id="who")
    table = table_of(*table.columns, category("who", [f"p{i % 150}" for i in range(600)]))
    parts = assign_parts(table, roles, "d" * 32)
    return encode(table, roles, parts, make_encoding(table, roles, parts), ["sex=Female", "sex=Male"])


def three_classes():
    data = make_data()
    return replace(data, classes=3, labels=(data.labels + data.row_ids) % 3)


@pytest.mark.parametrize("make", [make_data, persons_data, three_classes])
@pytest.mark.parametrize("metric", [ACCURACY, LOSS, SELECTION_RATE, TRUE_POSITIVE_RATE], ids=lambda metric: metric.key)
def test_measurements_equal_a_loop(make, metric):
    data = make()
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    found = {m.group: m for m in measure(tables, runs_of(), data, [metric]) if m.quantity == metric.key}
    assert list(found) == [group.key for group in data.groups]
    for group in found:
        row = found[group]
        assert (row.seeds, row.label, row.part, row.epsilon) == (SEEDS, metric.label, "test", 1.0)
        slow = slow_measurement(data, tables, group, metric.label, metric.key)
        if not slow["rows"]:
            slow = {"units": 0, "rows": 0}
            assert row.reason in ("no_rows", "no_rows_with_label")
        for key, expected in slow.items():
            assert getattr(row, key) == pytest.approx(expected, rel=1e-9, abs=1e-9), key


def test_levels_hold_the_baseline_too():
    data = make_data()
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    rows = [m for m in measure(tables, runs_of(), data) if m.quantity == LEVEL + PRIMARY and m.group == "everyone"]
    by_method = {m.method: m.total / m.rows for m in rows}
    difference = next(m for m in measure(tables, runs_of(), data) if m.quantity == PRIMARY and m.group == "everyone")
    expected = by_method["non-private"] - by_method["dp-sgd"]
    assert difference.total / difference.rows == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("make", [make_data, persons_data])
def test_a_contrast_is_a_groups_difference_less_that_of_all_others(make):
    data = make()
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    known = runs_of() | {f"twice-{seed}": ("dp-sgd", 2.0, seed) for seed in SEEDS}
    for seed in SEEDS:
        tables[seed].logits[f"twice-{seed}"] = tables[seed].logits[f"dp-sgd-{seed}"][::-1].copy()
    rows = measure(tables, known, data)
    means = {(m.epsilon, m.group): m.total / m.rows for m in rows if m.quantity == PRIMARY}
    sizes = {m.group: m.rows for m in rows if m.quantity == PRIMARY}
    contrasts = {(m.epsilon, m.group): m.total / m.rows for m in rows if m.quantity == REST + PRIMARY}
    others = data.parts == 2
    for group in (g for g in data.groups if g.key != "everyone"):
        rest = int((others & ~group.member).sum())
        for epsilon in (1.0, 2.0):
            total = means[epsilon, group.key] * sizes[group.key]
            everyone = _mean_of_all(tables, data, known, epsilon)
            of_rest = (everyone * int(others.sum()) - total) / rest
            assert contrasts[epsilon, group.key] == pytest.approx(means[epsilon, group.key] - of_rest, abs=1e-12)
        pooled = (contrasts[1.0, group.key] + contrasts[2.0, group.key]) / 2
        assert contrasts[None, group.key] == pytest.approx(pooled, abs=1e-12)


def _mean_of_all(tables, data, known, epsilon):
    costs = []
    for seed, table in tables.items():
        names = {m: run for run, (m, e, s) in known.items() if s == seed and e in (None, epsilon)}
        places = {int(row): at for at, row in enumerate(table.row_ids)}
        for row in np.flatnonzero(data.parts == 2):
            at = places[int(data.row_ids[row])]
            right = [float((table.logits[names[m]][at] > 0) == data.labels[row]) for m in ("non-private", "dp-sgd")]
            costs.append(right[0] - right[1])
    return float(np.mean(costs))


def test_seeds_without_a_finished_pair_are_left_out():
    data = make_data()
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    known = runs_of()

    def seeds():
        return {m.seeds for m in measure(tables, known, data) if m.quantity == PRIMARY}

    del known["non-private-1"]
    assert seeds() == {(0, 2)}
    del known["dp-sgd-2"]
    assert seeds() == {(0,)}
    del known["non-private-0"]
    rows = [m for m in measure(tables, known, data) if m.quantity == PRIMARY]
    assert rows
    assert all(m.total is None and m.reason == "no_finished_seed" for m in rows)


def test_an_empty_group_is_a_row_with_a_reason():
    data = make_data()
    nobody = replace(data.groups[1], member=np.zeros(len(data.labels), dtype=bool))
    data = replace(data, groups=(data.groups[0], nobody))
    rows = [m for m in measure({0: make_logits(data, 0)}, runs_of((0,)), data, METRICS) if m.group == nobody.key]
    assert len(rows) == 3 * len(METRICS)
    assert all(m.total is None and m.reason in ("no_rows", "no_rows_with_label") and m.units == 0 for m in rows)


def test_nobody_predicted_is_a_reason_and_not_a_number():
    data = make_data()
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    tables[1].logits["dp-sgd-1"][:] = -5.0
    rows = {m.group: m for m in measure(tables, runs_of(), data, [PRECISION]) if m.quantity == "precision"}
    assert all(m.total is None and m.reason == "nobody_predicted" for m in rows.values())


def test_values_of_runs_are_those_that_counts_cannot_give():
    data = make_data()
    rows = run_values({0: make_logits(data, 0)}, runs_of((0,)), data, METRICS)
    assert {row.metric for row in rows} == {"auc", "calibration_error"}
    assert {row.run for row in rows} == {"non-private-0", "dp-sgd-0"}
    assert all(row.value is None or 0 <= row.value <= 1 for row in rows)


def test_an_even_logit_is_the_other_class_and_losses_stay_finite():
    logits, labels = np.array([[[0.0], [1e4], [-1e4]]], np.float32), np.array([0, 0, 0])
    found = outcomes_of(logits, labels, 2)
    assert found.favourable.tolist() == [[0, 1, 0]]
    assert found.loss[0].tolist() == pytest.approx([np.log(2), -np.log(1e-12), 0])


# -- floors ---------------------------------------------------------------------------------------------------------------

FAMILIES = {"sex": ("sex=Female", "sex=Male"), "race": ("race=Black", "race=Other", "race=White")}


def test_a_floor_is_a_mean_over_shuffles_and_the_pairing_narrows_the_excess():
    data = make_data(3000)
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    for seed in SEEDS:  # nearly the same network with and without privacy
        close = tables[seed].logits[f"non-private-{seed}"] + np.float32(0.05)
        tables[seed].logits[f"dp-sgd-{seed}"] = close
    rows = floors(tables, runs_of(), data, [ACCURACY, LOSS], FAMILIES, fewest_with_label=5)
    found = {(row.metric, row.by): row for row in rows}
    assert len(found) == 4
    for row in found.values():
        assert 0 < row.gap < row.gap_upper
        assert abs(row.excess) < row.gap / 5
    sizes = [int((g.member & (data.parts == 2)).sum()) for g in data.groups if g.key in FAMILIES["sex"]]
    right = 0.5 * np.sqrt(1 / 3 * sum(1 / n for n in sizes)) * np.sqrt(2 / np.pi)
    assert found["accuracy", "sex"].gap == pytest.approx(right, rel=0.35)


def test_a_floor_that_cannot_be_had_says_why():
    data = make_data()
    tables = {0: make_logits(data, 0)}
    rows = floors(tables, runs_of((0,)), data, [CALIBRATION_ERROR], {"sex": FAMILIES["sex"]}, fewest_with_label=5)
    assert [(row.gap, row.reason) for row in rows] == [(None, "no_floor")]
    rows = floors(tables, runs_of((0,)), data, [TRUE_POSITIVE_RATE], {"sex": FAMILIES["sex"]}, fewest_with_label=10**6)
    assert [(row.gap, row.reason) for row in rows] == [(None, "fewer_than_two_groups")]
