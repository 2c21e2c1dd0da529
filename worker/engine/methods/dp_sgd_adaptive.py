"""DP-SGD with a clip that follows a quantile of the norms (Andrew et al. 2021, algorithm 1, with add-or-remove)."""

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

SMALLEST_CLIP, LARGEST_CLIP = 1e-3, 1e3
"""The clip stays between these public constants, whatever the counts say."""


@dataclass(frozen=True)
class QuantileClip:
    """Clips at C, which moves to where the share ``quantile`` of norms lies below it.

    The noise is scaled to ``width``, which is C. Beside the sum: twice the sum over the batch of (bit - 1/2), where bit
    says that the norm is at most C; one record moves it by exactly 1.
    """

    clip: float
    quantile: float
    adaptation: float
    side_noise: float
    sensitivity: float = 1.0 + ROUNDING
    side: tuple[str, ...] = ("centred count of norms below the clip",)
    unclaimed_noise: float = 0.0

    def statistics(self, start: Start) -> int:
        del start
        return 1

    def begin(self, start: Start) -> Clipper:
        return _FollowingClip(self, start.expected_batch_size, start.empty.new_full((start.runs,), self.clip))


@dataclass
class _FollowingClip:
    """``clip`` is that of the next batch, ``width`` that of the last one; shape (R,)."""

    rule: QuantileClip
    expected_batch_size: float
    clip: Tensor
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor:
        below = (batch.norms <= self.clip).sum(0)
        return (2.0 * below - len(batch.norms)).to(self.clip.dtype)[:, None]

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        self.width = self.clip
        factors = self.clip / batch.norms.maximum(self.clip)
        if released is not None and self.rule.adaptation > 0:
            share = (0.5 * released[:, 0] / self.expected_batch_size + 0.5).clamp(0.0, 1.0)
            moved = self.clip * (-self.rule.adaptation * (share - self.rule.quantile)).exp()
            self.clip = moved.clamp(SMALLEST_CLIP, LARGEST_CLIP)
        return factors


@dataclass(frozen=True)
class DpSgdAdaptive:
    """DP-SGD whose clip follows the middle of the gradients' lengths, seen through noise.

    After each step C <- C exp(-rate (share - quantile)), where share is 1/2 + (sum over the batch of (bit - 1/2) +
    noise) / b, cut to [0, 1]: the noisy share of norms at most C. The next step clips at, and scales its noise to, the
    new C. The centred bits have sensitivity 1/2, and share the batch with the gradients: one event with
    sigma^-2 = sigma_sum^-2 + (2 sigma_bits)^-2. Void if the bits are not centred but charged as if, if the realised
    batch size divides, or if C starts from a quantile of the data.
    """

    key: str = "dp-sgd-adaptive"
    title: str = "DP-SGD, adaptive clip"
    help: str = (
        "DP-SGD whose clip follows a quantile of the gradients' lengths, found by a noisy count that is charged. "
        "It starts from the clip given."
    )
    private: bool = True
    uses_groups: bool = False
    params: tuple[Param, ...] = (
        Param("quantile", "Quantile", "Share of gradients that the clip should leave whole.", 0.5, 0.01, 0.99),
        Param("adaptation", "Adaptation rate", "How fast the clip follows; 0 keeps it.", 0.2, 0.0, 2.0),
        COUNT_NOISE,
        MOMENTUM,
    )
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3, "adaptation": 0.0})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least joint noise that spends no more than the budget."""
        return plan_private(self, budget, size, values, calibrate)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return QuantileClip(
            float(values["clip"]), float(values["quantile"]), float(values["adaptation"]), float(values["count_noise"])
        )


DP_SGD_ADAPTIVE = DpSgdAdaptive()
