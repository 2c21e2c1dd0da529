"""Poisson batches whose coins belong to the ids of units, never to positions or contents.

Each step every id of the universe tosses its own coin; ids that are not in the training part fall out afterwards. So
adding or removing a unit changes no other unit's coin, twins do not share one, and the order of the rows changes
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from worker.engine.results import PARTS, EncodedData

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_COINS, _CHOICES = 0, 1 << 62


class PoissonBatches:
    """The batches of one seed.

    Args:
        rows: int64, shape (n,), positions of the training rows in the table; a batch is made of these.
        unit_ids: int64, shape (n,), the unit of each training row. A unit may have several rows.
        row_ids: int64, shape (n,), unique; they order the rows of one unit.
        universe: all unit ids lie in [0, universe); public.
        probability: of each unit's coin.
        seed: of the coins.
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        unit_ids: NDArray[np.int64],
        row_ids: NDArray[np.int64],
        *,
        universe: int,
        probability: float,
        seed: int,
    ) -> None:
        if len(unit_ids) and not (unit_ids.min() >= 0 and unit_ids.max() < universe):
            raise ValueError("A unit id lies outside the universe of ids. Give the universe of the whole recipe.")
        order = np.lexsort((row_ids, unit_ids))
        self._rows = rows[order]
        self._first = np.searchsorted(unit_ids[order], np.arange(universe + 1)).astype(np.int64)
        self._universe = universe
        self._probability = probability
        self._bits = np.random.Philox(key=np.array([seed & _MASK, 0], dtype=np.uint64))
        self._start = self._bits.state
        self._one_row_each = bool(np.all(np.diff(self._first) <= 1))

    @classmethod
    def of_training_part(cls, data: EncodedData, probability: float, seed: int) -> PoissonBatches:
        """Batches of the units of the training part."""
        rows = np.flatnonzero(data.parts == PARTS.index("train"))
        return cls(
            rows,
            data.unit_ids[rows],
            data.row_ids[rows],
            universe=data.universe,
            probability=probability,
            seed=seed,
        )

    def batch(self, step: int) -> NDArray[np.int64]:
        """Positions of the rows in the batch of this step, in the order of their unit ids; may be empty, never cut."""
        included = self._included(step)
        count = self._first[included + 1] - self._first[included]
        if self._one_row_each:
            return self._rows[self._first[included[count > 0]]]
        # An included person gives one row by a coin of its own, drawn for absent ids too: nobody moves another's coin.
        coins = self._generator(step, _CHOICES).random(len(included))
        chosen: NDArray[np.int64] = self._first[included] + np.minimum((coins * count).astype(np.int64), count - 1)
        return self._rows[chosen[count > 0]]

    def _included(self, step: int) -> NDArray[np.int64]:
        """Ids whose coin fell, by geometric skips: the gap to the next one is geometric."""
        if self._probability >= 1.0:
            return np.arange(self._universe, dtype=np.int64)
        coins = self._generator(step, _COINS)
        at_once = int(self._universe * self._probability * 1.25) + 32
        last, found = -1, []
        while last < self._universe:
            found.append(last + np.cumsum(coins.geometric(self._probability, at_once)))
            last = int(found[-1][-1])
        ids = np.concatenate(found)
        included: NDArray[np.int64] = ids[ids < self._universe]
        return included

    def _generator(self, step: int, purpose: int) -> np.random.Generator:
        """A generator keyed by (seed, step, purpose), always at its beginning; setting the key is cheaper than making
        one."""
        self._start["state"]["key"][1] = step | purpose
        self._bits.state = self._start
        return np.random.Generator(self._bits)
