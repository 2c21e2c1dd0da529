"""How many rows repeat an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from worker.engine.datasets.table import Table

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray


def count_repeats(table: Table, without: Collection[str] = ()) -> int:
    """Rows that are equal to an earlier one in every column but those named (row numbers would make all differ).

    Rows are compared by a 64-bit mixture of their cells: among ten million rows two different ones look equal with a
    chance of 3 in a million.
    """
    compared = [column for column in table.columns if column.name not in without]
    if not compared or not len(table):
        return 0
    mixed = np.zeros(len(table), dtype=np.uint64)
    for column in compared:
        cells = column.filled_codes().astype(np.uint64) if column.numbers is None else _bits(column.numbers)
        mixed ^= cells
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    mixed.sort()
    return int(np.count_nonzero(mixed[1:] == mixed[:-1]))


def _bits(numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Bits of each number; 0 and -0 are one, and so are all missing."""
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.uint64)
