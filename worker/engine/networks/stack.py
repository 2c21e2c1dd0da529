"""Dense networks of all runs of a stack as one tensor program, with exact per-example gradient norms.

For a dense layer with inputs a and loss slopes d at its outputs, one example's gradient is the outer product of (a,
1) and d; its squared norm is |d|^2 (|a|^2 + 1), so it is never formed ("ghost clipping"; Goodfellow 2015, Li et al.
2022). A sum of scaled gradients is one matrix product with the scaled slopes. All arithmetic is in the dtype of the
stack: full float32 in use, float64 where a test wants it.

Shapes: B rows of the batch, R runs, i inputs and o outputs of a layer. The first layer, whose inputs all runs share,
keeps its weights as (i + 1, R, o), bias last, so that one matrix product serves all runs. Later layers keep (R, i, o)
and (R, o).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from worker.engine.networks.activations import Activation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class DenseStack:
    """One network a run, all of one shape and from the same initial weights.

    Args:
        layers: initial weights of each layer, shape (inputs + 1, outputs), the bias last.
        activation: of the hidden layers.
        runs: how many networks.

    After ``forward`` and ``squared_norms``, ``activated`` holds the inputs of each layer, the rows (B, i + 1) first, then
    (B, R, i), and ``slopes`` those of the loss at each layer's outputs, (B, R, o): the two factors of each example's
    gradient.
    """

    def __init__(
        self,
        layers: Sequence[NDArray[np.float64]],
        activation: Activation,
        runs: int,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.runs = runs
        self.device, self.dtype = torch.device(device), dtype
        self._widths = [layer.shape[1] for layer in layers]
        self._inputs = layers[0].shape[0]
        tensors = [torch.as_tensor(layer, device=self.device, dtype=dtype) for layer in layers]
        self.parameters = [tensors[0][:, None, :].repeat(1, runs, 1)]
        for layer in tensors[1:]:
            self.parameters += [layer[:-1].repeat(runs, 1, 1), layer[-1].repeat(runs, 1)]
        self.release = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.numbers = sum(parameter.numel() for parameter in self.parameters) // runs
        self.activation = activation
        self.activated: list[Tensor] = []
        self.slopes: list[Tensor] = []
        self._capacity = 0
        self._first = torch.empty(0, device=self.device, dtype=dtype)
        self._work: list[Tensor] = []

    @property
    def outputs(self) -> int:
        return int(self._widths[-1])

    def forward(self, rows: Tensor) -> Tensor:
        """Logits, shape (B, R, outputs), of rows with a last column of ones, shape (B, i + 1)."""
        self._reserve(len(rows))
        values = self._first[: len(rows)]
        first = self.parameters[0].view(self._inputs, -1)
        torch.mm(rows, first, out=values.view(len(rows), first.shape[1]))
        self.activated = [rows]
        for layer in range(1, len(self._widths)):
            self.activated.append(self.activation.apply_(values))
            weights, bias = self.parameters[2 * layer - 1], self.parameters[2 * layer]
            values = _times(values, weights, bias, self._work[layer - 1][: len(rows)])
        return values

    def squared_norms(self, slopes: Tensor, row_squares: Tensor) -> Tensor:
        """Squared norm of each example's gradient over all parameters, shape (B, R), after ``forward``.

        Args:
            slopes: of the loss at the logits, shape (B, R, outputs).
            row_squares: squared length of each row with its one, shape (B,).
        """
        self.slopes = [slopes]
        total = torch.zeros(slopes.shape[:2], device=self.device, dtype=self.dtype)
        for layer in range(len(self._widths) - 1, 0, -1):
            inputs = self.activated[layer]
            total.addcmul_(_squares(slopes), _squares(inputs).add_(1.0))
            slope = self.activation.slope(inputs, self._work[layer - 1][: len(inputs)])
            slopes = _times_back(slopes, self.parameters[2 * layer - 1], slope)
            self.slopes.insert(0, slopes)
        return total.addcmul_(_squares(slopes), row_squares[:, None])

    def forget(self, which: Tensor) -> None:
        """Zero both factors of these examples' gradients (bool, shape (B, R)): zero times a NaN is a NaN."""
        for inputs in self.activated[1:]:
            inputs.masked_fill_(which[:, :, None], 0.0)
        for slopes in self.slopes:
            slopes.masked_fill_(which[:, :, None], 0.0)

    def add_scaled_gradients(self, scale: Tensor) -> None:
        """Add the sum of all examples' gradients, each times its scale, shape (B, R), to ``release``."""
        for slopes in self.slopes:
            slopes.mul_(scale[:, :, None])
        rows, first = self.activated[0], self.slopes[0]
        total = self.release[0].view(self._inputs, -1)
        total.addmm_(rows.t(), first.reshape(len(rows), total.shape[1]))
        for layer in range(1, len(self._widths)):
            inputs, slopes = self.activated[layer], self.slopes[layer]
            _add_outer(self.release[2 * layer - 1], inputs, slopes)
            self.release[2 * layer].add_(slopes.sum(0))

    def sums(self, runs: slice, scale: Tensor, rows: Tensor | None = None) -> Tensor:
        """Sum of the gradients of some runs, each times its scale, shape (B, r): shape (r, numbers), a new tensor.

        ``rows`` are positions within the batch, and ``scale`` then has one row for each; all where None.
        """
        parts = []
        for layer, slopes in enumerate(self.slopes):
            inputs = self.activated[layer] if layer == 0 else self.activated[layer][:, runs]
            chosen = slopes[:, runs]
            if rows is not None:
                inputs, chosen = inputs.index_select(0, rows), chosen.index_select(0, rows)
            parts += _flat_sums(inputs, chosen * scale[:, :, None])
        return torch.cat(parts, 1)

    def load_release(self, noise: Tensor, widths: Tensor | None = None) -> None:
        """Set ``release`` to this noise, shape (R, numbers), times each run's width, shape (R,): a run's own numbers,
        first layer first."""
        parts = self.split(noise)
        if widths is None:
            for release, part in zip(self.release, parts, strict=True):
                release.copy_(part)
            return
        for release, part, width in zip(self.release, parts, self.per_run(widths), strict=True):
            torch.mul(part, width, out=release)

    def flat_release(self, runs: slice) -> Tensor:
        """The release of some runs as flat numbers, shape (r, numbers), a new tensor."""
        first = self.release[0][:, runs].transpose(0, 1).flatten(1)
        return torch.cat([first, *(part[runs].flatten(1) for part in self.release[1:])], 1)

    def add_to_release(self, runs: slice, total: Tensor) -> None:
        """Add a vector, shape (r, numbers), to the release of some runs."""
        for release, part in zip(self.release, self.split(total), strict=True):
            (release[:, runs] if release is self.release[0] else release[runs]).add_(part)

    def split(self, flat: Tensor) -> list[Tensor]:
        """Views of flat numbers, shape (r, numbers), in the shapes of ``parameters``, for r runs."""
        views, at, runs = [], 0, len(flat)
        for parameter in self.parameters:
            count = parameter.numel() // self.runs
            part = flat[:, at : at + count]
            if at == 0:
                part = part.view(runs, self._inputs, -1).transpose(0, 1)
            elif parameter.dim() == 3:
                part = part.view(runs, *parameter.shape[1:])
            views.append(part)
            at += count
        return views

    def largest(self) -> Tensor:
        """Largest absolute weight of each run, shape (R,); NaN if any is."""
        sizes = [self.parameters[0].abs().amax((0, 2))]
        sizes += [parameter.abs().flatten(1).amax(1) for parameter in self.parameters[1:]]
        return torch.stack(sizes).amax(0)

    @staticmethod
    def clear(tensors: Sequence[Tensor], run: int) -> None:
        """Zero one run's share of tensors shaped like ``parameters``."""
        tensors[0][:, run].zero_()
        for tensor in tensors[1:]:
            tensor[run].zero_()

    def per_run(self, values: Tensor) -> list[Tensor]:
        """One number a run, shape (R,), shaped to multiply each of ``parameters``."""
        return [values[None, :, None]] + [values.view([-1] + [1] * (p.dim() - 1)) for p in self.parameters[1:]]

    def _reserve(self, rows: int) -> None:
        if rows <= self._capacity and self._capacity:
            return
        self._capacity = rows + rows // 4 + 1
        room = [self.parameters[0].new_empty(self._capacity, self.runs, width) for width in self._widths]
        self._first = torch.empty_like(room[0])
        self._work = room[:-1]


