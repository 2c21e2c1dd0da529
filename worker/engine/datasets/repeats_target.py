"""Features that say the target over again: with one of them nothing is left to learn, and an audit says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.labels import label_rows
from worker.engine.datasets.role_set import Roles
from worker.engine.datasets.table import Column, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_VALUES = 200
_LEFT_OVER = 0.02
"""A feature repeats the target if knowing it leaves less than this share of the mistakes that guessing makes."""


def repeats_target(table: Table, roles: Roles) -> list[dict[str, Any]]:
    """A note for each feature whose value, or one cut of it, tells the target for (nearly) every row."""
    labels = label_rows(table, roles.target).labels
    notes = []
    for name in roles.features:
        share = _told(table.column(name), labels)
        if share is not None:
            message = (
                f"It repeats the target: it alone tells it for {share:.1%} of the rows. If it is known only after the "
                "outcome, make it ignored."
            )
            notes.append({"column": name, "message": message})
    return notes


def _told(column: Column, labels: NDArray[np.int64]) -> float | None:
    """Share of rows whose label the column tells, if it leaves next to no mistakes; else None."""
    known = (labels >= 0) & ~column.missing()
    rows = labels[known]
    if len(rows) < 20:
        return None
    guessing = 1 - np.bincount(rows).max() / len(rows)
    if column.numbers is not None and len(np.unique(column.numbers[known])) > MOST_VALUES:
        mistakes = _mistakes_of_best_cut(column.numbers[known], rows)
    else:
        texts = column.as_category()
        if len(texts.categories) > MOST_VALUES or len(texts.categories) * 4 > len(rows):
            return None
        table = np.zeros((len(texts.categories), int(rows.max()) + 1), dtype=np.int64)
        np.add.at(table, (texts.filled_codes()[known], rows), 1)
        mistakes = 1 - table.max(axis=1).sum() / len(rows)
    return 1 - float(mistakes) if guessing > 0 and mistakes <= _LEFT_OVER * guessing else None


def _mistakes_of_best_cut(numbers: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    """Share of mistakes of the best rule "label 1 above (or below) a cut"; 1 where there are more than two labels."""
    if rows.max() > 1:
        return 1.0
    order = np.argsort(numbers, kind="stable")
    ones = np.concatenate([[0], np.cumsum(rows[order])])
    edges = np.flatnonzero(np.diff(numbers[order], prepend=np.nan, append=np.nan) != 0)
    below = np.arange(len(rows) + 1)[edges]
    wrong = ones[edges] + (len(rows) - below) - (ones[-1] - ones[edges])  # ones below the cut, and noughts above it
    return float(min(wrong.min(), (len(rows) - wrong).min())) / len(rows)
