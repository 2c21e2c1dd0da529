"""Each method equals its slow reference step by step, on the same batches and with the same noise injected."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.engine import judge
from tests.engine.builders import initial, make_data, make_spec
from tests.engine.methods.reference import REFERENCES, Slow
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.mechanisms.clipping import ROUNDING, Start
from worker.engine.mechanisms.noise import NoiseStream
from worker.engine.mechanisms.sampling import PoissonBatches
from worker.engine.methods.base import TRAINING_PARAMS, Method
from worker.engine.observer import Silent
from worker.engine.results import EncodedData, StackSpec
from worker.engine.training import SIDE_STREAM, mechanism_of, train_stack

EVERY = pytest.mark.parametrize("method", [m for m in METHODS if m.key in REFERENCES], ids=lambda method: method.key)
SHAPES = [("logistic", (), "tanh", 2), ("mlp", (6,), "tanh", 2), ("mlp", (5, 4), "relu", 3), ("mlp", (5, 4), "tanh", 3)]


def spec_of(method: Method, data: EncodedData, shape, optimizer: str = "sgd", **given: float) -> StackSpec:
    kind, hidden, activation, _ = shape
    values = {param.key: param.default for param in (*TRAINING_PARAMS, *method.params)}
    values |= {key: 1.0 for key in ("alignment", "boundary") if key in values}  # as published
    values |= {"learning_rate": 0.3, "clip": 0.5, "count_noise": 2.0, "momentum": 0.0} | given
    if "bound" in values:
        values["bound"] = given.get("bound", 1.2)
    runs = [(method.key, 0.7 * method.private, values), (method.key, 0.3 * method.private, values)]
    return make_spec(data, runs, kind=kind, hidden=hidden, activation=activation, batch_size=12, optimizer=optimizer)


def start_of(data: EncodedData, numbers: int, b: float) -> Start:
    return Start(2, data.training_group_count, data.classes, numbers, b, torch.empty(0, dtype=torch.float64))


def slow_weights(method: Method, data: EncodedData, spec: StackSpec, at: int) -> np.ndarray:
    """Weights of one run of the stack after all its steps."""
    run, mechanism = spec.runs[at], mechanism_of(spec.runs[at], spec, METHODS)
    network = judge.make_network(spec.network, initial(spec, data))
    numbers, b = sum(parameter.numel() for parameter in network.parameters()), spec.size.expected_batch_size
    batches = PoissonBatches.of_training_part(data, spec.size.sampling_probability, spec.batch_seed)
    momentum, rate = run.parameters["momentum"], run.parameters["learning_rate"]
    with ExitStack() as streams:
        unit = streams.enter_context(NoiseStream([run.noise_seed], [1.0], numbers, 1))
        counts = mechanism.rule.statistics(start_of(data, numbers, b))
        seeds = [(run.noise_seed, SIDE_STREAM)]
        side = streams.enter_context(NoiseStream(seeds, [mechanism.side_std], max(1, counts), 1))
        slow = Slow(network, data, run.parameters, b, 0.0, lambda: side.next()[0].astype(np.float64))
        moved, squares = np.zeros(numbers), np.zeros(numbers)
        for step in range(spec.size.steps):
            total, width = REFERENCES[method.key](slow, batches.batch(step))
            scale = width if not method.private else width * mechanism.sum_multiplier * (1 + ROUNDING)
            released = total + scale * unit.next()[0].astype(np.float64)
            slow.memory["released"] = released
            if spec.optimizer == "adam":
                moved = 0.9 * moved + 0.1 * released / b
                squares = 0.999 * squares + 0.001 * (released / b) ** 2
                mean, square = moved / (1 - 0.9 ** (step + 1)), squares / (1 - 0.999 ** (step + 1))
                judge.move(network, rate * mean / (np.sqrt(square) + 1e-8))
            else:
                moved = momentum * moved + released
                judge.move(network, rate / b * moved)
    return judge.weights(network)


def compare(method: Method, data: EncodedData, spec: StackSpec) -> None:
    trained = train_stack(spec, data, METHODS, NETWORKS, Silent(), dtype=torch.float64)
    assert trained.diverged == (None, None)
    for at in (0, 1):
        fast = judge.of_run(trained.network.parameters, at)
        np.testing.assert_allclose(fast, slow_weights(method, data, spec, at), rtol=0, atol=2e-6)


def test_every_method_has_a_reference() -> None:
    assert [method.key for method in METHODS if method.key not in REFERENCES and method.key != "toy"] == []


@EVERY
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_steps_are_those_of_the_reference(method: Method, shape: tuple[str, tuple[int, ...], str, int]) -> None:
    data = make_data(n=100, classes=shape[3])
    compare(method, data, spec_of(method, data, shape))


@EVERY
@pytest.mark.parametrize(("optimizer", "momentum"), [("sgd", 0.8), ("adam", 0.0)])
def test_with_momentum_and_with_adam(method: Method, optimizer: str, momentum: float) -> None:
    data = make_data(n=100)
    compare(method, data, spec_of(method, data, SHAPES[1], optimizer, momentum=momentum, learning_rate=0.02))


@EVERY
def test_with_a_group_that_is_absent_and_with_one_group_alone(method: Method) -> None:
    data = make_data(n=100)
    for groups, count in ((np.zeros(100, np.int64), 3), (None, 1)):
        changed = replace(data, training_groups=groups, training_group_count=count)
        kept = changed if groups is not None else replace(changed, training_groups=np.zeros(100, np.int64))
        spec = spec_of(method, data, SHAPES[1])
        trained = train_stack(spec, changed, METHODS, NETWORKS, Silent(), dtype=torch.float64)
        fast = judge.of_run(trained.network.parameters, 0)
        np.testing.assert_allclose(fast, slow_weights(method, kept, spec, 0), rtol=0, atol=2e-6)


@EVERY
def test_with_batches_of_which_half_are_empty(method: Method) -> None:
    """So few units that a batch is often empty: it takes a step of noise alone, and counts are noise alone."""
    data = make_data(n=100)
    spec = spec_of(method, data, SHAPES[1])
    spec = replace(spec, size=replace(spec.size, batch_size=1, epochs=1))
    batches = PoissonBatches.of_training_part(data, spec.size.sampling_probability, spec.batch_seed)
    empty = sum(not len(batches.batch(step)) for step in range(spec.size.steps))
    assert 0.2 < empty / spec.size.steps < 0.6
    spec = replace(spec, runs=tuple(replace(r, parameters={**r.parameters, "learning_rate": 0.01}) for r in spec.runs))
    compare(method, data, spec)


def test_a_bound_below_the_clip_counts_as_the_clip() -> None:
    data = make_data(n=100)
    for method in METHODS:
        if method.key in ("dp-sgd-global", "dp-sgd-global-adapt"):
            compare(method, data, spec_of(method, data, SHAPES[1], bound=0.1))
