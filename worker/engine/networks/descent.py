"""Steps of SGD or Adam for all runs of a stack, and an eye on runs that diverge."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from worker.engine.networks.stack import DenseStack

ABSURD = 1e6
"""A weight larger than this, on features scaled to about one, means that the run has diverged."""

FIRST_MEMORY, SECOND_MEMORY, ADAM_FLOOR = 0.9, 0.999, 1e-8
"""Adam's usual constants (Kingma and Ba 2015)."""


class Descent:
    """Moves the weights of a stack along its ``release``, which is divided by the expected batch size first.

    What follows the release is post-processing, Adam's memory too. A run that was ended stands still and touches no
    other.

    Args:
        network: the stack to move.
        rates: learning rate, one a run.
        momenta: share of the last step kept in the next, one a run; not looked at by Adam.
        expected_batch_size: the denominator.
        adam: Adam instead of SGD.
        ended: why a run must not train at all, or None, one a run.
    """

    def __init__(
        self,
        network: DenseStack,
        rates: Sequence[float],
        momenta: Sequence[float],
        expected_batch_size: float,
        *,
        adam: bool = False,
        ended: Sequence[str | None] = (),
    ) -> None:
        self._network, self._adam, self._steps = network, adam, 0
        self._share = 1.0 / expected_batch_size
        shares = [1.0 if adam else self._share] * len(rates)
        moving = [rate * share for rate, share in zip(rates, shares, strict=True)]
        self._rates = torch.tensor(moving, device=network.device, dtype=network.dtype)
        self._momenta = torch.tensor(momenta, device=network.device, dtype=network.dtype)
        keep = adam or any(momenta)
        self._velocity = [torch.zeros_like(p) for p in network.parameters] if keep else None
        self._squares = [torch.zeros_like(p) for p in network.parameters] if adam else None
        self.diverged: list[int | None] = [None] * network.runs
        self.reasons: list[str | None] = [None] * network.runs
        for run, reason in enumerate(ended):
            if reason is not None:
                self._end(run, 1, reason)

    def step(self) -> None:
        """SGD: velocity <- momentum * velocity + release; theta <- theta - rate / b * velocity. Adam on release / b."""
        if self._velocity is not None and self._squares is not None:
            self._step_of_adam(self._velocity, self._squares)
            return
        moves = self._network.release
        if self._velocity is not None:
            for velocity, move, momentum in zip(
                self._velocity, moves, self._network.per_run(self._momenta), strict=True
            ):
                velocity.mul_(momentum).add_(move)
            moves = self._velocity
        for parameter, move, rate in zip(
            self._network.parameters, moves, self._network.per_run(self._rates), strict=True
        ):
            parameter.addcmul_(move, rate, value=-1.0)

    def _step_of_adam(self, means: list[Tensor], squares: list[Tensor]) -> None:
        self._steps += 1
        first, second = 1.0 - FIRST_MEMORY**self._steps, 1.0 - SECOND_MEMORY**self._steps
        rates = self._network.per_run(self._rates)
        for parameter, release, mean, square, rate in zip(
            self._network.parameters, self._network.release, means, squares, rates, strict=True
        ):
            gradient = release * self._share  # the release itself is read by the next step
            mean.mul_(FIRST_MEMORY).add_(gradient, alpha=1.0 - FIRST_MEMORY)
            square.mul_(SECOND_MEMORY).addcmul_(gradient, gradient, value=1.0 - SECOND_MEMORY)
            size = square.div(second).sqrt_().add_(ADAM_FLOOR)
            parameter.addcmul_(mean.div(size), rate, value=-1.0 / first)

    def look(self, step: int) -> None:
        """Judge by the released weights alone."""
        largest = self._network.largest()
        for run in (~(largest <= ABSURD)).nonzero().flatten().tolist():
            finite = bool(largest[run].isfinite())
            found = "A weight grew beyond a million" if finite else "A weight is no finite number any more"
            self._end(run, step, f"{found}. Choose a smaller learning rate.")

    def _end(self, run: int, step: int, reason: str) -> None:
        """A diverged run is zeroed and stands still; the first reason stays."""
        self.diverged[run] = self.diverged[run] or step
        self.reasons[run] = self.reasons[run] or reason
        self._rates[run] = 0.0
        self._momenta[run] = 0.0
        kept = [tensors for tensors in (self._velocity, self._squares) if tensors is not None]
        for tensors in (self._network.parameters, *kept):
            self._network.clear(tensors, run)
