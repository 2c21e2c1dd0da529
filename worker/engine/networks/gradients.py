"""What a clipping rule may see of a batch: norms, sums and second-order terms of the gradients of some runs.

An example's gradient at a dense layer is s (x) a, with inputs a and loss slopes s. Its Hessian times a direction v is
found by carrying derivatives along v through the network and back (Pearlmutter 1994): s' (x) a + s (x) a', which has
rank two, so that norms and sums of g + w H v never need a gradient of one example either.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from worker.engine.networks.stack import DenseStack

_CANCELLATION = 0.05
"""A bent gradient counts as at least this share of the lengths of its parts: what is left of two long parts that cancel
is mostly their rounding."""


class Gradients:
    """The gradients of one batch in neighbouring runs of a stack; see ``mechanisms.clipping.BatchGradients``.

    Args:
        network: after ``forward`` and ``squared_norms`` on the batch.
        runs: which runs of it.
        norms: of their gradients, shape (B, R).
        groups: training group of each example, shape (B,).
        targets: shape (B, outputs), as in ``Rows``.
        row_squares: squared length of each row with its one, shape (B,).
    """

    def __init__(
        self, network: DenseStack, runs: slice, norms: Tensor, groups: Tensor, targets: Tensor, row_squares: Tensor
    ) -> None:
        self.norms, self.groups = norms, groups
        self._network, self._runs = network, runs
        self._targets, self._row_squares = targets, row_squares
        self._bent: _Bent | None = None
        self._added: list[Tensor] = []

    @property
    def probabilities(self) -> Tensor:
        found = self._network.slopes[-1][:, self._runs] + self._targets[:, None, :]
        return torch.cat([1.0 - found, found], 2) if self._network.outputs == 1 else found

    @property
    def last_release(self) -> Tensor:
        return self._network.flat_release(self._runs)

    def sums(self, factors: Tensor, which: Tensor | None = None) -> Tensor:
        if which is None:
            return self._network.sums(self._runs, factors)
        rows = which.nonzero().flatten()
        return self._network.sums(self._runs, factors.index_select(0, rows), rows)

    def along(self, direction: Tensor) -> Tensor:
        *_, logits = self._tangents(self._network.split(direction))
        found = (self._network.slopes[-1][:, self._runs] * logits).sum(2)
        return found.masked_fill_(self.norms == 0, 0.0)  # of lost gradients, whose inputs may be anything

    def bend(self, direction: Tensor, weights: Tensor, tilt: Tensor) -> Tensor:
        bent = self._bend(direction, weights, tilt)
        slopes, inputs = self._factors()
        bent.slopes = [slope + change for slope, change in zip(slopes, bent.slopes, strict=True)]
        norms = bent.norms(inputs, self._row_squares)
        lost = ~norms.isfinite()
        bent.forget(lost)
        for slope, changed in zip(slopes, bent.slopes, strict=True):
            slope.copy_(changed)
        self._bent = bent
        return norms.masked_fill_(lost, 0.0)

    def bend_sums(self, direction: Tensor, weights: Tensor, tilt: Tensor) -> Tensor:
        bent, (slopes, inputs) = self._bend(direction, weights, tilt), self._factors()
        bent.forget(~bent.norms(inputs, self._row_squares).isfinite())
        before = [slope.clone() for slope in slopes]
        for slope, change in zip(slopes, bent.slopes, strict=True):
            slope.copy_(change)
        total = self._network.sums(self._runs, torch.ones_like(self.norms))
        for slope, old in zip(slopes, before, strict=True):
            slope.copy_(old)
        return total + bent.sums(torch.ones_like(self.norms), self._network.parameters, self._runs)

    def add(self, total: Tensor) -> None:
        self._added.append(total)

    def finish(self, scale: Tensor) -> None:
        """Add what is not a plain scaled gradient to the network's release; ``scale`` as answered, shape (B, R)."""
        if self._bent is not None:
            self._added.append(self._bent.sums(scale, self._network.parameters, self._runs))
        for total in self._added:
            self._network.add_to_release(self._runs, total)

    def _factors(self) -> tuple[list[Tensor], list[Tensor]]:
        """Slopes at each layer's outputs, and inputs of the layers after the first, of these runs (views)."""
        slopes = [slope[:, self._runs] for slope in self._network.slopes]
        return slopes, [inputs[:, self._runs] for inputs in self._network.activated[1:]]

    def _tangents(self, direction: list[Tensor]) -> list[Tensor]:
        """Derivatives along a direction, in the shapes of the parameters, of each layer's inputs after the first, then
        of the logits, each (B, R, width)."""
        _, inputs = self._factors()
        rows = self._network.activated[0]
        runs, width = direction[0].shape[1:]
        moved = torch.mm(rows, direction[0].reshape(rows.shape[1], -1)).view(len(rows), runs, width)
        found = []
        for layer, activated in enumerate(inputs):
            slope = self._network.activation.slope(activated, torch.empty_like(activated))
            found.append(moved.mul_(slope))
            weights = self._network.parameters[2 * layer + 1][self._runs]
            moved = _product(found[-1], weights) + _product(activated, direction[2 * layer + 1])
            moved += direction[2 * layer + 2]
        return [*found, moved]

    def _bend(self, direction: Tensor, weights: Tensor, tilt: Tensor) -> _Bent:
        """Both factors of w H v + J: changes of the slopes, and weighted slopes with the tangents of the inputs."""
        moves = self._network.split(direction)
        *tangents, logits = self._tangents(moves)
        slopes, inputs = self._factors()
        by = weights[:, :, None]
        change = by * self._curve(logits) + self._tilted(tilt)
        changes = [change]
        for layer in range(len(inputs), 0, -1):
            own = self._network.parameters[2 * layer - 1][self._runs]
            activated, weighted = inputs[layer - 1], by * slopes[layer]
            slope = self._network.activation.slope(activated, torch.empty_like(activated))
            bends = self._network.activation.bend(activated, tangents[layer - 1])
            back = _product(change, own.mT) + _product(weighted, moves[2 * layer - 1].mT)
            change = back * slope + _product(weighted, own.mT) * bends
            changes.insert(0, change)
        return _Bent(changes, [by * slope for slope in slopes[1:]], tangents)

    def _curve(self, logits: Tensor) -> Tensor:
        """Derivative of the loss slopes at the logits along ``logits``."""
        p = self.probabilities
        if self._network.outputs == 1:
            return p[:, :, :1] * p[:, :, 1:] * logits
        return p * (logits - (p * logits).sum(2, keepdim=True))

    def _tilted(self, tilt: Tensor) -> Tensor:
        """Derivative of the tilted probabilities at the logits."""
        p = self.probabilities
        if self._network.outputs == 1:
            return p[:, :, :1] * p[:, :, 1:] * (tilt[:, :, 1:] - tilt[:, :, :1])
        return p * (tilt - (p * tilt).sum(2, keepdim=True))


