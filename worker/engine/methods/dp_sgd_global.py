"""DPSGD-Global (Bu et al. 2021): scale all gradients alike, and leave out those beyond a bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.engine.mechanisms.clipping import ROUNDING, BatchGradients, Clipper, ClippingRule, Start
from worker.engine.methods.base import MOMENTUM, Budget, Calibrate, MethodPlan, plan_private
from worker.engine.params import Param
from worker.engine.results import TrainingSize

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class DropAbove:
    """Factor clip / bound for gradients up to the bound, 0 beyond; a bound below the clip counts as the clip."""

    clip: float
    bound: float
    side: tuple[str, ...] = ()
    side_noise: float = math.inf
    unclaimed_noise: float = 0.0

    @property
    def sensitivity(self) -> float:
        return self.clip * (1.0 + ROUNDING)

    def statistics(self, start: Start) -> int:
        del start
        return 0

    def begin(self, start: Start) -> Clipper:
        del start
        return _Dropping(self)


@dataclass(frozen=True)
class _Dropping:
    rule: DropAbove
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor | None:
        del batch
        return None

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        del released
        bound = max(self.rule.bound, self.rule.clip)
        return (batch.norms <= bound).to(batch.norms.dtype) * (self.rule.clip / bound)


@dataclass(frozen=True)
class DpSgdGlobal:
    """All gradients are shortened by the same factor, so that the step keeps its direction; very long ones are left
    out.

    Factor C / Z if |g| <= Z, else 0, with a bound Z >= C chosen without looking at the data. Sensitivity C, noise
    sigma C, accounted like DP-SGD. If no gradient exceeds Z, the step without noise points exactly where it would
    without privacy. Only learning rate x C / Z matters: compare methods at equal products (METHODS.md 2.7). Void if Z
    was chosen by looking at the data.
    """

    key: str = "dp-sgd-global"
    title: str = "DPSGD-Global"
    help: str = (
        "All gradients are shortened by the same factor, clip over bound, and those longer than the bound are left out. "
        "Choose the bound without looking at the data."
    )
    private: bool = True
    uses_groups: bool = False
    params: tuple[Param, ...] = (
        Param(
            "bound",
            "Bound",
            "Gradients longer than this are left out. At least the clip.",
            50.0,
            1e-3,
            1e4,
            at_least="clip",
        ),
        MOMENTUM,
    )
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3, "bound": 1e3})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least noise that spends no more than the budget."""
        return plan_private(self, budget, size, values, calibrate)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return DropAbove(float(values["clip"]), float(values["bound"]))


DP_SGD_GLOBAL = DpSgdGlobal()
