"""Clipping rules: the norms of per-example gradients in, the factor each gradient is multiplied by out.

A rule never sees a gradient. It is handed the L2 norms over all parameters of one example in one run, and answers
with a factor per example and run. Whatever it answers, the scaled gradient must not be longer than ``sensitivity``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 1e-5
"""Norms are computed in float32: a clipped gradient may be longer than the clip by this share, and the noise pays for
it."""


class ClippingRule(Protocol):
    """What bounds one example's influence on one step."""

    @property
    def sensitivity(self) -> float:
        """Most that adding or removing one unit moves the sum of scaled gradients (L2); infinite if unbounded."""

    def scale(self, norms: Tensor) -> Tensor:
        """Factors, shape (batch, runs), for gradients of these norms, shape (batch, runs), all finite and >= 0."""


@dataclass(frozen=True)
class FlatClip:
    """Every gradient longer than ``clip`` is shortened to ``clip``: factor clip / max(norm, clip) (Abadi et al.
    2016)."""

    clip: float

    @property
    def sensitivity(self) -> float:
        return self.clip * (1.0 + ROUNDING)

    def scale(self, norms: Tensor) -> Tensor:
        return self.clip / norms.clamp(min=self.clip)


@dataclass(frozen=True)
class NoClip:
    """Gradients are used as they are; nothing is bounded, so nothing private can be claimed."""

    @property
    def sensitivity(self) -> float:
        return math.inf

    def scale(self, norms: Tensor) -> Tensor:
        return norms.new_ones(norms.shape)
