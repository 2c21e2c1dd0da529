"""DPSGD-F (Xu, Du and Wu 2021, algorithm 2): groups that are clipped more often get a larger clip."""

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


@dataclass(frozen=True)
class GroupClip:
    """Each group has its own clip C_k = C (1 + r_k / mean r), from noisy counts of the same batch.

    The noise is scaled to ``width``, the largest C_k of *all* groups, present or not. Beside the sum: for each group
    how many gradients are longer than C, and how many are not; one record moves one of these counts by 1.
    """

    clip: float
    side_noise: float
    sensitivity: float = 1.0 + ROUNDING
    side: tuple[str, ...] = ("counts by group of norms above and below the clip",)
    unclaimed_noise: float = 0.0

    def statistics(self, start: Start) -> int:
        return 2 * start.groups

    def begin(self, start: Start) -> Clipper:
        return _Clips(self, start.groups)


@dataclass
class _Clips:
    rule: GroupClip
    groups: int
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor:
        """Counts above the clip by group, then counts below, shape (R, 2 K)."""
        above = (batch.norms > self.rule.clip).to(batch.norms.dtype)
        of_group = (batch.groups[:, None] == batch.groups.new_tensor(range(self.groups))).to(above.dtype)
        counts = above.new_empty(above.shape[1], 2 * self.groups)
        counts[:, : self.groups] = above.t() @ of_group
        counts[:, self.groups :] = (1.0 - above).t() @ of_group
        return counts

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        if released is None:
            raise ValueError("DPSGD-F has no bounds without its counts. Release them first.")
        clips = self.clips(released)
        self.width = clips.amax(1)
        own = clips.t().index_select(0, batch.groups)
        return own / batch.norms.maximum(own)

    def clips(self, released: Tensor) -> Tensor:
        """Bound of each group, shape (R, K), from the noisy counts alone."""
        counts = released.floor().clamp(min=0.0)
        above, below = counts[:, : self.groups], counts[:, self.groups :]
        both = above + below
        share = (above / both.clamp(min=1.0)).masked_fill(both == 0, 1.0)
        return self.rule.clip * (1.0 + share / (share.mean(1, keepdim=True) + 1e-8))


@dataclass(frozen=True)
class DpSgdF:
    """DP-SGD that clips a group less, the more of its gradients are longer than the clip.

    On each batch, for each group k: noisy counts of gradients above and below C give r_k, the share above (1 for a
    group whose noisy counts are 0); C_k = C (1 + r_k / mean of r), in the form that the authors' code has, which
    stays below C (1 + K). Gradients of group k are clipped at C_k and the noise is scaled to the largest C_k of all
    groups. Counts and gradients share the batch: one event with sigma^-2 = sigma_sum^-2 + sigma_counts^-2. Void if the
    counts are not noisy or not charged, if the noise is scaled to C as printed, or to the groups present in the batch.
    It looks at every training row's group: for some uses that is different treatment by law.
    """

    key: str = "dp-sgd-f"
    title: str = "DPSGD-F"
    help: str = (
        "Groups whose gradients are cut more often get a larger clip, found by noisy counts that are charged. "
        "Groups are the values of the first protected column; training looks at them."
    )
    private: bool = True
    uses_groups: bool = True
    params: tuple[Param, ...] = (COUNT_NOISE, MOMENTUM)
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least joint noise that spends no more than the budget."""
        return plan_private(self, budget, size, values, calibrate)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return GroupClip(float(values["clip"]), float(values["count_noise"]))


DP_SGD_F = DpSgdF()
