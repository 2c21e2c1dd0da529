"""Measurements against a loop over rows, and against the costs made from counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.builders import category, make_data, make_roles, make_table, table_of
from worker.engine.audits.measure import measure, quantity_values
from worker.engine.datasets.encode import encode, make_encoding
from worker.engine.datasets.split import assign_parts

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
    if quantity == "correct":
        return float(predicted == label)
    if quantity == "predicted_positive":
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
@pytest.mark.parametrize("quantity", ["correct", "loss", "predicted_positive"])
def test_measurements_equal_a_loop(make, quantity):
    data = make()
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    found = {(m.group, m.label): m for m in measure(tables, runs_of(), data, [quantity])}
    assert len(found) == len(data.groups) * (1 + data.classes)
    for group, label in (("everyone", None), ("sex=Female", None), ("sex=Male", 1), ("sex=Female", 0)):
        row = found[group, label]
        assert (row.seeds, row.quantity, row.part, row.epsilon) == (SEEDS, quantity, "test", 1.0)
        for key, expected in slow_measurement(data, tables, group, label, quantity).items():
            assert getattr(row, key) == pytest.approx(expected, rel=1e-9, abs=1e-9), key


def test_seeds_without_a_finished_pair_are_left_out():
    data = make_data()
    tables = {seed: make_logits(data, seed) for seed in SEEDS}
    known = runs_of()
    del known["non-private-1"]
    assert {m.seeds for m in measure(tables, known, data)} == {(0, 2)}
    del known["dp-sgd-2"]
    assert {m.seeds for m in measure(tables, known, data)} == {(0,)}
    del known["non-private-0"]
    rows = measure(tables, known, data)
    assert all(m.total is None and m.reason == "no finished seed" for m in rows)


def test_an_empty_group_is_a_row_with_a_reason():
    data = make_data()
    nobody = replace(data.groups[1], member=np.zeros(len(data.labels), dtype=bool))
    data = replace(data, groups=(data.groups[0], nobody))
    tables = {0: make_logits(data, 0)}
    rows = [m for m in measure(tables, runs_of((0,)), data) if m.group == nobody.key]
    assert rows
    assert all(m.total is None and m.reason == "no test rows" and m.units == 0 for m in rows)


def test_an_even_logit_is_the_other_class_and_losses_stay_finite():
    logits, labels = np.array([[0.0], [1e4], [-1e4]]), np.array([0, 0, 0])
    assert quantity_values("predicted_positive", logits, labels).tolist() == [0, 1, 0]
    assert quantity_values("loss", logits, labels).tolist() == pytest.approx([np.log(2), -np.log(1e-12), 0])
