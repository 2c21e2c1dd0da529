"""The method of docs/howto/add-a-method.md, and the plug-in that puts it into the catalogue before any test is found.

``pytest -p tests.laws.toy -k toy`` runs every law, and every page, chart and route that shows methods, on it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.engine import catalogue
from worker.engine.mechanisms.clipping import ROUNDING, BatchGradients, Clipper, ClippingRule, Start
from worker.engine.methods.base import COUNT_NOISE, MOMENTUM, Budget, Calibrate, MethodPlan, plan_private
from worker.engine.params import Param
from worker.engine.results import TrainingSize

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class HalvingClip:
    """Clips at C, and at C / 2 in the step after one in which, as far as the noise shows, few gradients were long."""

    clip: float
    few: float
    side_noise: float
    sensitivity: float = 1.0 + ROUNDING
    side: tuple[str, ...] = ("count of norms above half the clip",)
    unclaimed_noise: float = 0.0

    def statistics(self, start: Start) -> int:
        del start
        return 1

    def begin(self, start: Start) -> Clipper:
        return _Halving(self, start.expected_batch_size, start.empty.new_full((start.runs,), self.clip))


@dataclass
class _Halving:
    rule: HalvingClip
    expected_batch_size: float
    clip: Tensor
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor:
        return (batch.norms > self.rule.clip / 2).sum(0).to(self.clip.dtype)[:, None]

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        self.width = self.clip
        factors = self.clip / batch.norms.maximum(self.clip)
        if released is not None:
            short = released[:, 0] / self.expected_batch_size < self.rule.few
            self.clip = self.rule.clip * (1.0 - 0.5 * short.to(self.clip.dtype))
        return factors


@dataclass(frozen=True)
class Toy:
    """DP-SGD that halves its clip while few gradients are long. Void if the count is not charged."""

    key: str = "toy"
    title: str = "Toy"
    help: str = "An example for those who add a method: the clip is halved while few gradients are long."
    private: bool = True
    uses_groups: bool = False
    params: tuple[Param, ...] = (
        Param("few", "Few", "Share of long gradients below which the clip is halved.", 0.1, 0.0, 1.0),
        COUNT_NOISE,
        MOMENTUM,
    )
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3, "few": 0.0})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least joint noise that spends no more than the budget."""
        return plan_private(self, budget, size, values, calibrate)

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return HalvingClip(float(values["clip"]), float(values["few"]), float(values["count_noise"]))


TOY = Toy()

catalogue.METHODS = (*catalogue.METHODS, TOY)  # type: ignore[misc] # in place of the line in the tuple
