"""The target of each row as a class number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.datasets.role_set import Target
from worker.engine.datasets.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Labels:
    """Class numbers of the n rows.

    Attributes:
        labels: int64, shape (n,), 0 .. classes-1, -1 where the target is missing.
        names: one a class. With two classes, and with more, class 1 is the favourable one.
    """

    labels: NDArray[np.int64]
    names: tuple[str, ...]


def label_rows(table: Table, target: Target) -> Labels:
    """Labels as the target says: at or above a threshold, one value against the rest, or each value its own class."""
    column = table.column(target.column)
    if target.threshold is not None:
        if column.numbers is None:
            raise TypeError(f"Column {column.name} holds no numbers.")
        above = np.where(column.numbers >= target.threshold, 1, 0)
        names: tuple[str, ...] = (f"under {target.threshold:g}", f"{target.threshold:g} and over")
        return Labels(np.where(column.missing(), -1, above).astype(np.int64), names)
    texts = column.as_category()
    names = _class_names(texts.categories, target)
    lookup = np.array([_class_of(text, names) for text in texts.categories] + [-1], dtype=np.int64)
    return Labels(lookup[texts.filled_codes()], names)


def _class_names(values: tuple[str, ...], target: Target) -> tuple[str, ...]:
    if target.one_vs_rest is not None:
        return (f"not {target.one_vs_rest}", target.one_vs_rest)
    others = [value for value in values if value != target.favourable]
    return (*others[:1], str(target.favourable), *others[1:])


def _class_of(text: str, names: tuple[str, ...]) -> int:
    return names.index(text) if text in names else 0
