"""One object for the parts of a private step that must agree: sampling, clipping, noise, and the event they amount
to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from worker.engine.mechanisms.clipping import ClippingRule
from worker.engine.results import PrivacyEvent, TrainingSize


@dataclass(frozen=True)
class Mechanism:
    """Poisson batches, a clipping rule and Gaussian noise, bound together.

    The method makes its claim from ``events`` and the training loop draws its batches and noise from the same fields,
    so neither can be changed without the other.

    Attributes:
        rule: bounds what one unit adds to the sum of a step.
        noise_multiplier: noise standard deviation over the rule's sensitivity.
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
    def noise_std(self) -> float:
        """Standard deviation of the noise added to each coordinate of the sum of scaled gradients."""
        return self.noise_multiplier * self.rule.sensitivity if self.noise_multiplier > 0 else 0.0

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """What this spends. Empty where nothing is bounded: there is no finite claim to make."""
        if math.isinf(self.rule.sensitivity):
            return ()
        return (PrivacyEvent(self.noise_multiplier, self.sampling_probability, self.steps),)
