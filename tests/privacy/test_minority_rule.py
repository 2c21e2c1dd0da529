"""A planted harm, really trained: where a tenth of the rows follow another rule, privacy costs them more, and it shows.

Minutes: `make proofs`. The table is the one that explains the product: nine tenths of the rows have one rule, one tenth
the opposite one, and a column says which; a network must learn the exception, which noise hides first.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import make_group
from worker.engine.accounting.calibrate import calibrate
from worker.engine.audits.execute import execute_stack
from worker.engine.audits.measure import measure
from worker.engine.audits.outcomes import BASELINE
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.facts.marks import mark_rows
from worker.engine.observer import Silent
from worker.engine.results import (
    AuditFacts,
    EncodedData,
    GroupRows,
    NetworkSpec,
    RunFacts,
    RunSpec,
    StackSpec,
    TrainingSize,
)

EPSILON, DELTA, SEEDS, ROWS = 1.0, 1e-5, 10, 5000
AUDITS, AT_LEAST = 100, 90
SIZE = TrainingSize(units=ROWS * 3 // 5, batch_size=100, epochs=15)


def draw_table(draw: np.random.Generator) -> EncodedData:
    """Two numbers and a mark of the minority; its rule is the majority's with the sign turned."""
    minority = np.arange(ROWS) % 10 == 0
    numbers = draw.uniform(-1, 1, (ROWS, 2))
    lean = np.where(minority, -1, 1) * (numbers[:, 0] + numbers[:, 1])
    labels = (lean + 0.2 * draw.normal(size=ROWS) > 0).astype(np.int64)
    features = np.column_stack([numbers, minority, numbers * minority[:, None]]).astype(np.float32)
    ids = np.arange(ROWS, dtype=np.int64)
    part = np.arange(ROWS) // 10 % 5
    groups = tuple(
        GroupRows(key, member)
        for key, member in (("everyone", np.ones(ROWS, bool)), ("g=minority", minority), ("g=majority", ~minority))
    )
    names = ("a", "b", "minority", "a of the minority", "b of the minority")
    codes = np.where(part < 3, 0, np.where(part == 3, 1, 2)).astype(np.int8)
    return EncodedData(features, labels, 2, codes, ids, ids, ROWS, groups, names)


def audit(data: EncodedData, noise: float, number: int) -> AuditFacts:
    """Ten seeds of DP-SGD and their baselines, trained and measured by the product."""
    runs, tables, known = [], {}, {}
    for seed in range(SEEDS):
        base = RunSpec(f"b{seed}", BASELINE, seed, None, 0.0, 0, {"learning_rate": 0.5})
        values = {"learning_rate": 0.5, "clip": 1.0, "momentum": 0.0}
        private = RunSpec(f"p{seed}", "dp-sgd", seed, EPSILON, noise, 1000 * number + seed, values)
        spec = StackSpec((base, private), NetworkSpec("logistic"), SIZE, seed, 5000 * number + seed, "eager-cpu", 1)
        result = execute_stack(spec, data, METHODS, NETWORKS, Silent())
        tables[seed] = _Logits(result.rows, {run.run: result.logits[at] for at, run in enumerate(spec.runs)})
        for run, done in zip(spec.runs, result.runs, strict=True):
            known[run.run] = (run.method, run.epsilon, seed)
            runs.append(RunFacts(run.run, run.method, seed, run.epsilon, run.epsilon, done.state, done.statistics))
    test = data.parts == 2
    groups = tuple(make_group(group.key, int((group.member & test).sum())) for group in data.groups)
    return AuditFacts(groups, tuple(runs), tuple(measure(tables, known, data)), seeds_planned=SEEDS)


class _Logits:
    def __init__(self, row_ids: np.ndarray, logits: dict[str, np.ndarray]) -> None:
        self.row_ids, self.logits = row_ids, logits


@pytest.mark.proofs
def test_a_minority_with_its_own_rule_is_marked_and_the_majority_never_is() -> None:
    noise = calibrate(EPSILON, DELTA, SIZE.sampling_probability, SIZE.steps).noise_multiplier
    draw, found = np.random.default_rng(0), []
    for number in range(AUDITS):
        found.append({row.group: row.marked for row in mark_rows(audit(draw_table(draw), noise, number))})
    assert sum(one["g=minority"] is True for one in found) >= AT_LEAST
    assert not any(one["g=majority"] for one in found)
