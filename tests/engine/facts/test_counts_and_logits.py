"""Costs made from stored counts and sums made from stored logits are the same numbers, for every metric and group."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.builders import make_data, make_group
from worker.engine.audits.execute import run_results
from worker.engine.audits.measure import measure, run_values
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
    rows = tuple(measure(tables, known, data, METRICS))
    return AuditFacts(groups, tuple(runs), rows, seeds_planned=3, values=_values(groups, runs, tables, known, data))


def _values(groups, runs, tables, known, data):
    at_run, at_group = (
        {key: at for at, key in enumerate(keys)} for keys in ([r.run for r in runs], [g.key for g in groups])
    )
    found = {m.key: np.full((len(runs), len(groups)), np.nan) for m in METRICS if m.counted is None}
    for row in run_values(tables, known, data, METRICS):
        if row.value is not None:
            found[row.metric][at_run[row.run], at_group[row.group]] = row.value
    return found


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_counts_and_logits_agree(metric) -> None:
    facts = _audit()
    sums = {m.group: m for m in facts.measurements if m.quantity == metric.key}
    rows = [row for row in cost_rows(facts, metric) if row.method != "non-private" and row.cost is not None]
    assert len(rows) >= 3
    for row in rows:
        found = sums[row.group]
        assert metric.cost(found.total / found.rows, 0.0) == pytest.approx(row.cost, abs=1e-9)
        assert row.seeds == 3
        assert row.low < row.cost < row.high


def test_each_seeds_mean_lies_in_the_sums() -> None:
    facts = _audit()
    row = next(m for m in facts.measurements if m.group == "everyone" and m.quantity == "loss")
    assert row.total_each_squared >= row.total_squared
    assert both_spread(row, [0.1, 0.0, -0.1]) is not None
