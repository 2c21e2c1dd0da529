"""Fairness Lens (Tran, Dinh and Fioretto 2021), in a form that is private (METHODS.md 2.4)."""

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

FEWEST = 0.1
"""A group's noisy size counts as at least this share of an even split: what divides by it stays bounded."""

ALIGNMENT = Param(
    "alignment",
    "Weight of the alignment",
    "How strongly groups are kept from being bent apart by the clip. Published with 1, at steps a tenth as long.",
    0.1,
    0.0,
    100.0,
)
BOUNDARY = Param(
    "boundary",
    "Weight of the boundary",
    "How strongly groups are kept from the decision boundary. Too much of it ends in one prediction for everyone.",
    0.1,
    0.0,
    100.0,
)


@dataclass(frozen=True)
class LensClip:
    """Gradients of the regularised loss are clipped at C; the regulariser is made from what the last step released.

    Beside the sum, by training group: the sum of plain gradients clipped at ``reach`` x C, over that bound; the sum of
    predicted probabilities of the classes; and the size. One record touches one group, and moves each by at most 1.
    """

    clip: float
    reach: float
    alignment: float
    boundary: float
    side_noise: float
    side: tuple[str, ...] = (
        "sums by group of gradients clipped at the reach",
        "sums by group of predicted probabilities",
        "sizes of the groups",
    )
    unclaimed_noise: float = 0.0

    @property
    def sensitivity(self) -> float:
        return self.clip * (1.0 + ROUNDING)

    @property
    def longest(self) -> float:
        """The second, larger bound."""
        return self.reach * self.clip

    def statistics(self, start: Start) -> int:
        return start.groups * (start.numbers + start.classes + 1)

    def begin(self, start: Start) -> Clipper:
        return _Lens(self, start)


@dataclass
class _Lens:
    """``released`` are the noisy side sums of the last step, shape (R, statistics); None before the first."""

    rule: LensClip
    start: Start
    width: Tensor | None = None
    released: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor:
        factors, predicted = batch.norms.clamp(min=self.rule.longest).reciprocal(), batch.probabilities
        groups, numbers, classes = self.start.groups, self.start.numbers, self.start.classes
        found = factors.new_empty(self.start.runs, self.rule.statistics(self.start))
        sums = found[:, : groups * numbers].view(-1, groups, numbers)
        chances = found[:, groups * numbers : -groups].view(-1, groups, classes)
        for group in range(groups):
            member = batch.groups == group
            sums[:, group] = batch.sums(factors, member)
            chances[:, group] = predicted[member].sum(0)
            found[:, group - groups] = member.sum()
        return found

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        norms = batch.norms
        if self.released is not None and (self.rule.alignment > 0 or self.rule.boundary > 0):
            norms = self.bend(batch, self.released)
        self.released = released
        return self.rule.clip / norms.clamp(min=self.rule.clip)

    def bend(self, batch: BatchGradients, released: Tensor) -> Tensor:
        """Turn each record's gradient into that of its regularised loss; norms, shape (B, R)."""
        runs, groups, b = self.start.runs, self.start.groups, self.start.expected_batch_size
        cut = groups * self.start.numbers
        sums = self.rule.longest * released[:, :cut].view(runs, groups, -1)
        sizes = released[:, -groups:].clamp(min=FEWEST * b / groups)
        predicted = released[:, cut:-groups].view(runs, groups, -1) / sizes[:, :, None]
        whole = sums.sum(1) / b
        error = batch.last_release / b - whole
        error = error * (self.rule.longest / error.norm(dim=1, keepdim=True).clamp(min=self.rule.longest))
        apart = sums / sizes[:, :, None] - whole[:, None]
        sign = (apart @ error[:, :, None])[:, :, 0].sign()
        pull = self.rule.alignment * (sign * b / sizes - sign.sum(1, keepdim=True))
        tilt = -0.5 * self.rule.boundary * (b / sizes)[:, :, None] * predicted.clamp(0.0, 1.0)
        weights = pull.t().index_select(0, batch.groups)
        return batch.bend(error, weights, tilt.transpose(0, 1).index_select(0, batch.groups))


@dataclass(frozen=True)
class FairnessLens:
    """DP-SGD on a loss that also asks the groups' gradients to be bent alike, and their predictions to be sure.

    The original adds l1 R1 + l2 R2 to the loss of a batch, R1 = sum over groups of |<g_k - g_B, h_B - g_B>|, with mean
    gradients g of a group and of the batch and the mean h of clipped ones, and R2 = 1/4 sum over groups of 1 - sum of
    squared mean probabilities (for two groups and two classes: as in Esipova et al. 2023, v1, algorithm 5). There every
    record's gradient depends on all others, so that clipping bounds nothing (see ``fairness-lens-original``).

    Here each step also releases, with noise, the groups' sums of gradients clipped at a larger bound, of predicted
    probabilities, and their sizes. The next step makes g, h, the signs and the mean probabilities from these alone and
    treats them as constants: a record's loss is then l_i + w_k <grad l_i, h_B - g_B> + linear terms in its own
    probabilities, and its gradient, clipped at C, has sensitivity C. The difference h_B - g_B is cut to the larger
    bound, which the true one cannot exceed by much. Four releases on one batch are one event with
    sigma^-2 = sigma_sum^-2 + 3 sigma_side^-2. Void if anything not released enters the regulariser.
    """

    key: str = "fairness-lens"
    title: str = "Fairness Lens"
    help: str = (
        "The loss also asks that the clip bends no group's gradients more than others', and that predictions are sure, "
        "judged by noisy sums of the step before, which are charged. Groups are the values of the first protected "
        "column; training looks at them."
    )
    private: bool = True
    uses_groups: bool = True
    params: tuple[Param, ...] = (
        ALIGNMENT,
        BOUNDARY,
        Param("reach", "Reach", "The larger bound of the groups' sums, as a multiple of the clip.", 4.0, 1.0, 100.0),
        COUNT_NOISE,
        MOMENTUM,
    )
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3, "alignment": 0.0, "boundary": 0.0})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least joint noise that spends no more than the budget."""
        return plan_private(self, budget, size, values, calibrate)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return LensClip(
            float(values["clip"]),
            float(values["reach"]),
            float(values["alignment"]),
            float(values["boundary"]),
            float(values["count_noise"]),
        )


FAIRNESS_LENS = FairnessLens()
