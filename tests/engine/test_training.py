"""The loop: deterministic, empty batches step, diverged runs touch no other, the observer hears and may stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.engine import judge
from tests.engine.builders import make_data, make_spec
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.errors import Stopped
from worker.engine.mechanisms.noise import NoiseStream
from worker.engine.observer import Silent
from worker.engine.results import EncodedData, StackSpec
from worker.engine.training import Trained, build_network, train_stack

PRIVATE: Mapping[str, float] = {"learning_rate": 0.2, "clip": 1.0}
RUNS = [("non-private", 0.0, {"learning_rate": 0.5}), ("dp-sgd", 1.0, PRIVATE), ("dp-sgd", 3.0, PRIVATE)]


def train(spec: StackSpec, data: EncodedData) -> Trained:
    return train_stack(spec, data, METHODS, NETWORKS, Silent())


def weights(trained: Trained, run: int) -> np.ndarray:
    return judge.of_run(trained.network.parameters, run)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_spec_gives_the_same_bits(threads: int) -> None:
    data = make_data(n=600, d=20)
    spec = make_spec(data, RUNS, hidden=(32,), batch_size=64, epochs=4, threads=threads)
    one, two = train(spec, data), train(spec, data)
    for run in range(3):
        np.testing.assert_array_equal(weights(one, run), weights(two, run))


def test_seeds_of_weights_batches_and_noise_each_matter() -> None:
    data = make_data()
    spec = make_spec(data, RUNS)
    before = weights(train(spec, data), 1)
    reseeded = tuple(replace(run, noise_seed=run.noise_seed + 100) for run in spec.runs)
    for other in (replace(spec, weight_seed=1), replace(spec, batch_seed=1), replace(spec, runs=reseeded)):
        assert not np.allclose(weights(train(other, data), 1), before, atol=1e-4)


def test_empty_batches_take_a_step_of_noise_alone() -> None:
    """No row in the training part is ever drawn: the weights are a walk of the noise, divided by the expected size."""
    data = make_data(n=50)
    spec = make_spec(data, [("dp-sgd", 2.0, PRIVATE)], batch_size=30, epochs=40)
    held_out = replace(data, parts=np.full(50, 2, np.int8))
    trained = train(spec, held_out)
    start = build_network(spec, data, NETWORKS, "cpu", trained.network.dtype)
    noise = NoiseStream([spec.runs[0].noise_seed], [2.0 * 1.0 * (1 + 1e-5)], start.numbers, 1)
    walk = sum(noise.next()[0].astype(np.float64) for _ in range(spec.size.steps))
    moved = weights(trained, 0) - judge.of_run(start.parameters, 0)
    np.testing.assert_allclose(moved, -0.2 / spec.size.expected_batch_size * walk, atol=1e-5)


def test_noise_on_zero_gradients_is_as_wide_as_charged() -> None:
    data = replace(make_data(n=50, d=300), parts=np.full(50, 1, np.int8))
    spec = make_spec(data, [("dp-sgd", 1.7, {"learning_rate": 1.0, "clip": 0.5})], hidden=(50,), epochs=1)
    spec = replace(spec, size=replace(spec.size, units=40, batch_size=40))
    trained = train(spec, data)
    start = build_network(spec, data, NETWORKS, "cpu", trained.network.dtype)
    moved = (weights(trained, 0) - judge.of_run(start.parameters, 0)) * spec.size.expected_batch_size
    assert spec.size.steps == 1
    assert moved.std() == pytest.approx(1.7 * 0.5, rel=5 / np.sqrt(2 * len(moved)))


def test_the_denominator_is_the_expected_batch_size() -> None:
    """Removing rows changes q n only by the public count, never by what a batch turned out to hold."""
    data = make_data(n=100)
    spec = make_spec(data, batch_size=16, epochs=1)
    assert spec.size.units == 60
    assert spec.size.sampling_probability == 1 / 4
    assert spec.size.expected_batch_size == 15


def test_a_diverged_run_leaves_the_others_bit_for_bit_alone() -> None:
    data = make_data(n=400)
    wild = ("non-private", 0.0, {"learning_rate": 1e30})
    calm = make_spec(data, [RUNS[0], RUNS[1], RUNS[1], RUNS[2]], activation="relu", epochs=10)
    torn = make_spec(data, [RUNS[0], RUNS[1], wild, RUNS[2]], activation="relu", epochs=10)
    one, two = train(calm, data), train(torn, data)
    assert one.diverged == (None, None, None, None)
    assert two.diverged[2] == 10
    assert two.diverged[:2] + two.diverged[3:] == (None, None, None)
    for run in (0, 1, 3):
        np.testing.assert_array_equal(weights(one, run), weights(two, run))
    assert not weights(two, 2).any()


def test_the_observer_hears_every_step_and_may_stop() -> None:
    data = make_data()
    spec = make_spec(data, RUNS)

    class Impatient:
        heard: tuple[int, ...] = ()

        def step(self, step: int, steps: int) -> None:
            assert steps == spec.size.steps
            self.heard += (step,)
            if step == 5:
                raise Stopped

    observer = Impatient()
    with pytest.raises(Stopped):
        train_stack(spec, data, METHODS, NETWORKS, observer)
    assert observer.heard == (1, 2, 3, 4, 5)


def test_unknown_names_are_said() -> None:
    data = make_data()
    with pytest.raises(ValueError, match="pate"):
        train(make_spec(data, [("pate", 1.0, PRIVATE)]), data)
    with pytest.raises(ValueError, match="forest"):
        train(make_spec(data, RUNS, kind="forest"), data)


def test_it_learns() -> None:
    data = make_data(n=2000)
    spec = make_spec(data, [RUNS[0], ("dp-sgd", 0.5, {"learning_rate": 0.5, "clip": 1.0})], batch_size=50, epochs=20)
    trained = train(spec, data)
    scores = trained.network.forward(trained.rows.features.clone())[:, :, 0].numpy()
    right = ((scores > 0) == (data.labels == 1)[:, None])[data.parts == 2].mean(0)
    assert (right > 0.8).all()
