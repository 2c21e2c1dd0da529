"""What a clear-box attack can show lies below the claim of every private method, and above it once the method is broken
in one of five ways. Everything is seeded: the same trainings every time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.privacy.canary import attack, bound, claim, claimed, spec_of
from worker.engine.catalogue import METHODS
from worker.engine.mechanisms.clipping import FlatClip, Stateless
from worker.engine.methods.base import Method
from worker.engine.methods.dp_sgd import DP_SGD, DpSgd
from worker.engine.methods.dp_sgd_f import DP_SGD_F, DpSgdF, GroupClip, _Clips
from worker.engine.methods.dp_sgd_global_adapt import DP_SGD_GLOBAL_ADAPT
from worker.engine.results import PrivacyEvent

PRIVATE = pytest.mark.parametrize("method", [m for m in METHODS if m.private], ids=lambda method: method.key)


@pytest.mark.parametrize(
    ("hits", "alarms", "trials", "expected"),
    [(80, 20, 100, 0.8864), (450, 50, 500, 1.9035), (30, 1, 1000, 1.2962), (995, 1, 1000, 5.1806)],
)
def test_the_bound_is_the_published_one(hits: int, alarms: int, trials: int, expected: float) -> None:
    assert bound(hits, alarms, trials) == pytest.approx(expected, abs=1e-4)


@PRIVATE
def test_the_floor_lies_below_the_claim(method: Method) -> None:
    spec = spec_of(method, 1.5)
    assert attack(method, spec, 240) < claimed(method, spec)


def test_the_attack_is_no_toy() -> None:
    """On plain DP-SGD it proves something."""
    assert attack(DP_SGD, spec_of(DP_SGD, 1.0), 400) > 0.3


@pytest.mark.proofs
@PRIVATE
@pytest.mark.parametrize("noise", [0.8, 2.0])
def test_the_floor_lies_below_the_claim_in_many_trainings(method: Method, noise: float) -> None:
    spec = spec_of(method, noise)
    assert attack(method, spec, 2000) < claimed(method, spec)


def test_noise_less_than_claimed_is_caught() -> None:
    spec = spec_of(DP_SGD, 0.25)
    honest = replace(spec, runs=(replace(spec.runs[0], noise_multiplier=2.5),))
    assert attack(DP_SGD, spec, 300) > claimed(DP_SGD, honest)


@dataclass(frozen=True)
class Unclipped(FlatClip):
    """Claims the bound and does not keep it."""

    def scale(self, norms):
        return norms.new_ones(norms.shape)


@dataclass(frozen=True)
class WithoutClip(DpSgd):
    def rule(self, values):
        return Unclipped(float(values["clip"]))


def test_a_missing_clip_is_caught() -> None:
    spec = spec_of(DP_SGD, 2.5)
    assert attack(WithoutClip(), spec, 300) > claimed(WithoutClip(), spec)


class ForgetfulClips(_Clips):
    """Everything as in DPSGD-F, but for the second group."""

    def scale(self, batch, released):
        factors = super().scale(batch, released)
        return factors.masked_fill((batch.groups == 1)[:, None], 1.0)


@dataclass(frozen=True)
class ForgetfulRule(GroupClip):
    def begin(self, start):
        return ForgetfulClips(self, start.groups)


@dataclass(frozen=True)
class ForgetsOneGroup(DpSgdF):
    def rule(self, values):
        return ForgetfulRule(float(values["clip"]), float(values["count_noise"]))


def test_a_clip_that_is_forgotten_for_one_group_is_caught() -> None:
    spec = spec_of(DP_SGD_F, 2.5)
    assert attack(ForgetsOneGroup(), spec, 300) > claimed(ForgetsOneGroup(), spec)


class ThinClipper(Stateless):
    """Its noise is divided by the batch size, and once more by the step: as if it were that of a mean."""

    def scale(self, batch, released):
        object.__setattr__(self, "width", batch.norms.new_full((batch.norms.shape[1],), 1.0 / 12))
        return super().scale(batch, released)


@dataclass(frozen=True)
class ThinRule(FlatClip):
    def begin(self, start):
        return ThinClipper(self)


@dataclass(frozen=True)
class DividesTwice(DpSgd):
    def rule(self, values):
        return ThinRule(float(values["clip"]))


def test_noise_that_is_divided_by_the_batch_size_once_too_often_is_caught() -> None:
    spec = spec_of(DP_SGD, 2.5)
    assert attack(DividesTwice(), spec, 300) > claimed(DividesTwice(), spec)


def test_uncharged_counts_are_caught() -> None:
    """Count noise 0.5 beside gradients at sigma 3, with only the gradients charged."""
    sigma = 3.0
    joint = float((sigma**-2 + 0.5**-2) ** -0.5)
    spec = spec_of(DP_SGD_GLOBAL_ADAPT, joint, count_noise=0.5 / sigma)
    undercounted = claim((PrivacyEvent(sigma, spec.size.sampling_probability, spec.size.steps),))
    found = attack(DP_SGD_GLOBAL_ADAPT, spec, 300)
    assert undercounted < found < claimed(DP_SGD_GLOBAL_ADAPT, spec)


def test_without_noise_the_attack_sees_everything_and_with_much_nothing() -> None:
    assert attack(DP_SGD, spec_of(DP_SGD, 1e-3), 200) > 2.5
    assert attack(DP_SGD, spec_of(DP_SGD, 1e3), 200) < 0.3
    assert np.isfinite(claimed(DP_SGD, spec_of(DP_SGD, 1e3)))
