"""What the defaults owe on the bundled Adult sample, through the real engine from CSV to costs. Minutes: `make proofs`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from backend.datasets import samples
from worker.engine.accounting.calibrate import calibrate
from worker.engine.audits import logits
from worker.engine.audits.execute import execute_stack
from worker.engine.audits.measure import measure
from worker.engine.audits.plan import Question, check_question, plan_stacks, stack_spec
from worker.engine.catalogue import FORMATS, METHODS, METRICS, NETWORKS
from worker.engine.datasets.encode import encode, make_encoding, summary
from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.groups import group_key, group_members
from worker.engine.datasets.profile import profile_table
from worker.engine.datasets.read import read_table
from worker.engine.datasets.roles import check_roles
from worker.engine.datasets.split import assign_parts
from worker.engine.facts.costs import BASELINE, cost_rows
from worker.engine.observer import Silent
from worker.engine.results import (
    EVERYONE,
    PARTS,
    AuditFacts,
    CostRow,
    EncodedData,
    GroupFacts,
    RunFacts,
    StackResult,
    StackSpec,
)

pytestmark = pytest.mark.proofs
AUDIT = "adult-sample"
POINTS_AT_MOST = 0.015
ROLES = {"target": {"column": "income", "favourable": ">50K"}, "protected": ["gender", "race"]}


@dataclass(frozen=True)
class Sample:
    data: EncodedData
    summary: dict[str, object]


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    sample = samples.find("adult")
    assert sample is not None, "The sample package is not installed: run make demo or make test once."
    path: Path = tmp_path_factory.mktemp("adult") / "adult.csv"
    path.write_bytes(sample.csv_bytes())
    table, reading = read_table(path, None, {}, ReadLimits(), FORMATS)
    roles, errors = check_roles(ROLES, profile_table(table, reading))
    assert roles is not None, errors
    parts = assign_parts(table, roles, AUDIT)
    keys = [group_key(group.attributes) for group in group_members(table, roles)]
    encoding = make_encoding(table, roles, parts)
    data = encode(table, roles, parts, encoding, keys)
    return Sample(data, summary(data, table, roles, encoding))


def _question(adult: Sample, epsilons: list[float], seeds: int) -> Question:
    body = {"methods": ["dp-sgd"], "epsilons": epsilons, "seeds": seeds, "network": {"kind": "mlp", "hidden": [64]}}
    asked, errors = check_question(body, summary=adult.summary, methods=METHODS, networks=NETWORKS, run_limit=1000)
    assert asked is not None, errors
    return asked


def _specs(adult: Sample, question: Question) -> list[StackSpec]:
    size = question.size(int(str(adult.summary["units"])))
    noise = {
        epsilon: calibrate(epsilon, question.delta, size.sampling_probability, size.steps).noise_multiplier
        for epsilon in question.epsilons
    }
    specs = []
    for plan in plan_stacks(question, adult.summary, "eager-cpu", 2):
        names = [f"{run.method} {run.epsilon} {run.seed}" for run in plan.runs]
        sigmas = [noise[run.epsilon] if run.epsilon is not None else 0.0 for run in plan.runs]
        specs.append(stack_spec(question, AUDIT, plan, adult.summary, names, sigmas))
    return specs


def _rows(adult: Sample, specs: list[StackSpec], results: list[StackResult]) -> list[CostRow]:
    runs, by_seed, known = [], {}, {}
    for spec, result in zip(specs, results, strict=True):
        names = [run.run for run in spec.runs]
        by_seed[spec.runs[0].seed] = logits.from_bytes(logits.to_bytes(result, names))
        known |= {run.run: (run.method, run.epsilon, run.seed) for run in spec.runs}
        runs += [
            RunFacts(run.run, run.method, run.seed, run.epsilon, run.epsilon, done.state, done.statistics)
            for run, done in zip(spec.runs, result.runs, strict=True)
        ]
    test = adult.data.parts == PARTS.index("test")
    groups = tuple(
        GroupFacts(group.key, group.key, {}, int((group.member & test).sum()), True, None)
        for group in adult.data.groups
    )
    facts = AuditFacts(groups, tuple(runs), tuple(measure(by_seed, known, adult.data)), len(specs))
    return cost_rows(facts, METRICS[0])


@pytest.fixture(scope="module")
def costs(adult: Sample) -> list[CostRow]:
    specs = _specs(adult, _question(adult, [0.1, 8.0], 10))
    return _rows(adult, specs, [execute_stack(s, adult.data, METHODS, NETWORKS, Silent()) for s in specs])


def test_the_baseline_is_as_good_as_scikit_learn_in_every_large_group(adult: Sample, costs: list[CostRow]) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    train, test = (adult.data.parts == PARTS.index(part) for part in ("train", "test"))
    judges = [LogisticRegression(max_iter=2000), MLPClassifier((64,), "tanh", random_state=0, early_stopping=True)]
    right = []
    for judge in judges:
        judge.fit(adult.data.features[train], adult.data.labels[train])
        right.append(judge.predict(adult.data.features[test]) == adult.data.labels[test])
    for row in costs:
        if row.method == BASELINE and row.n >= 500:
            member = next(group.member for group in adult.data.groups if group.key == row.group)[test]
            nearest = min(abs(float(np.mean(found[member])) - (row.value or math.nan)) for found in right)
            assert nearest <= POINTS_AT_MOST, f"{row.group}: {100 * nearest:.2f} points apart"


def test_defaults_cost_little_at_epsilon_8_and_surely_more_at_a_tenth(costs: list[CostRow]) -> None:
    overall = {row.epsilon_asked: row for row in costs if row.group == EVERYONE and row.method != BASELINE}
    strong, weak = overall[0.1], overall[8.0]
    assert weak.cost is not None
    assert strong.low is not None
    assert weak.high is not None
    assert weak.cost < 0.01
    assert strong.low > weak.high, "the intervals of the two paired costs do not lie apart"
