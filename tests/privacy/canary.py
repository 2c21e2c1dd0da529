"""A clear-box attack on whole trainings: it sees the weights and everything a step releases besides.

The canary is the only row with a value in its own column, and its gradient is far longer than any other, so the weight
of that column and the released counts are noise plus the canary. Evidence is weighed by a linear rule that is learnt,
like its threshold, on other trainings than those it is judged on. The floor is the two-sample bound of METHODS.md 6.4.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.stats import beta

from tests.engine.builders import make_data, make_spec
from tests.laws.test_every_method import values
from worker.engine.accounting.accountant import epsilon_pld
from worker.engine.catalogue import NETWORKS
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.methods.base import Method
from worker.engine.observer import Silent
from worker.engine.results import EncodedData, PrivacyEvent, StackSpec
from worker.engine.training import train_stack

DELTA = 1e-5
ROWS = 24


class Overheard:
    """A method whose released side statistics can be read: everything else is the method's own."""

    def __init__(self, inner, heard: list) -> None:
        self.inner, self.heard = inner, heard

    def __getattr__(self, name: str):
        return getattr(self.inner, name)

    def rule(self, given):
        return Overheard(self.inner.rule(given), self.heard)

    def begin(self, start):
        return Overheard(self.inner.begin(start), self.heard)

    def scale(self, batch, released):
        if released is not None:
            self.heard.append(released[0].double().numpy().copy())
        return self.inner.scale(batch, released)


def table() -> EncodedData:
    """24 rows; row 0 is the canary, long and alone in column 0, and in the second training group."""
    data = make_data(n=ROWS, d=4, parts=False)
    features = data.features.copy()
    features[:, 0] = 0.0
    features[0] = [300.0, 0.0, 0.0, 0.0]
    labels = data.labels.copy()
    labels[0] = 0  # the initial weight says 1, so that the first step is a long one
    groups = (np.arange(ROWS) % 3 == 0).astype(np.int64)
    return replace(data, features=features, labels=labels, training_groups=groups)


def spec_of(method: Method, joint: float, **given: float) -> StackSpec:
    """Short trainings: 4 steps, each row in every second batch."""
    settings = values(method, clip=1.0, learning_rate=0.01)
    settings |= {"bound": 160.0 if method.key == "dp-sgd-global" else 5.0} if "bound" in settings else {}
    runs = [(method.key, joint, settings | given)]
    return make_spec(table(), runs, kind="logistic", batch_size=12, epochs=2)


def evidence(method: Method, spec: StackSpec, member: bool, trainings: int, first: int) -> np.ndarray:
    """Per training: the canary's weight, and the sum over steps of each side statistic; shape (trainings, features)."""
    data, found = table(), []
    if not member:
        data = replace(data, parts=np.where(np.arange(ROWS) == 0, 2, 0).astype(np.int8))
    for number in range(first, first + trainings):
        heard: list[np.ndarray] = []
        run = replace(spec.runs[0], noise_seed=7_000_000 + number)
        one = replace(spec, runs=(run,), batch_seed=number)
        trained = train_stack(one, data, [Overheard(method, heard)], NETWORKS, Silent())
        weight = float(trained.network.parameters[0][0, 0, 0])
        found.append([weight, *(np.sum(heard, axis=0) if heard else ())])
    return np.array(found)


def attack(method: Method, spec: StackSpec, trainings: int) -> float:
    """Lower bound of epsilon with 95 % confidence."""
    inside = evidence(method, spec, True, trainings, 0)
    outside = evidence(method, spec, False, trainings, 1_000_000)
    half = trainings // 2
    spread = inside[:half].var(0) + outside[:half].var(0) + 1e-12
    rule = (inside[:half].mean(0) - outside[:half].mean(0)) / spread
    return floor(inside @ rule, outside @ rule)


def claim(events: tuple[PrivacyEvent, ...]) -> float:
    return epsilon_pld(events, DELTA)


def claimed(method: Method, spec: StackSpec) -> float:
    """What the method's own events come to."""
    run = spec.runs[0]
    return claim(Mechanism.of(method.rule(run.parameters), run.noise_multiplier, spec.size).events)


def floor(inside: np.ndarray, outside: np.ndarray) -> float:
    """The threshold is chosen on the first half, judged on the second."""
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
