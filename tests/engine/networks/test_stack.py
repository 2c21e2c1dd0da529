"""The stack's norms, clipped sums and trajectories against one example at a time, and against Opacus' hooks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.engine import judge
from tests.engine.builders import initial, make_data, make_spec
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.mechanisms.clipping import FlatClip, NoClip, Stateless
from worker.engine.mechanisms.noise import NoiseStream
from worker.engine.mechanisms.sampling import PoissonBatches
from worker.engine.networks.initial import initial_weights
from worker.engine.networks.rows import Rows
from worker.engine.observer import Silent
from worker.engine.results import EncodedData, StackSpec
from worker.engine.training import Section, build_network, mechanism_of, release_batch, train_stack

SHAPES = [
    ("logistic", (), "tanh", 2),
    ("logistic", (), "tanh", 3),
    ("mlp", (6,), "tanh", 2),
    ("mlp", (6,), "relu", 2),
    ("mlp", (5,), "tanh", 4),
    ("mlp", (6, 4), "tanh", 2),
    ("mlp", (6, 4, 3), "relu", 3),
]


def fast_sum(data: EncodedData, spec: StackSpec, batch: np.ndarray, clip: float, dtype: torch.dtype) -> np.ndarray:
    network = build_network(spec, data, NETWORKS, "cpu", dtype)
    section = Section(slice(0, len(spec.runs)), Stateless(FlatClip(clip)), None)
    zeros = torch.zeros(len(spec.runs), network.numbers, dtype=dtype)
    release_batch(network, Rows.of(data, "cpu", dtype), torch.as_tensor(batch), [section], zeros)
    return np.stack([judge.of_run(network.release, run) for run in range(len(spec.runs))])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("kind", "hidden", "activation", "classes"), SHAPES)
def test_norms_are_those_of_single_gradients(
    kind: str, hidden: tuple[int, ...], activation: str, classes: int, dtype: torch.dtype, tolerance: float
) -> None:
    data = make_data(classes=classes)
    spec = make_spec(data, kind=kind, hidden=hidden, activation=activation)
    network, rows = build_network(spec, data, NETWORKS, "cpu", dtype), Rows.of(data, "cpu", dtype)
    scores = network.forward(rows.features)
    slopes = (torch.sigmoid(scores) if classes == 2 else torch.softmax(scores, 2)) - rows.targets[:, None, :]
    norms = network.squared_norms(slopes, rows.squares).sqrt()[:, 0].numpy()
    slow = judge.make_network(spec.network, initial(spec, data))
    expected = [np.linalg.norm(judge.gradient(slow, data, row)) for row in range(len(data.labels))]
    np.testing.assert_allclose(norms, expected, rtol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("kind", "hidden", "activation", "classes"), SHAPES)
@pytest.mark.parametrize("clip", [0.1, 0.7, 50.0])
def test_clipped_sums_are_those_of_single_gradients(
    kind: str, hidden: tuple[int, ...], activation: str, classes: int, clip: float, dtype: torch.dtype, tolerance: float
) -> None:
    data = make_data(classes=classes)
    spec = make_spec(
        data, [("dp-sgd", 0.0, {"learning_rate": 0.1})] * 3, kind=kind, hidden=hidden, activation=activation
    )
    batch = np.array([0, 3, 3, 17, 40, 41])
    fast = fast_sum(data, spec, batch, clip, dtype)
    slow = judge.make_network(spec.network, initial(spec, data))
    expected = sum(judge.clipped(judge.gradient(slow, data, row), clip) for row in batch)
    for run in range(3):
        np.testing.assert_allclose(fast[run], expected, atol=tolerance * max(1.0, np.abs(expected).max()))


def stack(data: EncodedData, kind: str, hidden: tuple[int, ...], momentum: float = 0.0) -> StackSpec:
    private = {"learning_rate": 0.3, "clip": 0.8, "momentum": momentum}
    runs = [
        ("non-private", 0.0, {"learning_rate": 0.5}),
        ("dp-sgd", 0.7, private),
        ("dp-sgd", 2.0, private),
        ("dp-sgd", 0.0, private),
    ]
    spec = make_spec(data, runs, kind=kind, hidden=hidden, batch_size=12, epochs=1)
    assert spec.size.steps == 10
    return spec


def trajectory(data: EncodedData, spec: StackSpec, summed) -> list[np.ndarray]:
    """Weights after all steps, run by run, by the slow way: ``summed(network, rows, clip)`` adds up a batch."""
    mechanisms = [mechanism_of(run, spec, METHODS) for run in spec.runs]
    slow = [judge.make_network(spec.network, initial(spec, data)) for _ in spec.runs]
    numbers = sum(parameter.numel() for parameter in slow[0].parameters())
    noise = NoiseStream([r.noise_seed for r in spec.runs], [m.noise_std for m in mechanisms], numbers, 1)
    batches = PoissonBatches.of_training_part(data, spec.size.sampling_probability, spec.batch_seed)
    velocity = [np.zeros(numbers) for _ in slow]
    for step in range(spec.size.steps):
        drawn, batch = noise.next(), batches.batch(step)
        for position, (run, network) in enumerate(zip(spec.runs, slow, strict=True)):
            clip = run.parameters.get("clip", np.inf)
            total = summed(network, batch, clip) + drawn[position]
            velocity[position] = run.parameters.get("momentum", 0.0) * velocity[position] + total
            rate = run.parameters["learning_rate"] / spec.size.expected_batch_size
            judge.move(network, rate * velocity[position])
    return [judge.weights(network) for network in slow]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(("kind", "hidden", "classes"), [("logistic", (), 2), ("mlp", (6,), 2), ("mlp", (5, 4), 3)])
def test_ten_steps_are_those_of_single_gradients(
    kind: str, hidden: tuple[int, ...], classes: int, momentum: float
) -> None:
    data = make_data(classes=classes)
    spec = stack(data, kind, hidden, momentum)

    def summed(network: torch.nn.Module, batch: np.ndarray, clip: float) -> np.ndarray:
        return sum((judge.clipped(judge.gradient(network, data, row), clip) for row in batch), np.zeros(1))

    expected = trajectory(data, spec, summed)
    trained = train_stack(spec, data, METHODS, NETWORKS, Silent())
    for run, weights in enumerate(expected):
        np.testing.assert_allclose(judge.of_run(trained.network.parameters, run), weights, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "hidden", "classes"), [("logistic", (), 2), ("logistic", (), 3), ("mlp", (6,), 2), ("mlp", (5,), 4)]
)
def test_ten_steps_are_those_of_opacus(kind: str, hidden: tuple[int, ...], classes: int) -> None:
    from opacus.grad_sample import GradSampleModule

    data = make_data(classes=classes)
    spec = stack(data, kind, hidden)

    def summed(network: torch.nn.Module, batch: np.ndarray, clip: float) -> np.ndarray:
        module = GradSampleModule(network, loss_reduction="sum")
        scores, labels = module(torch.as_tensor(data.features[batch]).double()), torch.as_tensor(data.labels[batch])
        if classes == 2:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores[:, 0], labels.double(), reduction="sum")
        else:
            loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
        loss.backward()
        samples = [parameter.grad_sample for parameter in module.parameters()]
        norms = torch.stack([sample.flatten(1).norm(dim=1) for sample in samples], 1).norm(dim=1)
        scale = (clip / norms).clamp(max=1.0) if np.isfinite(clip) else torch.ones_like(norms)
        totals = [torch.tensordot(scale, sample, 1) for sample in samples]
        module.remove_hooks()
        module.zero_grad()
        return judge.flat(totals)

    expected = trajectory(data, spec, summed)
    trained = train_stack(spec, data, METHODS, NETWORKS, Silent())
    for run, weights in enumerate(expected):
        np.testing.assert_allclose(judge.of_run(trained.network.parameters, run), weights, atol=1e-5)


def test_a_batch_larger_than_any_before_is_not_cut() -> None:
    data = make_data(n=300)
    spec = make_spec(data)
    network, rows = build_network(spec, data, NETWORKS, "cpu", torch.float64), Rows.of(data, "cpu", torch.float64)
    section = Section(slice(0, 1), Stateless(NoClip()), None)
    sums = []
    for batch in (np.arange(300), np.arange(10), np.arange(10, 300)):
        zeros = torch.zeros(1, network.numbers, dtype=torch.float64)
        release_batch(network, rows, torch.as_tensor(batch), [section], zeros)
        sums.append(judge.of_run(network.release, 0))
    np.testing.assert_allclose(sums[0], sums[1] + sums[2], rtol=1e-10)


def test_initial_weights_belong_to_feature_names() -> None:
    names = ("a", "b", "c")
    before, after = initial_weights(names, (4, 1), 7), initial_weights(("c", "a", "b"), (4, 1), 7)
    np.testing.assert_array_equal(before[0][[2, 0, 1, 3]], after[0])
    np.testing.assert_array_equal(before[1], after[1])
    assert not np.array_equal(before[0], initial_weights(names, (4, 1), 8)[0])
    assert np.abs(before[0]).max() <= 1 / np.sqrt(3)


def test_runs_of_a_stack_start_from_the_same_weights() -> None:
    data = make_data()
    spec = make_spec(data, [("dp-sgd", 1.0, {"learning_rate": 0.1, "clip": 1.0})] * 2)
    network = build_network(spec, data, NETWORKS, "cpu", torch.float32)
    np.testing.assert_array_equal(judge.of_run(network.parameters, 0), judge.of_run(network.parameters, 1))
    other = build_network(replace(spec, weight_seed=99), data, NETWORKS, "cpu", torch.float32)
    assert not np.array_equal(judge.of_run(network.parameters, 0), judge.of_run(other.parameters, 0))
