"""How the engine tells the world how far it is, without knowing the world."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Told of every few steps; may end the training by raising ``Stopped`` from ``step``."""

    def step(self, step: int, steps: int) -> None:
        """``step`` of ``steps`` are done. Called at least once a second while training."""


class Silent:
    """An observer that hears and says nothing."""

    def step(self, step: int, steps: int) -> None:
        return None
