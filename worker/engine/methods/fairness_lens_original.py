"""Fairness Lens as it was run (Tran et al. 2021; Esipova et al. 2023, v1, algorithm 5): a reference without a claim."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.engine.mechanisms.clipping import BatchGradients, Clipper, ClippingRule, Start
from worker.engine.methods.base import MOMENTUM, NO_CLAIM, Budget, Calibrate, MethodPlan
from worker.engine.methods.fairness_lens import ALIGNMENT, BOUNDARY
from worker.engine.params import Param
from worker.engine.results import TrainingSize

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class BatchLens:
    """Gradients of the batch's regularised loss, each clipped at C. The regulariser couples all records, so one record
    moves the sum by up to C (2 |B| - 1): nothing is bounded, whatever noise is added."""

    clip: float
    alignment: float
    boundary: float
    unclaimed_noise: float
    sensitivity: float = math.inf
    side: tuple[str, ...] = ()
    side_noise: float = math.inf

    def statistics(self, start: Start) -> int:
        del start
        return 0

    def begin(self, start: Start) -> Clipper:
        return _BatchLens(self, start)


@dataclass(frozen=True)
class _BatchLens:
    rule: BatchLens
    start: Start
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor | None:
        del batch
        return None

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        del released
        common = self.common_gradient(batch) if len(batch.groups) else None
        if common is None:
            return batch.norms.new_ones(batch.norms.shape)
        squared = batch.norms.square() + 2.0 * batch.along(common) + common.square().sum(1)
        factors = self.rule.clip / squared.clamp(min=self.rule.clip**2).sqrt()
        batch.add(factors.sum(0)[:, None] * common)
        return factors

    def common_gradient(self, batch: BatchGradients) -> Tensor:
        """Gradient of the regulariser, shape (R, numbers), which every record's loss contains. The factors of clipped
        gradients count as constants."""
        rule, runs, groups = self.rule, self.start.runs, self.start.groups
        ones = batch.norms.new_ones(batch.norms.shape)
        counted, clipped = 1.0 / len(batch.groups), rule.clip / batch.norms.clamp(min=rule.clip)
        sizes = batch.groups.bincount(minlength=groups).to(ones.dtype)
        whole = counted * batch.sums(ones)
        error = counted * batch.sums(clipped) - whole
        apart = ones.new_zeros(runs, groups, self.start.numbers)
        means = ones.new_zeros(groups, runs, self.start.classes)
        for group in sizes.nonzero().flatten().tolist():
            member = batch.groups == group
            apart[:, group] = batch.sums(ones, member) / sizes[group] - whole
            means[group] = batch.probabilities[member].mean(0)
        signs = rule.alignment * (apart @ error[:, :, None])[:, :, 0].sign()
        share = sizes.clamp(min=1.0).reciprocal()[:, None]
        pull = (signs.t() * share - counted * signs.sum(1)).index_select(0, batch.groups)
        tilt = (-0.5 * rule.boundary * share[:, :, None] * means).index_select(0, batch.groups)
        turned = (apart * signs[:, :, None]).sum(1)
        still = tilt.new_zeros(tilt.shape)
        return batch.bend_sums(error, pull, tilt) + batch.bend_sums(turned, counted * (clipped - 1.0), still)


@dataclass(frozen=True)
class FairnessLensOriginal:
    """What the papers ran: the batch's regulariser enters every record's loss before clipping and noise.

    L_i = l_i + l1 R1 + l2 R2 with R1 = sum over groups of |<g_k - g_B, h_B - g_B>| and R2 = 1/4 sum over groups of
    1 - sum of squared mean probabilities, all of the same batch; each gradient is clipped at C and noise added. Because
    R1 and R2 depend on the whole batch, removing one record changes every other record's gradient: the epsilon that was
    reported for it does not hold (METHODS.md 2.4). It is kept to compare with and claims nothing, with noise or without.
    """

    key: str = "fairness-lens-original"
    title: str = "Fairness Lens, original (claims no privacy)"
    help: str = (
        "As published, with noise, but one row changes the gradients of all others, so that the noise hides nobody. "
        "A reference to compare with: it claims no privacy."
    )
    private: bool = False
    uses_groups: bool = True
    params: tuple[Param, ...] = (
        Param(
            "noise_multiplier",
            "Noise",
            "Noise over the clip, as published; it protects nobody.",
            1.0,
            0.0,
            100.0,
        ),
        ALIGNMENT,
        BOUNDARY,
        MOMENTUM,
    )
    limit: Mapping[str, float] = field(
        default_factory=lambda: {"clip": 1e3, "alignment": 0.0, "boundary": 0.0, "noise_multiplier": 0.0}
    )

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """No events and no epsilon, whatever noise is added."""
        del budget, size, values, calibrate
        return NO_CLAIM

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        clip = float(values["clip"])
        noise = float(values["noise_multiplier"]) * clip
        return BatchLens(clip, float(values["alignment"]), float(values["boundary"]), noise)


FAIRNESS_LENS_ORIGINAL = FairnessLensOriginal()
