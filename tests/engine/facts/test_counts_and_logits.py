"""Costs made from stored counts and sums made from stored logits are the same numbers, for every metric and group."""

from __future__ import annotations

import pytest

from tests.engine.facts.audits import make_audit
from worker.engine.catalogue import METRICS
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.intervals import both_spread
from worker.engine.results import AuditFacts


@pytest.fixture(scope="module")
def facts() -> AuditFacts:
    return make_audit(seeds=3, epsilons=(1.0,), with_floors=False).facts


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_counts_and_logits_agree(facts: AuditFacts, metric) -> None:
    sums = {m.group: m for m in facts.measurements if m.quantity == metric.key}
    rows = [row for row in cost_rows(facts, metric) if row.method != "non-private" and row.cost is not None]
    assert len(rows) >= 3
    for row in rows:
        found = sums[row.group]
        assert metric.cost(found.total / found.rows, 0.0) == pytest.approx(row.cost, abs=1e-9)
        assert row.seeds == 3
        assert row.low < row.cost < row.high


def test_each_seeds_mean_lies_in_the_sums(facts: AuditFacts) -> None:
    row = next(m for m in facts.measurements if m.group == "everyone" and m.quantity == "loss")
    assert row.total_each_squared >= row.total_squared
    assert both_spread(row, [0.1, 0.0, -0.1]) is not None
