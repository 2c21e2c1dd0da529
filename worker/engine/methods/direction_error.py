"""A diagnosis without noise (Esipova et al. 2023, table 1): clipping turns the step but does not shorten it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.engine.mechanisms.clipping import BatchGradients, Clipper, ClippingRule, Start
from worker.engine.methods.base import MOMENTUM, NO_CLAIM, Budget, Calibrate, MethodPlan
from worker.engine.params import Param
from worker.engine.results import TrainingSize

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TurnOnly:
    """Clipped gradients, times |sum of gradients| / |sum of clipped gradients|. It bounds nobody's influence."""

    clip: float
    sensitivity: float = math.inf
    side: tuple[str, ...] = ()
    side_noise: float = math.inf
    unclaimed_noise: float = 0.0

    def statistics(self, start: Start) -> int:
        del start
        return 0

    def begin(self, start: Start) -> Clipper:
        del start
        return _Turning(self.clip)


@dataclass(frozen=True)
class _Turning:
    clip: float
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor | None:
        del batch
        return None

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        del released
        clipped: Tensor = self.clip / batch.norms.clamp(min=self.clip)
        whole = batch.sums(clipped.new_ones(clipped.shape)).norm(dim=1)
        short = batch.sums(clipped).norm(dim=1)
        stretch = (whole / short).masked_fill(short == 0, 0.0)
        factors: Tensor = clipped * stretch
        return factors


@dataclass(frozen=True)
class DirectionError:
    """Ordinary steps, turned as clipping turns them.

    With the sum g of a batch's gradients and the sum h of the clipped ones, the step follows (|g| / |h|) h. What it
    costs, beside the other diagnosis, says how much of the cost of clipping comes from the turned direction. No noise is
    added and one row is not bounded: it claims no privacy.
    """

    key: str = "direction-error"
    title: str = "Direction error only (claims no privacy)"
    help: str = (
        "A diagnosis: steps turned as clipping turns them, as long as they were. "
        "No noise is added, and no privacy is claimed."
    )
    private: bool = False
    uses_groups: bool = False
    params: tuple[Param, ...] = (MOMENTUM,)
    limit: Mapping[str, float] = field(default_factory=lambda: {"clip": 1e3})

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """No noise, no events, no epsilon."""
        del budget, size, values, calibrate
        return NO_CLAIM

    def rule(self, values: Mapping[str, float]) -> ClippingRule:
        return TurnOnly(float(values["clip"]))


DIRECTION_ERROR = DirectionError()
