"""DPSGD-Global-Adapt (Esipova et al. 2023, algorithm 2): scale all gradients alike, clip the longest, adapt the
bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.engine.mechanisms.clipping import ROUNDING, BatchGradients, Clipper, ClippingRule, Start
from worker.engine.methods.base import COUNT_NOISE, MOMENTUM, Budget, Calibrate, MethodPlan, plan_private
from worker.engine.params import Param
from worker.engine.results import TrainingSize

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_BOUND = 1e4
"""The bound never grows beyond this public constant, and never falls below the clip."""


@dataclass(frozen=True)
class ScaleBelow:
    """Factor clip / max(norm, Z) with a bound Z that moves until a share ``adaptation`` of norms lies above tolerance x
    Z. Beside the sum: how many do; one record moves that count by 1."""

    clip: float
    bound: float
    adaptation: float
    tolerance: float
    side_noise: float
    side: tuple[str, ...] = ("count of norms above the bound",)
    unclaimed_noise: float = 0.0

    @property
    def sensitivity(self) -> float:
        return self.clip * (1.0 + ROUNDING)

    def statistics(self, start: Start) -> int:
        del start
        return 1

    def begin(self, start: Start) -> Clipper:
        bound = start.empty.new_full((start.runs,), max(self.bound, self.clip))
        return _Adapting(self, start.expected_batch_size, bound)


@dataclass
class _Adapting:
    """``bound`` is that of the next batch, shape (R,)."""

    rule: ScaleBelow
    expected_batch_size: float
    bound: Tensor
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor:
        return (batch.norms > self.rule.tolerance * self.bound).sum(0).to(self.bound.dtype)[:, None]

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        factors = self.rule.clip / batch.norms.maximum(self.bound)
        if released is not None:
            moved = self.bound * (released[:, 0] / self.expected_batch_size - self.rule.adaptation).exp()
            self.bound = moved.clamp(self.rule.clip, max(LARGEST_BOUND, self.rule.clip))
        return factors


@dataclass(frozen=True)
class DpSgdGlobalAdapt:
    """All gradients are shortened by the same factor, the longest are cut, and where "long" begins adapts by a noisy
    count.

    Factor C / max(|g|, Z), with Z >= C. After each step Z <- Z exp(count / b - rate), where the count is the noisy
    number of gradients longer than tolerance x Z and b the expected batch size: Z settles where a share ``rate`` of
    gradients stays above tolerance x Z, which is a quantile, not the maximum. The step uses the old Z. At fixed Z this
    is DP-SGD with clip Z and learning rate x C / Z, with SGD, not with Adam (METHODS.md 2.7). Count and gradients share
    the batch: one event with sigma^-2 = sigma_sum^-2 + sigma_count^-2. Void if the two are accounted apart, if the
    realised batch size divides, or if Z starts from the data.
    """

    key: str = "dp-sgd-global-adapt"
    title: str = "DPSGD-Global-Adapt"
    help: str = (
        "All gradients are shortened by the same factor, only the longest are cut, and where long begins adapts by a "
        "noisy count that is charged."
    )
    private: bool = True
    uses_groups: bool = False
    params: tuple[Param, ...] = (
        Param(
            "bound",
            "Bound at the start",
            "Gradients up to it keep their proportions. At least the clip; choose it without looking at the data.",
            50.0,
            1e-3,
            1e4,
            at_least="clip",
        ),
        Param("adaptation", "Adaptation rate", "Share of gradients that stays above the bound.", 0.1, 0.0, 1.0),
        Param("tolerance", "Tolerance", "A gradient counts as long from this share of the bound.", 1.0, 0.1, 2.0),
        COUNT_NOISE,
        MOMENTUM,
    )
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3, "bound": 1e3, "adaptation": 0.0})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least joint noise that spends no more than the budget."""
        return plan_private(self, budget, size, values, calibrate)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return ScaleBelow(
            float(values["clip"]),
            float(values["bound"]),
            float(values["adaptation"]),
            float(values["tolerance"]),
            float(values["count_noise"]),
        )


DP_SGD_GLOBAL_ADAPT = DpSgdGlobalAdapt()
