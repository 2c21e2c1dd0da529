"""One object for the parts of a private step that must agree: sampling, clipping, noise, and the event they amount
to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from worker.engine.mechanisms.clipping import ROUNDING, ClippingRule
from worker.engine.results import PrivacyEvent, Release, TrainingSize

GRADIENT_SUM = "sum of scaled gradients"


@dataclass(frozen=True)
class Mechanism:
    """Poisson batches, a clipping rule and Gaussian noise, bound together.

    The method makes its claim from ``events`` and the training loop draws its batches and noise from the same fields,
    so neither can be changed without the other.

    Attributes:
        rule: bounds what one unit adds to the sum of a step, and says what else is released.
        noise_multiplier: noise standard deviation over the joint sensitivity of all releases of a step.
        sampling_probability: each unit's own coin, each step.
        steps: how often.
    """

    rule: ClippingRule
    noise_multiplier: float
    sampling_probability: float
    steps: int

    @classmethod
    def of(cls, rule: ClippingRule, noise_multiplier: float, size: TrainingSize) -> Mechanism:
        """The mechanism of a training of this size. A Python float, whatever number type comes in (METHODS.md 5.3)."""
        return cls(rule, float(noise_multiplier), float(size.sampling_probability), int(size.steps))

    @property
    def sum_multiplier(self) -> float:
        """Noise multiplier of the sum of scaled gradients: sigma^-2 = sigma_sum^-2 (1 + sides / side_noise^2), since
        one record can move all releases of a batch at once (METHODS.md 5.2)."""
        return self.noise_multiplier * math.sqrt(1.0 + len(self.rule.side) / float(self.rule.side_noise) ** 2)

    @property
    def side_multiplier(self) -> float:
        """Noise multiplier of each side release."""
        return self.sum_multiplier * float(self.rule.side_noise) if self.rule.side else 0.0

    @property
    def noise_std(self) -> float:
        """Standard deviation, at width 1, of the noise added to each coordinate of the sum of scaled gradients."""
        if math.isinf(self.rule.sensitivity):
            return self.rule.unclaimed_noise
        return self.sum_multiplier * self.rule.sensitivity if self.noise_multiplier > 0 else 0.0

    @property
    def side_std(self) -> float:
        """Standard deviation of the noise added to each number of the side releases."""
        return self.side_multiplier * (1.0 + ROUNDING)

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """What this spends: one event, whatever is released. Empty where nothing is bounded: there is no finite claim
        to make."""
        if math.isinf(self.rule.sensitivity):
            return ()
        sides = (Release(what, self.side_multiplier) for what in self.rule.side)
        releases = (Release(GRADIENT_SUM, self.sum_multiplier), *sides)
        event = PrivacyEvent(self.noise_multiplier, self.sampling_probability, self.steps, releases=releases)
        return (event,)
