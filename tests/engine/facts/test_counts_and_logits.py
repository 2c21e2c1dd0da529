"""Costs made from stored counts and sums made from stored logits are the same numbers, for every metric and group."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.builders import make_data, make_group
from worker.engine.audits.execute import run_results
from worker.engine.audits.measure import measure
from worker.engine.catalogue import METRICS
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.intervals import both_spread
from worker.engine.results import AuditFacts, RunFacts

SEEDS = range(3)


def _audit() -> AuditFacts:
    data = make_data(2000)
    runs, tables, known = [], {}, {}
    held_out = data.parts != 0
    for seed in SEEDS:
        logits = np.random.default_rng(seed).normal(size=(2, len(data.labels), 1)).astype(np.float32)
        names = [f"base-{seed}", f"run-{seed}"]
        spec = SimpleNamespace(runs=[SimpleNamespace(run=name) for name in names])
        base, run = run_results(spec, data, (None, None), logits)
        runs.append(RunFacts(names[0], "non-private", seed, None, None, "finished", base.statistics))
        runs.append(RunFacts(names[1], "dp-sgd", seed, 1.0, 1.0, "finished", run.statistics))
        chosen = {name: logits[place, held_out] for place, name in enumerate(names)}
        tables[seed] = SimpleNamespace(row_ids=data.row_ids[held_out], logits=chosen)
        known |= {names[0]: ("non-private", None, seed), names[1]: ("dp-sgd", 1.0, seed)}
    test = data.parts == 2
    groups = tuple(make_group(group.key, int((group.member & test).sum())) for group in data.groups)
    return AuditFacts(groups, tuple(runs), tuple(measure(tables, known, data)), seeds_planned=3)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_counts_and_logits_agree(metric) -> None:
    facts = _audit()
    sums = {(m.group, m.label, m.quantity): m for m in facts.measurements}
    for row in cost_rows(facts, metric):
        if row.method == "non-private" or row.cost is None:
            continue
        found = sums[row.group, metric.label, metric.quantity]
        assert metric.cost(found.total / found.rows, 0.0) == pytest.approx(row.cost, abs=1e-9)
        assert row.seeds == 3
        assert row.low < row.cost < row.high


def test_each_seeds_mean_lies_in_the_sums() -> None:
    facts = _audit()
    row = next(m for m in facts.measurements if m.group == "everyone" and m.label is None and m.quantity == "loss")
    assert row.total_each_squared >= row.total_squared
    assert both_spread(row, [0.1, 0.0, -0.1]) is not None
