"""What holds for every training method in the catalogue."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.engine import judge
from tests.engine.builders import make_data, make_spec
from worker.engine.accounting.accountant import epsilon_pld
from worker.engine.accounting.calibrate import calibrate
from worker.engine.audits.execute import evaluate, execute_stack
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.mechanisms.sampling import PoissonBatches
from worker.engine.methods.base import TRAINING_PARAMS, Budget, Method
from worker.engine.observer import Silent
from worker.engine.results import EncodedData, RunSpec, StackSpec, TrainingSize
from worker.engine.training import Trained, mechanism_of, train_stack

EVERY = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.key)
PRIVATE = pytest.mark.parametrize("method", [m for m in METHODS if m.private], ids=lambda method: method.key)


def values(method: Method, **given: float) -> dict[str, float]:
    """Defaults of all its parameters, with a learning rate that moves small tables."""
    defaults = {param.key: param.default for param in (*TRAINING_PARAMS, *method.params)}
    return {**defaults, "learning_rate": 0.3, "clip": 0.5, **given}


def spec_of(method: Method, data: EncodedData, noise: float = 1.0, **given: float) -> StackSpec:
    multiplier = noise if method.private else 0.0
    if not noise and any(param.key == "noise_multiplier" for param in method.params):
        given["noise_multiplier"] = 0.0
    return make_spec(data, [(method.key, multiplier, values(method, **given))])


def train(spec: StackSpec, data: EncodedData, dtype: torch.dtype = torch.float32) -> Trained:
    return train_stack(spec, data, METHODS, NETWORKS, Silent(), dtype=dtype)


def weights(trained: Trained, run: int = 0) -> np.ndarray:
    return judge.of_run(trained.network.parameters, run)


def reordered(data: EncodedData, order: np.ndarray) -> EncodedData:
    groups = tuple(replace(group, member=group.member[order]) for group in data.groups)
    names = ("features", "labels", "parts", "row_ids", "unit_ids", "training_groups")
    arrays = {name: getattr(data, name)[order] for name in names}
    return replace(data, groups=groups, **arrays)


def without(data: EncodedData, row: int) -> EncodedData:
    return reordered(data, np.delete(np.arange(len(data.labels)), row))


@EVERY
def test_it_says_what_it_is(method: Method) -> None:
    known = {param.key: param for param in (*TRAINING_PARAMS, *method.params)}
    assert all(known[key].problem(value) is None for key, value in method.limit.items())
    assert method.title
    assert method.help
    assert all(param.problem(param.default) is None for param in method.params)


@EVERY
def test_the_same_seed_gives_the_same_bits(method: Method) -> None:
    data = make_data()
    spec = spec_of(method, data)
    np.testing.assert_array_equal(weights(train(spec, data)), weights(train(spec, data)))


@EVERY
def test_the_order_of_rows_changes_nothing(method: Method) -> None:
    data = make_data()
    order = np.random.default_rng(1).permutation(len(data.labels))
    spec, shuffled = spec_of(method, data), reordered(data, order)
    one, two = train(spec, data), train(spec, shuffled)
    np.testing.assert_array_equal(weights(one), weights(two))
    np.testing.assert_allclose(evaluate(one)[:, order], evaluate(two), atol=1e-5)


@EVERY
def test_the_order_of_columns_changes_only_rounding(method: Method) -> None:
    """Without noise: noise belongs to positions."""
    data = make_data(d=9)
    order = np.random.default_rng(2).permutation(9)
    names = tuple(data.feature_names[column] for column in order)
    turned = replace(data, features=np.ascontiguousarray(data.features[:, order]), feature_names=names)
    spec = spec_of(method, data, noise=0.0)
    np.testing.assert_allclose(evaluate(train(spec, data)), evaluate(train(spec, turned)), atol=1e-4)


@EVERY
def test_names_and_order_of_groups_change_nothing(method: Method) -> None:
    data = make_data()
    renamed = tuple(replace(group, key=f"new {group.key}") for group in reversed(data.groups))
    spec = spec_of(method, data)
    one = execute_stack(spec, data, METHODS, NETWORKS, Silent())
    two = execute_stack(spec, replace(data, groups=renamed), METHODS, NETWORKS, Silent())
    np.testing.assert_array_equal(one.logits, two.logits)
    before = {(f"new {row.group}", row.label, row.part): replace(row, group="") for row in one.runs[0].statistics}
    after = {(row.group, row.label, row.part): replace(row, group="") for row in two.runs[0].statistics}
    assert before == after


@EVERY
def test_the_numbers_of_training_groups_change_only_rounding(method: Method) -> None:
    """Without noise: each number's noise belongs to it, and numbers follow the first row ids, not the names."""
    data = make_data()
    assert data.training_groups is not None
    swapped = replace(data, training_groups=1 - data.training_groups)
    spec = spec_of(method, data, noise=0.0)
    np.testing.assert_allclose(weights(train(spec, data)), weights(train(spec, swapped)), atol=1e-5)


@EVERY
def test_another_packing_changes_only_rounding(method: Method) -> None:
    data = make_data()
    alone = spec_of(method, data)
    run = alone.runs[0]
    others = [replace(run, run=f"other {seed}", noise_seed=seed) for seed in range(4)]
    packed = replace(alone, runs=(*others[:2], run, *others[2:]), threads=2)
    np.testing.assert_allclose(weights(train(packed, data), 2), weights(train(alone, data)), atol=1e-5)


