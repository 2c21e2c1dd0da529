"""Dense networks that each learn from rows of their own, or from the same rows with labels of their own, as one tensor
program: PATE's teachers and students.

No network sees another's rows: every operation is a batched matrix product or elementwise. There are no coins.

Shapes: N networks, n rows each in one step, i inputs, o outputs, C classes. Weights of a layer are (N, i + 1, o), bias
last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softplus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEEP, _KEEP_SQUARES, _SMALL = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class OwnRows:
    """What each network learns from in one step: the mean over these rows.

    Attributes:
        features: (N, n, i), or (1, n, i) where all learn from the same rows.
        labels: (N, n, C), the weight of each class; one-hot, or any numbers.
    """

    features: Tensor
    labels: Tensor


class HowToFit(Protocol):
    """Public constants of learning."""

    @property
    def steps(self) -> int: ...

    @property
    def learning_rate(self) -> float: ...


class OwnRowsStack:
    """``networks`` networks of one shape, from the same initial weights.

    Args:
        layers: initial weights of each layer, shape (inputs + 1, outputs), the bias last.
        activation: of the hidden layers, ``tanh`` or ``relu``.
    """

    def __init__(
        self,
        layers: Sequence[NDArray[np.float64]],
        activation: str,
        networks: int,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.parameters = [
            torch.as_tensor(layer, device=device, dtype=dtype).repeat(networks, 1, 1) for layer in layers
        ]
        self._activate = torch.tanh if activation == "tanh" else torch.relu

    def forward(self, features: Tensor) -> Tensor:
        """Logits, shape (N, n, outputs), of rows with shape (N or 1, n, inputs)."""
        values = features
        for number, layer in enumerate(self.parameters):
            weights, bias = layer[:, :-1], layer[:, -1:]
            values = _shared(values[0], weights) if len(values) == 1 else torch.bmm(values, weights)
            values = values + bias
            if number + 1 < len(self.parameters):
                values = self._activate(values)
        return values

    def fit(
        self, rows_at: Callable[[int], OwnRows], how: HowToFit, l2: Sequence[float], look: Callable[[int], None]
    ) -> None:
        """``how.steps`` steps of Adam, step length falling from ``how.learning_rate`` to 0.

        ``rows_at`` gives the rows of a step, counted from 0; ``look`` is told the number of steps done. ``l2`` holds
        lambda of each network's objective: mean loss + lambda |theta|^2, over all weights with the biases (METHODS.md
        2.10).
        """
        with torch.inference_mode(False), torch.enable_grad():
            leaves = [parameter.clone().requires_grad_() for parameter in self.parameters]
            self.parameters = leaves
            lambdas = leaves[0].new_tensor(l2)
            mean, square = ([torch.zeros_like(leaf) for leaf in leaves] for _ in range(2))
            for step in range(1, how.steps + 1):
                slopes = torch.autograd.grad(self._objective(rows_at(step - 1), lambdas), leaves)
                rate = how.learning_rate * (1.0 - (step - 1) / how.steps)
                with torch.no_grad():
                    for leaf, slope, first, second in zip(leaves, slopes, mean, square, strict=True):
                        _adam(leaf, slope, first, second, step, rate)
                look(step)
            self.parameters = [leaf.detach() for leaf in leaves]

    def _objective(self, rows: OwnRows, lambdas: Tensor) -> Tensor:
        """The sum over networks of each one's own objective, so that its gradient is each one's own."""
        loss = row_losses(self.forward(rows.features), rows.labels).mean(1).sum()
        for leaf in self.parameters:
            loss = loss + (leaf.square().sum((1, 2)) * lambdas).sum()
        return loss


def _shared(rows: Tensor, weights: Tensor) -> Tensor:
    """Rows (n, i) that all networks share, through weights (N, i, o) -> (N, n, o), as one matrix product."""
    wide = weights.transpose(0, 1).reshape(len(rows[0]), -1)
    return (rows @ wide).view(len(rows), len(weights), -1).transpose(0, 1)


def row_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each row, shape (N, n), for label weights that need not sum to 1 nor be positive."""
    if logits.shape[-1] == 1:
        score = logits[..., 0]
        return labels[..., 1] * softplus(-score) + labels[..., 0] * softplus(score)
    return -(labels * log_softmax(logits, -1)).sum(-1)


def _adam(leaf: Tensor, slope: Tensor, first: Tensor, second: Tensor, step: int, rate: float) -> None:
    first.mul_(_KEEP).add_(slope, alpha=1 - _KEEP)
    second.mul_(_KEEP_SQUARES).addcmul_(slope, slope, value=1 - _KEEP_SQUARES)
    size = (second / (1 - _KEEP_SQUARES**step)).sqrt_().add_(_SMALL)
    leaf.addcdiv_(first, size, value=-rate / (1 - _KEEP**step))