@dataclass
class _Bent:
    """Factors of bent gradients: ``slopes`` at each layer's outputs go with the layer's inputs, and ``weighted`` slopes
    with the ``tangents`` of the inputs of layers after the first."""

    slopes: list[Tensor]
    weighted: list[Tensor]
    tangents: list[Tensor]

    def norms(self, inputs: list[Tensor], row_squares: Tensor) -> Tensor:
        """Norms over all parameters, shape (B, R), computed in float64, and no shorter than rounding allows."""
        first = self.slopes[0].double().square().sum(2) * row_squares.double()[:, None]
        total, own, other = first.clone(), first, torch.zeros_like(first)
        for slopes, weighted, tangents, activated in zip(
            self.slopes[1:], self.weighted, self.tangents, inputs, strict=True
        ):
            s, w, t, a = slopes.double(), weighted.double(), tangents.double(), activated.double()
            plain = s.square().sum(2) * (a.square().sum(2) + 1.0)
            turned = w.square().sum(2) * t.square().sum(2)
            total += plain + turned + 2.0 * (s * w).sum(2) * (a * t).sum(2)
            own, other = own + plain, other + turned
        least = _CANCELLATION * (own.sqrt() + other.sqrt())
        return torch.maximum(total.clamp(min=0.0).sqrt(), least).to(self.slopes[0].dtype)

    def forget(self, which: Tensor) -> None:
        """Zero all factors of these examples (bool, shape (B, R))."""
        for factor in (*self.slopes, *self.weighted, *self.tangents):
            factor.masked_fill_(which[:, :, None], 0.0)

    def sums(self, scale: Tensor, parameters: list[Tensor], runs: slice) -> Tensor:
        """Scaled sum of the parts with tangents, flat, shape (R, numbers)."""
        count = scale.shape[1]
        parts = [scale.new_zeros(count, parameters[0][:, 0].numel())]
        for layer, (weighted, tangents) in enumerate(zip(self.weighted, self.tangents, strict=True)):
            scaled = (weighted * scale[:, :, None]).transpose(0, 1)
            parts.append(torch.bmm(tangents.permute(1, 2, 0), scaled).reshape(count, -1))
            parts.append(scale.new_zeros(count, parameters[2 * layer + 2][runs].shape[1]))
        return torch.cat(parts, 1)


def _product(values: Tensor, weights: Tensor) -> Tensor:
    """values (B, R, i) times weights (R, i, o): (B, R, o)."""
    return torch.bmm(values.transpose(0, 1), weights).transpose(0, 1)
