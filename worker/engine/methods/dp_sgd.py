"""DP-SGD (Abadi et al. 2016): clip each row's gradient, add Gaussian noise to the sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from worker.engine.mechanisms.clipping import ClippingRule, FlatClip
from worker.engine.methods.base import MOMENTUM, Budget, Calibrate, MethodPlan, plan_private
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
    uses_groups: bool = False
    params: tuple[Param, ...] = (MOMENTUM,)
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least noise that spends no more than the budget."""
        return plan_private(self, budget, size, values, calibrate)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return FlatClip(float(values["clip"]))


DP_SGD = DpSgd()