@EVERY
def test_runs_of_a_stack_differ_by_their_noise(method: Method) -> None:
    data = make_data()
    spec = spec_of(method, data)
    two = replace(spec, runs=(spec.runs[0], replace(spec.runs[0], run="two", noise_seed=1)))
    trained = train(two, data)
    noisy = mechanism_of(spec.runs[0], spec, METHODS).noise_std > 0
    assert noisy >= method.private
    assert np.allclose(weights(trained, 0), weights(trained, 1), atol=1e-5) is not noisy


@EVERY
def test_its_own_limit_is_the_baseline(method: Method) -> None:
    data = make_data()
    limit = train(spec_of(method, data, noise=0.0, **method.limit), data, torch.float64)
    baseline = make_spec(data, [("non-private", 0.0, {"learning_rate": 0.3})])
    np.testing.assert_allclose(weights(limit), weights(train(baseline, data, torch.float64)), rtol=1e-9)


BAD = [
    ("learning_rate", 0.0),
    ("learning_rate", -0.1),
    ("learning_rate", math.nan),
    ("learning_rate", 1e30),
    ("learning_rate", 1e300),
    ("clip", 0.0),
    ("clip", -1.0),
    ("clip", math.nan),
    ("clip", math.inf),
    ("clip", 1e30),
]


@EVERY
@pytest.mark.parametrize(("setting", "value"), BAD, ids=str)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_senseless_setting_ends_the_run_with_its_reason_and_touches_no_other(
    method: Method, setting: str, value: float, optimizer: str
) -> None:
    """Bit for bit."""
    data = make_data(n=100)
    good = spec_of(method, data).runs[0]
    other = spec_of(next(m for m in METHODS if m.key == "dp-sgd"), data).runs[0]
    bad = replace(good, parameters={**good.parameters, setting: value})
    whole = replace(spec_of(method, data), runs=(other, good, good, good, other), optimizer=optimizer)
    torn = replace(whole, runs=(other, good, bad, good, other))
    one, two = train(whole, data), train(torn, data)
    for run in (0, 1, 3, 4):
        np.testing.assert_array_equal(weights(one, run), weights(two, run))
        assert two.diverged[run] is None
    assert two.diverged[2] is not None
    assert two.reasons[2]
    assert not weights(two, 2).any()


@PRIVATE
def test_twins_do_not_share_a_coin(method: Method) -> None:
    """Two equal rows with ids of their own are drawn apart; giving one the other's content changes no batch."""
    data = make_data(n=100)
    twins = replace(data, features=data.features.copy(), labels=data.labels.copy())
    twins.features[1], twins.labels[1] = twins.features[0], twins.labels[0]
    spec = spec_of(method, twins)
    batches = PoissonBatches.of_training_part(twins, spec.size.sampling_probability, spec.batch_seed)
    drawn = [set(batches.batch(step).tolist()) & {0, 1} for step in range(60)]
    assert {frozenset(both) for both in drawn} == {frozenset(), frozenset({0}), frozenset({1}), frozenset({0, 1})}
    before = PoissonBatches.of_training_part(data, spec.size.sampling_probability, spec.batch_seed)
    assert [set(before.batch(step).tolist()) & {0, 1} for step in range(60)] == drawn


@PRIVATE
def test_removing_a_row_that_is_never_drawn_changes_nothing(method: Method) -> None:
    data = make_data(n=100)
    spec = spec_of(method, data)
    batches = PoissonBatches.of_training_part(data, spec.size.sampling_probability, spec.batch_seed)
    drawn = {row for step in range(spec.size.steps) for row in batches.batch(step).tolist()}
    spare = next(row for row in np.flatnonzero(data.parts == 0) if row not in drawn)
    np.testing.assert_array_equal(weights(train(spec, data)), weights(train(spec, without(data, int(spare)))))


@EVERY
def test_events_match_what_ran(method: Method) -> None:
    data, heard = make_data(), []

    class Counting:
        def step(self, step: int, steps: int) -> None:
            heard.append((step, steps))

    size = TrainingSize(units=120, batch_size=20, epochs=2)
    budget = Budget(2.0 if method.private else None, 1e-5)
    plan = method.plan(budget, size, values(method), calibrate)
    run = RunSpec("a", method.key, 0, budget.epsilon, plan.noise_multiplier, 5, values(method))
    spec = replace(make_spec(data), runs=(run,))
    assert spec.size == size
    trained = train_stack(spec, data, METHODS, NETWORKS, Counting())
    assert trained.events[0] == plan.events
    assert heard == [(step + 1, size.steps) for step in range(size.steps)]
    assert bool(plan.events) is method.private
    for event in plan.events:
        assert event.steps == trained.steps == size.steps
        assert event.sampling_probability == size.sampling_probability


@PRIVATE
@pytest.mark.parametrize(("epsilon", "size"), [(0.5, TrainingSize(400, 40, 3)), (3.0, TrainingSize(400, 400, 5))])
def test_epsilon_spent_is_never_above_epsilon_asked(method: Method, epsilon: float, size: TrainingSize) -> None:
    plan = method.plan(Budget(epsilon, 1e-5), size, values(method), calibrate)
    assert plan.epsilon_spent is not None
    assert plan.epsilon_spent <= epsilon
    assert epsilon_pld(plan.events, 1e-5) <= epsilon
    assert math.isclose(plan.epsilon_spent, epsilon, abs_tol=1e-3)
    assert type(plan.noise_multiplier) is float
    assert all(type(event.noise_multiplier) is float for event in plan.events)
