"""A diagnosis without noise (Esipova et al. 2023, table 1): clipping shortens the step but does not turn it."""

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
class ShortenOnly:
    """Every gradient times |sum of clipped gradients| / |sum of gradients|. It bounds nobody's influence."""

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
        return _Shortening(self.clip)


@dataclass(frozen=True)
class _Shortening:
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
        share = (short / whole).masked_fill(whole == 0, 1.0)
        factors: Tensor = share.expand_as(clipped).clone()
        return factors


@dataclass(frozen=True)
class MagnitudeError:
    """Ordinary steps, as short as clipping makes them.

    With the sum g of a batch's gradients and the sum h of the clipped ones, the step follows (|h| / |g|) g. What it
    costs, beside the other diagnosis, says how much of the cost of clipping comes from short steps. No noise is added
    and one row is not bounded: it claims no privacy.
    """

    key: str = "magnitude-error"
    title: str = "Magnitude error only (claims no privacy)"
    help: str = (
        "A diagnosis: steps as short as clipping makes them, in the direction they had. "
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
        return ShortenOnly(float(values["clip"]))


MAGNITUDE_ERROR = MagnitudeError()
