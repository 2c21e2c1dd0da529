"""Training without privacy: what every cost is measured against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from worker.engine.mechanisms.clipping import ClippingRule, NoClip
from worker.engine.methods.base import MOMENTUM, NO_CLAIM, Budget, Calibrate, MethodPlan
from worker.engine.params import Param
from worker.engine.results import TrainingSize


@dataclass(frozen=True)
class NonPrivate:
    """Nothing is hidden: each step follows the sum of all gradients of its batch, divided by the expected batch size.

    theta <- theta - (learning rate / b) * sum of g_i over the batch. It draws the same Poisson batches and starts
    from the same weights as the private runs of its seed, so that a cost is a paired difference, and it has a
    learning rate of its own, found with the same effort: it never moves with that of the private runs. There is no
    claim to void.
    """

    key: str = "non-private"
    title: str = "No privacy"
    help: str = (
        "Ordinary training on the same batches and from the same starting weights. "
        "It protects nobody; it is what the cost of privacy is measured against."
    )
    private: bool = False
    uses_groups: bool = False
    params: tuple[Param, ...] = (
        Param(
            "learning_rate",
            "Learning rate of the baseline",
            "Step length of the runs without privacy; private runs have their own.",
            0.5,
            1e-6,
            100.0,
        ),
        MOMENTUM,
    )
    limit: Mapping[str, float] = field(default_factory=dict)

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """No noise, no events, no epsilon."""
        del budget, size, values, calibrate
        return NO_CLAIM

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        del values
        return NoClip()


NON_PRIVATE = NonPrivate()
