"""Gaussian noise, each run from a generator of its own.

A run's noise depends on its own seed only, not on which runs share its stack nor on how many threads draw. It is
drawn by numpy's ziggurat, whose float32 normals reach beyond eight standard deviations. Faster float32 draws that end
at 5.8 standard deviations are not good enough: a sum beyond the end would betray a member far more often than delta
allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

GENERATOR = "numpy SFC64"
"""Named in the claim. Seeded, and so for audits only: a model to release needs secret noise that nobody recorded."""

_BLOCK_NUMBERS = 4_000_000
_BLOCK_STEPS = 16


class NoiseStream:
    """Noise for all runs of a stack, drawn in blocks of steps.

    Args:
        seeds: one a run, a number or several.
        stds: standard deviation per run; a run with 0 gets zeros and draws nothing.
        numbers: how many a run and step, such as the parameters of its network.
        threads: how many runs draw at the same time.
    """

    def __init__(self, seeds: Sequence[int | Sequence[int]], stds: Sequence[float], numbers: int, threads: int) -> None:
        self._generators = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
        self._stds = [np.float32(std) for std in stds]
        self._noisy = [run for run, std in enumerate(stds) if std > 0]
        per_step = max(1, len(self._stds) * numbers)
        self._steps = max(1, min(_BLOCK_STEPS, _BLOCK_NUMBERS // per_step))
        self._block = np.zeros((len(self._stds), self._steps, numbers), dtype=np.float32)
        self._step = 0
        self._pool = ThreadPoolExecutor(threads) if threads > 1 and len(self._noisy) > 1 else None

    def next(self) -> NDArray[np.float32]:
        """The next step's noise, shape (runs, numbers): a view that a later call overwrites."""
        if self._step % self._steps == 0:
            list(self._pool.map(self._draw, self._noisy) if self._pool else map(self._draw, self._noisy))
        self._step += 1
        return self._block[:, (self._step - 1) % self._steps]

    def __enter__(self) -> NoiseStream:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown()

    def _draw(self, run: int) -> None:
        self._generators[run].standard_normal(out=self._block[run], dtype=np.float32)
        np.multiply(self._block[run], self._stds[run], out=self._block[run])
