"""Steps of plain SGD for all runs of a stack, and an eye on runs that diverge."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from worker.engine.networks.stack import DenseStack

ABSURD = 1e6
"""A weight larger than this, on features scaled to about one, means that the run has diverged."""


class Descent:
    """Moves the weights of a stack along its ``release``, with momentum where a run asks for it.

    Args:
        network: the stack to move.
        rates: learning rate over expected batch size, one a run.
        momenta: share of the last step kept in the next, one a run.
    """

    def __init__(self, network: DenseStack, rates: Sequence[float], momenta: Sequence[float]) -> None:
        self._network = network
        self._rates = torch.tensor(rates, device=network.device, dtype=network.dtype)
        self._momenta = torch.tensor(momenta, device=network.device, dtype=network.dtype)
        self._velocity = [torch.zeros_like(p) for p in network.parameters] if any(momenta) else None
        self.diverged: list[int | None] = [None] * network.runs

    def step(self) -> None:
        """theta <- theta - rate * velocity; velocity <- momentum * velocity + release."""
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

    def look(self, step: int) -> None:
        """Judge by the released weights alone; a diverged run is zeroed and stands still, and touches no other."""
        for run in (~(self._network.largest() <= ABSURD)).nonzero().flatten().tolist():
            self.diverged[run] = self.diverged[run] or step
            self._rates[run] = 0.0
            self._momenta[run] = 0.0
            self._network.clear(self._network.parameters, run)
            if self._velocity is not None:
                self._network.clear(self._velocity, run)
