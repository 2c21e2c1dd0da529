"""Test statistics of a whole audit as arrays: read in the database's own binary form, for a view must not take seconds.

Forty thousand rows as objects take a second; as one binary stream into numpy they take a tenth of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from worker.engine.results import Counts

_HEADER, _TRAILER = 19, 2
"""Bytes before the first and after the last row of PostgreSQL's binary COPY."""

_QUERY = """COPY (
    SELECT s.number::int4, r.position::int4, g.position::int4, t.label::int4, t.n::int4,
           t.loss::float8, t.squared_error::float8, {predicted}
    FROM statistic t JOIN run r ON r.id = t.run_id JOIN stack s ON s.id = r.stack_id JOIN "group" g ON g.id = t.group_id
    WHERE t.audit_id = %s AND t.part = 'test'
) TO STDOUT (FORMAT BINARY)"""


def counts_of_test(
    session: Session, audit_id: str, runs: dict[tuple[int, int], int], groups: dict[int, int], classes: int
) -> Counts | None:
    """The statistics of the test part; None where no run has any.

    Args:
        runs: position among the runs, by number of the stack and position in it.
        groups: position among the groups, by stored position.
    """
    predicted = ", ".join(f"t.predicted[{place}]::int4" for place in range(1, classes + 1))
    driver: Any = session.connection().connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(_QUERY.format(predicted=predicted), (audit_id,)) as copy:
        stream = b"".join(copy)
    rows = np.frombuffer(stream[_HEADER : len(stream) - _TRAILER], _row_type(classes))
    return _placed(rows, runs, groups, classes) if len(rows) else None


@lru_cache
def _row_type(classes: int) -> np.dtype[np.void]:
    """Of one binary row: its number of fields, then each field's length and its number, highest byte first."""
    names = ["stack", "position", "group", "label", "n", "loss", "squared_error"]
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name in (*names, *(f"p{label}" for label in range(classes))):
        fields += [(f"{name} length", ">i4"), (name, ">f8" if name in ("loss", "squared_error") else ">i4")]
    return np.dtype(fields)


def _placed(rows: np.ndarray, runs: dict[tuple[int, int], int], groups: dict[int, int], classes: int) -> Counts:
    widest = max((position for _, position in runs), default=0) + 1
    at_run = np.full((max((stack for stack, _ in runs), default=0) + 1) * widest, -1)
    for (stack, position), place in runs.items():
        at_run[stack * widest + position] = place
    at_group = np.full(max(groups, default=0) + 1, -1)
    for position, place in groups.items():
        at_group[position] = place
    where = (at_run[rows["stack"] * widest + rows["position"]], at_group[rows["group"]], rows["label"].astype(np.int64))
    shape = (len(runs), len(groups), classes)
    n, predicted = np.zeros(shape, np.int64), np.zeros((*shape, classes), np.int64)
    loss, error, present = np.zeros(shape), np.zeros(shape), np.zeros(len(runs), bool)
    n[where], loss[where], error[where] = rows["n"], rows["loss"], rows["squared_error"]
    for label in range(classes):
        predicted[(*where, np.full(len(rows), label))] = rows[f"p{label}"]
    present[where[0]] = True
    return Counts(n, predicted, loss, error, present)
