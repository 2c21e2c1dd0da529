"""Parameters of methods, networks and training: name, type, range, default, help. Forms and schemas are made from
these."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Param:
    """One number a person may set.

    Attributes:
        key: name in the request, e.g. ``learning_rate``.
        title: label on screen.
        help: one sentence.
        default: value where nothing is given.
        low, high: inclusive range.
        integer: whole numbers only.
        at_least: key of another value of the same method that this one must not be below.
    """

    key: str
    title: str
    help: str
    default: float
    low: float
    high: float
    integer: bool = False
    at_least: str | None = None

    def problem(self, value: object) -> str | None:
        """Why ``value`` cannot be used, or None if it can."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{self.title} must be a number."
        if not math.isfinite(value):
            return f"{self.title} must be a finite number."
        if self.integer and value != int(value):
            return f"{self.title} must be a whole number."
        if not self.low <= value <= self.high:
            return f"{self.title} must lie between {self.low:g} and {self.high:g}."
        return None


@dataclass(frozen=True)
class NetworkKind:
    """A kind of network a person may choose. ``module`` names the code, so that looking at the list loads no torch.

    Attributes:
        key: name in the request, ``logistic`` or ``mlp``.
        title, help: label and one sentence for the screen.
        hidden: widths of the hidden layers where nothing is given; empty where the kind has none.
        module: dotted name of the module whose ``build`` makes a stack of these networks.
    """

    key: str
    title: str
    help: str
    hidden: tuple[int, ...]
    module: str


@dataclass(frozen=True)
class Choice:
    """One of several named ways, such as an optimizer or an activation."""

    key: str
    title: str
    help: str


ACTIVATIONS: tuple[Choice, ...] = (
    Choice("tanh", "tanh", "Smooth and bounded; the usual choice with a clip."),
    Choice("relu", "ReLU", "max(0, z); its gradients can grow long, so that more of them are clipped."),
)
"""Of the hidden layers; a network without any has no use for one."""


@dataclass(frozen=True)
class OptimizerKind(Choice):
    """How a step is made from the release of a batch; its defaults for the learning rates of private runs and of the
    baseline, since a good rate for one optimizer is absurd for another."""

    learning_rate: float = 0.1
    baseline_learning_rate: float = 0.5
