"""The two identities of METHODS.md 2.7, noise included, and what the two diagnoses have to do with clipping."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from tests.engine import judge
from tests.engine.builders import make_data, make_spec
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.methods.base import TRAINING_PARAMS, Method
from worker.engine.methods.dp_sgd_global_adapt import DpSgdGlobalAdapt, ScaleBelow, _Adapting
from worker.engine.observer import Silent
from worker.engine.training import train_stack


class _Still(_Adapting):
    def measure(self, batch):
        return None


@dataclass(frozen=True)
class StillRule(ScaleBelow):
    """Z stays, so nothing is counted and nothing else released."""

    side: tuple[str, ...] = ()

    def statistics(self, start):
        return 0

    def begin(self, start):
        return _Still(self, start.expected_batch_size, start.empty.new_full((start.runs,), max(self.bound, self.clip)))


@dataclass(frozen=True)
class FixedBound(DpSgdGlobalAdapt):
    def rule(self, values):
        return StillRule(values["clip"], values["bound"], 0.1, 1.0, 10.0)


def weights(method: Method, noise: float = 1.0, optimizer: str = "sgd", **values: float) -> np.ndarray:
    defaults = {param.key: param.default for param in (*TRAINING_PARAMS, *method.params)}
    spec = make_spec(make_data(), [(method.key, noise, defaults | values)], optimizer=optimizer)
    methods = (method, *(other for other in METHODS if other.key != method.key))
    trained = train_stack(spec, make_data(), methods, NETWORKS, Silent(), dtype=torch.float64)
    return judge.of_run(trained.network.parameters, 0)


def called(key: str) -> Method:
    return next(method for method in METHODS if method.key == key)


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_scaling_at_a_fixed_bound_is_dp_sgd_with_that_clip(momentum: float) -> None:
    rate, clip, bound = 0.4, 0.2, 0.6
    scaled = weights(FixedBound(), learning_rate=rate, clip=clip, bound=bound, momentum=momentum)
    plain = weights(called("dp-sgd"), learning_rate=rate * clip / bound, clip=bound, momentum=momentum)
    np.testing.assert_allclose(scaled, plain, rtol=0, atol=1e-6)


def test_not_with_adam() -> None:
    given = {"learning_rate": 0.01, "clip": 0.2, "bound": 0.6}
    plain = weights(called("dp-sgd"), optimizer="adam", learning_rate=0.01 / 3, clip=0.6)
    assert not np.allclose(weights(FixedBound(), optimizer="adam", **given), plain, atol=1e-3)


@pytest.mark.parametrize("method", [FixedBound(), called("dp-sgd-global")], ids=["fixed bound", "dp-sgd-global"])
def test_only_the_product_of_rate_and_clip_matters(method: Method) -> None:
    one = weights(method, learning_rate=0.4, clip=0.2, bound=0.9)
    two = weights(method, learning_rate=0.2, clip=0.4, bound=0.9)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-6)
    assert not np.allclose(one, weights(method, learning_rate=0.4, clip=0.4, bound=0.9), atol=1e-3)


def test_if_no_gradient_is_long_the_step_keeps_its_direction() -> None:
    """Global scaling without noise is the baseline at learning rate x clip / bound."""
    scaled = weights(called("dp-sgd-global"), 0.0, learning_rate=0.5, clip=2.0, bound=100.0)
    np.testing.assert_allclose(scaled, weights(called("non-private"), 0.0, learning_rate=0.01), rtol=0, atol=1e-12)


def test_one_step_of_each_diagnosis_splits_what_clipping_does() -> None:
    """From the same weights: magnitude keeps the baseline's direction and the clipped length, direction the reverse."""
    data = make_data(n=40, parts=False)
    given = {"learning_rate": 0.3, "clip": 0.3}
    keys = ("non-private", "dp-sgd", "magnitude-error", "direction-error")
    spec = make_spec(data, [(key, 0.0, given) for key in keys], batch_size=40, epochs=1)
    start = make_spec(data, [(keys[0], 0.0, {"learning_rate": 1e-30})], batch_size=40, epochs=1)
    moved = []
    before = train_stack(start, data, METHODS, NETWORKS, Silent(), dtype=torch.float64).network.parameters
    trained = train_stack(spec, data, METHODS, NETWORKS, Silent(), dtype=torch.float64)
    for run in range(4):
        moved.append(judge.of_run(trained.network.parameters, run) - judge.of_run(before, 0))
    plain, clipped, magnitude, direction = moved
    unit = [each / np.linalg.norm(each) for each in moved]
    np.testing.assert_allclose(unit[2], unit[0], atol=1e-9)
    np.testing.assert_allclose(unit[3], unit[1], atol=1e-9)
    assert np.linalg.norm(magnitude) == pytest.approx(np.linalg.norm(clipped))
    assert np.linalg.norm(direction) == pytest.approx(np.linalg.norm(plain))
    assert unit[0] @ unit[1] < 0.9999


def test_groups_with_longer_gradients_get_a_larger_clip_and_the_noise_follows_the_largest() -> None:
    """DPSGD-F on one batch without noise: C (1 + r_k / mean r), and width the largest over all groups."""
    from contextlib import ExitStack

    from worker.engine.networks.rows import Rows
    from worker.engine.training import build_network, mechanism_of, release_batch, sections_of

    data = make_data(n=60)
    features = data.features.copy()
    features[data.training_groups == 1] *= 4.0
    data = replace(data, features=features)
    spec = make_spec(data, [("dp-sgd-f", 0.0, {"learning_rate": 0.1, "clip": 1.0, "count_noise": 10.0})])
    network = build_network(spec, data, NETWORKS, "cpu", torch.float64)
    with ExitStack() as streams:
        [section] = sections_of(spec, data, network, [mechanism_of(spec.runs[0], spec, METHODS)], streams)
        zeros = torch.zeros(1, network.numbers, dtype=torch.float64)
        [counts] = release_batch(network, Rows.of(data, "cpu", torch.float64), torch.arange(60), [section], zeros)
    assert counts is not None
    above, below = counts[0, :2].numpy(), counts[0, 2:].numpy()
    assert (above + below == np.bincount(data.training_groups)).all()
    share = above / (above + below)
    clips = 1 + share / share.mean()
    assert share[1] > share[0]
    assert section.clipper.width.item() == pytest.approx(clips.max(), rel=1e-6)
