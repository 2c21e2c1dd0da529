"""Clipping rules: the norms of per-example gradients in, the factor each gradient is multiplied by out.

A rule is data: what bounds one example's influence, and what it releases besides the sum of scaled gradients. ``begin``
makes its *clipper*, which holds the state of one training (a clip that adapts, say) for neighbouring runs of a stack
that share the rule. Each step the clipper *measures* the batch (counts, of unit sensitivity), hears the counts back
with noise, and answers with a factor per example and run. Whatever it answers, a scaled gradient must not be longer
than ``sensitivity`` times the clipper's ``width`` of that step. State may depend on what was released, on nothing else.
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


class BatchGradients(Protocol):
    """The gradients of a batch of B examples in R neighbouring runs, without any of them being formed.

    Flat vectors are laid out as a run's noise is. Everything here is private until noise is in.
    """

    @property
    def norms(self) -> Tensor:
        """L2 norm over all parameters of each gradient, shape (B, R), finite; a lost gradient has 0."""

    @property
    def groups(self) -> Tensor:
        """Training group of each example, int64, shape (B,)."""

    @property
    def probabilities(self) -> Tensor:
        """Predicted probability of each class, shape (B, R, classes), also for two classes."""

    @property
    def last_release(self) -> Tensor:
        """The noisy sum that the step before released, shape (R, numbers); zero before the first step."""

    def sums(self, factors: Tensor, which: Tensor | None = None) -> Tensor:
        """Sum of gradients, each times its factor, shape (B, R), over the examples ``which`` (bool, shape (B,)) or all:
        shape (R, numbers)."""

    def along(self, direction: Tensor) -> Tensor:
        """Inner product of each gradient with a direction, shape (R, numbers): shape (B, R)."""

    def bend(self, direction: Tensor, weights: Tensor, tilt: Tensor) -> Tensor:
        """Replace each gradient g by g + w H v + J, and answer with the new norms, shape (B, R).

        H is the Hessian of the example's loss and v the direction, shape (R, numbers); w are the weights, shape (B, R);
        J is the gradient of the class probabilities weighted by ``tilt``, shape (B, R, classes). ``sums`` must be asked
        before.
        """

    def bend_sums(self, direction: Tensor, weights: Tensor, tilt: Tensor) -> Tensor:
        """Sum over the batch of w H v + J as in ``bend``, shape (R, numbers); no gradient is changed."""

    def add(self, total: Tensor) -> None:
        """Add a vector, shape (R, numbers), to the sum of scaled gradients of this step."""


@dataclass(frozen=True)
class Start:
    """What a clipper is made for: neighbouring runs of one stack. All are public constants of the training.

    ``empty`` has the dtype and device of the stack: new tensors are made from it, since methods do not import torch.
    """

    runs: int
    groups: int
    classes: int
    numbers: int
    expected_batch_size: float
    empty: Tensor


class Clipper(Protocol):
    """A clipping rule at work in one training."""

    @property
    def width(self) -> Tensor | None:
        """Factor of the sensitivity, and so of the noise, in this step, shape (R,); None where it is always 1. Asked
        after ``scale``."""

    def measure(self, batch: BatchGradients) -> Tensor | None:
        """What is released besides the sum, before noise: shape (R, statistics); None for nothing. One unit moves each
        of the rule's ``side`` releases in it by at most 1 (L2)."""

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        """Factors, shape (B, R), for this batch, given what ``measure`` found, with noise. Updates the state."""


class ClippingRule(Protocol):
    """What bounds one example's influence on one step."""

    @property
    def sensitivity(self) -> float:
        """Most that adding or removing one unit moves the sum of scaled gradients (L2) at width 1; infinite if
        unbounded."""

    @property
    def side(self) -> tuple[str, ...]:
        """Names of what is released besides that sum, each of sensitivity 1."""

    @property
    def side_noise(self) -> float:
        """Noise multiplier of each side release over that of the sum."""

    @property
    def unclaimed_noise(self) -> float:
        """Standard deviation of the noise of a rule that bounds nothing; 0 for none."""

    def statistics(self, start: Start) -> int:
        """How many numbers a run's side releases have."""

    def begin(self, start: Start) -> Clipper:
        """The clipper of a new training."""


@dataclass(frozen=True)
class Stateless:
    """A clipper that keeps nothing and releases nothing but the sum."""

    rule: FlatClip | NoClip
    width: Tensor | None = None

    def measure(self, batch: BatchGradients) -> Tensor | None:
        del batch
        return None

    def scale(self, batch: BatchGradients, released: Tensor | None) -> Tensor:
        del released
        return self.rule.scale(batch.norms)


@dataclass(frozen=True)
class FlatClip:
    """Every gradient longer than ``clip`` is shortened to ``clip``: factor clip / max(norm, clip) (Abadi et al.
    2016)."""

    clip: float
    side: tuple[str, ...] = ()
    side_noise: float = math.inf
    unclaimed_noise: float = 0.0

    @property
    def sensitivity(self) -> float:
        return self.clip * (1.0 + ROUNDING)

    def scale(self, norms: Tensor) -> Tensor:
        """Factors for gradients of these norms."""
        return self.clip / norms.clamp(min=self.clip)

    def statistics(self, start: Start) -> int:
        del start
        return 0

    def begin(self, start: Start) -> Clipper:
        del start
        return Stateless(self)


@dataclass(frozen=True)
class NoClip:
    """Gradients are used as they are; nothing is bounded, so nothing private can be claimed."""

    sensitivity: float = math.inf
    side: tuple[str, ...] = ()
    side_noise: float = math.inf
    unclaimed_noise: float = 0.0

    def scale(self, norms: Tensor) -> Tensor:
        """Ones."""
        return norms.new_ones(norms.shape)

    def statistics(self, start: Start) -> int:
        del start
        return 0

    def begin(self, start: Start) -> Clipper:
        del start
        return Stateless(self)
