"""A clear-box attack on the whole training: what it can show lies below the claim, and above it once the training is
broken.

The canary is the only row with a value in its own column, so the weight of that column is noise plus the canary
alone. The floor is the two-sample bound of METHODS.md 6.4 at a threshold chosen on other trainings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import beta

from tests.engine.builders import make_data, make_spec
from worker.engine.accounting.accountant import epsilon_pld
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.mechanisms.clipping import FlatClip
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.methods.dp_sgd import DpSgd
from worker.engine.observer import Silent
from worker.engine.results import EncodedData
from worker.engine.training import train_stack

DELTA = 1e-5


@dataclass(frozen=True)
class Unclipped(FlatClip):
    """Claims the bound and does not keep it."""

    def scale(self, norms):
        return norms.new_ones(norms.shape)


@dataclass(frozen=True)
class BrokenDpSgd(DpSgd):
    def rule(self, values):
        return Unclipped(float(values["clip"]))


def table() -> EncodedData:
    """24 rows; row 0 is the canary, long and alone in column 0."""
    data = make_data(n=24, d=4, parts=False)
    features = data.features.copy()
    features[:, 0] = 0.0
    features[0] = [30.0, 0.0, 0.0, 0.0]
    return replace(data, features=features)


def scores(member: bool, trainings: int, first: int, noise: float, methods) -> np.ndarray:
    """Minus or plus the canary's weight after each of many trainings with own batches and noise."""
    data, found = table(), []
    if not member:
        data = replace(data, parts=np.where(np.arange(24) == 0, 2, 0).astype(np.int8))
    whole = make_spec(
        table(), [("dp-sgd", noise, {"learning_rate": 0.01, "clip": 1.0})], kind="logistic", batch_size=12, epochs=2
    )
    for number in range(first, first + trainings):
        run = replace(whole.runs[0], noise_seed=7_000_000 + number)
        trained = train_stack(replace(whole, runs=(run,), batch_seed=number), data, methods, NETWORKS, Silent())
        found.append(float(trained.network.parameters[0][0, 0, 0]))
    return np.array(found) * (1 if data.labels[0] == 1 else -1)


def floor(inside: np.ndarray, outside: np.ndarray) -> float:
    """Lower bound of epsilon with 95 % confidence; the threshold is chosen on the first half, judged on the second."""
    half = len(inside) // 2
    candidates = np.quantile(np.concatenate([inside[:half], outside[:half]]), np.linspace(0.02, 0.98, 49))
    chosen = max(candidates, key=lambda cut: bound((inside[:half] > cut).sum(), (outside[:half] > cut).sum(), half))
    return bound((inside[half:] > chosen).sum(), (outside[half:] > chosen).sum(), len(inside) - half)


def bound(hits: int, alarms: int, trials: int) -> float:
    """ln((TPR - delta) / FPR) or its mirror, at Clopper-Pearson limits of 97.5 % each."""

    def low(count: int) -> float:
        return float(beta.ppf(0.025, count, trials - count + 1)) if count else 0.0

    def high(count: int) -> float:
        return float(beta.ppf(0.975, count + 1, trials - count)) if count < trials else 1.0

    ratios = [(low(hits) - DELTA) / high(alarms), (low(trials - alarms) - DELTA) / high(trials - hits)]
    return max(0.0, *(math.log(ratio) for ratio in ratios if ratio > 0))


@pytest.mark.parametrize(
    ("hits", "alarms", "trials", "expected"), [(80, 20, 100, 0.8864), (450, 50, 500, 1.9035), (995, 1, 1000, 5.1806)]
)
def test_the_bound_is_the_published_one(hits: int, alarms: int, trials: int, expected: float) -> None:
    assert bound(hits, alarms, trials) == pytest.approx(expected, abs=1e-4)


def attack(claimed_noise: float, real_noise: float, methods, trainings: int) -> tuple[float, float]:
    """(floor, claim)."""
    size = make_spec(table(), batch_size=12, epochs=2).size
    claim = epsilon_pld(Mechanism.of(FlatClip(1.0), claimed_noise, size).events, DELTA)
    inside = scores(True, trainings, 0, real_noise, methods)
    outside = scores(False, trainings, 1_000_000, real_noise, methods)
    return floor(inside, outside), claim


def test_the_floor_lies_below_the_claim_and_above_nothing() -> None:
    below, claim = attack(1.5, 1.5, METHODS, 400)
    assert 0.1 < below < claim


@pytest.mark.proofs
@pytest.mark.parametrize("noise", [0.8, 1.5, 4.0])
def test_the_floor_lies_below_the_claim_in_many_trainings(noise: float) -> None:
    below, claim = attack(noise, noise, METHODS, 4000)
    assert 0.1 < below < claim


def test_noise_less_than_claimed_is_caught() -> None:
    below, claim = attack(2.5, 0.25, METHODS, 300)
    assert below > claim


def test_a_missing_clip_is_caught() -> None:
    below, claim = attack(2.5, 2.5, (BrokenDpSgd(),), 300)
    assert below > claim