def _squares(values: Tensor) -> Tensor:
    """Squared length over the last axis."""
    return values[:, :, 0].square() if values.shape[2] == 1 else torch.linalg.vector_norm(values, dim=2).square_()


def _times(values: Tensor, weights: Tensor, bias: Tensor, work: Tensor) -> Tensor:
    """values (B, R, i) through a layer -> (B, R, o); ``work`` has the shape of values and may be overwritten."""
    if weights.shape[2] == 1:
        return torch.mul(values, weights[:, :, 0], out=work).sum(2, keepdim=True).add_(bias)
    return torch.baddbmm(bias[:, None, :], values.transpose(0, 1), weights).transpose(0, 1)


def _times_back(slopes: Tensor, weights: Tensor, slope: Tensor) -> Tensor:
    """Slopes (B, R, o) back through a layer and its activation's slope (B, R, i), which is overwritten with the
    result."""
    if weights.shape[2] == 1:
        return slope.mul_(weights[:, :, 0]).mul_(slopes)
    return slope.mul_(torch.bmm(slopes.transpose(0, 1), weights.transpose(1, 2)).transpose(0, 1))


def _flat_sums(inputs: Tensor, slopes: Tensor) -> list[Tensor]:
    """Sum over the batch of inputs times slopes (B, r, o), flat by run: the first layer's inputs (B, i) serve all runs
    and hold a one for the bias; others are (B, r, i) and the bias comes after."""
    runs = slopes.shape[1]
    if inputs.dim() == 2:
        total = torch.mm(inputs.t(), slopes.reshape(len(slopes), runs * slopes.shape[2]))
        return [total.view(inputs.shape[1], runs, -1).transpose(0, 1).reshape(runs, -1)]
    return [torch.bmm(inputs.permute(1, 2, 0), slopes.transpose(0, 1)).reshape(runs, -1), slopes.sum(0)]


def _add_outer(total: Tensor, inputs: Tensor, slopes: Tensor) -> None:
    """Add the sum over the batch of inputs (B, R, i), overwritten, times slopes (B, R, o) to total (R, i, o)."""
    if slopes.shape[2] == 1:
        total[:, :, 0].add_(inputs.mul_(slopes).sum(0))
    else:
        total.baddbmm_(inputs.permute(1, 2, 0), slopes.transpose(0, 1))
