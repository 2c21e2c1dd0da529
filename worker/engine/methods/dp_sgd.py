"""DP-SGD (Abadi et al. 2016): clip each row's gradient, add Gaussian noise to the sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from worker.engine.mechanisms.clipping import ClippingRule, FlatClip
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.methods.base import MOMENTUM, Budget, Calibrate, MethodPlan
from worker.engine.params import Param
from worker.engine.results import TrainingSize


@dataclass(frozen=True)
class DpSgd:
    """No single row may pull the network by more than a fixed length, and noise of that size hides who pulled.

    theta <- theta - (learning rate / b) * (sum of g_i * min(1, C / |g_i|) + N(0, (sigma C)^2 I)) over a Poisson batch
    in which each unit is with probability q; b = q n is the expected batch size, never the realised one. One event a
    step: Poisson(q) of a Gaussian with multiplier sigma. A large C lets noise dominate; a small C with a small
    learning rate makes the disparity that is then blamed on privacy (METHODS.md 4.6). Void if: batches are shuffled
    instead of drawn by coin, an empty batch is skipped, a batch is cut, the realised batch size divides, one row's
    gradient depends on others (batch norm), or the noise is known.
    """

    key: str = "dp-sgd"
    title: str = "DP-SGD"
    help: str = (
        "Each row's gradient is shortened to at most the clip, and noise scaled to the clip is added to every step, "
        "so that the trained network hardly depends on any one row."
    )
    private: bool = True
    params: tuple[Param, ...] = (MOMENTUM,)

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least noise that spends no more than the budget.

        Raises:
            ValueError: the budget has no epsilon.
            AccountingProblem: no noise meets the budget, or the accountants disagree.
        """
        if budget.epsilon is None:
            raise ValueError("DP-SGD was planned without an epsilon. Give every private run one.")
        found = calibrate(budget.epsilon, budget.delta, size.sampling_probability, size.steps)
        mechanism = Mechanism.of(self.rule(values), found.noise_multiplier, size)
        return MethodPlan(mechanism.noise_multiplier, found.epsilon_spent, mechanism.events, found.check)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return FlatClip(float(values["clip"]))


DP_SGD = DpSgd()
