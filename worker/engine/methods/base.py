"""What a training method is, and the parameters that all methods share. Torch-free: the web process reads this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from worker.engine.mechanisms.clipping import ClippingRule
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.params import OptimizerKind, Param
from worker.engine.results import Calibration, PrivacyEvent, TrainingSize

Calibrate = Callable[[float, float, float, int], Calibration]
"""(epsilon, delta, sampling probability, steps) -> the noise multiplier that spends no more than epsilon."""


@dataclass(frozen=True)
class Budget:
    """What a run may spend; ``epsilon`` is None for a run without privacy."""

    epsilon: float | None
    delta: float


@dataclass(frozen=True)
class MethodPlan:
    """What a method will do with its budget: its noise, and every event it spends, before anything trains."""

    noise_multiplier: float
    epsilon_spent: float | None
    events: tuple[PrivacyEvent, ...]
    check: Mapping[str, float | str] = field(default_factory=dict)


class Method(Protocol):
    """A training method inside the shared loop: it only decides how gradients are scaled, and what that costs.

    Attributes:
        private: whether it claims an epsilon; one that does not says so in its title.
        uses_groups: whether it looks at a row's training group while it trains.
        params: what a person may set, besides the shared learning rate and clip.
        limit: values at which the method, without noise, is the baseline. Clips stand above all norms that occur.
    """

    @property
    def key(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def help(self) -> str: ...

    @property
    def private(self) -> bool: ...

    @property
    def uses_groups(self) -> bool: ...

    @property
    def params(self) -> tuple[Param, ...]: ...

    @property
    def limit(self) -> Mapping[str, float]: ...

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """Noise and events for this budget. Raises AccountingProblem where no noise meets it."""

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        """How this method scales gradients, for these parameter values."""


def plan_private(
    method: Method, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate
) -> MethodPlan:
    """The least noise over the joint sensitivity of all that the method releases in a step.

    Raises:
        ValueError: the budget has no epsilon.
        AccountingProblem: no noise meets the budget, or the accountants disagree.
    """
    if budget.epsilon is None:
        raise ValueError(f"{method.title} was planned without an epsilon. Give every private run one.")
    found = calibrate(budget.epsilon, budget.delta, size.sampling_probability, size.steps)
    mechanism = Mechanism.of(method.rule(values), found.noise_multiplier, size)
    return MethodPlan(mechanism.noise_multiplier, found.epsilon_spent, mechanism.events, found.check)


NO_CLAIM = MethodPlan(noise_multiplier=0.0, epsilon_spent=None, events=())
"""The plan of a method that claims nothing."""

TRAINING_PARAMS: tuple[Param, ...] = (
    Param("epochs", "Epochs", "Passes over the training part.", 20, 1, 1000, integer=True),
    Param(
        "batch_size",
        "Batch size",
        "Rows in a batch on average; batches are drawn by coin.",
        256,
        1,
        65536,
        integer=True,
    ),
    Param(
        "learning_rate",
        "Learning rate",
        "Step length of the private runs. It acts together with the clip: a small product of the two slows them.",
        0.1,
        1e-6,
        100.0,
    ),
    Param(
        "clip",
        "Clip",
        "Longest gradient that one row may add. Too small a clip distorts the groups whose gradients are long.",
        4.0,
        1e-3,
        1000.0,
    ),
)
"""Shared by all runs of an audit; the baseline has a learning rate of its own."""

MOMENTUM = Param(
    "momentum",
    "Momentum",
    "Share of the last step that is kept in the next; 0 for plain steps. Not with Adam.",
    0.0,
    0.0,
    0.99,
)

COUNT_NOISE = Param(
    "count_noise",
    "Noise of side releases",
    "Noise of what is released beside the gradients, such as counts, as a multiple of theirs. It is charged.",
    10.0,
    0.5,
    1000.0,
)

OPTIMIZERS: tuple[OptimizerKind, ...] = (
    OptimizerKind("sgd", "SGD", "Plain steps, with momentum where a method asks for it.", 0.1, 0.5),
    OptimizerKind(
        "adam",
        "Adam",
        "Each weight's step is divided by its usual size. The clip then hardly acts as a step length.",
        0.002,
        0.005,
    ),
)
"""How a step is made from the noisy sum; for all runs of an audit, the baseline too."""
