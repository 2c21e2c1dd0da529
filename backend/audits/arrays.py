"""The numbers of a whole audit as arrays: packed by the database into one string of bytes and read by numpy as it is.

As objects, eighty thousand rows take a second and more; so a view of sixty groups and hundreds of runs takes a fraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.engine.facts.grid import SUM_NAMES, Point, SumTable
from worker.engine.results import Counts

_STATISTICS = """
SELECT string_agg(int4send(s.number) || int4send(r.position) || int4send(g.position) || int4send(t.label) || int4send(t.n)
    || float8send(t.loss) || float8send(t.squared_error) || {predicted}, ''::bytea)
FROM statistic t JOIN run r ON r.id = t.run_id JOIN stack s ON s.id = r.stack_id JOIN "group" g ON g.id = t.group_id
WHERE t.audit_id = :audit AND t.part = 'test'"""

_MEASUREMENTS = """
SELECT m.quantity, m.method, m.epsilon_asked, m.seeds, string_agg(int4send(g.position)
    || int4send(m.units) || int4send(m.rows) || float8send(coalesce(m.total, 'NaN'))
    || float8send(coalesce(m.total_squared, 'NaN')) || float8send(coalesce(m."cross", 'NaN'))
    || float8send(m.rows_squared) || float8send(coalesce(m.total_each_squared, 'NaN')), ''::bytea)
FROM measurement m JOIN "group" g ON g.id = m.group_id
WHERE m.audit_id = :audit AND m.quantity = ANY(:quantities) GROUP BY 1, 2, 3, 4"""

_SUMS = np.dtype([("group", ">i4"), *((n, ">i4" if n in ("units", "rows") else ">f8") for n in SUM_NAMES)])


def counts_of_test(
    session: Session, audit_id: str, runs: Mapping[tuple[int, int], int], groups: Mapping[int, int], classes: int
) -> Counts | None:
    """The statistics of the test part; None where no run has any.

    Args:
        runs: position among the runs, by number of the stack and position in it.
        groups: position among the groups, by stored position.
    """
    predicted = " || ".join(f"int4send(t.predicted[{place}])" for place in range(1, classes + 1))
    packed = session.scalar(text(_STATISTICS.format(predicted=predicted)), {"audit": audit_id})
    return None if packed is None else _placed(np.frombuffer(packed, _row_type(classes)), runs, groups, classes)


def _row_type(classes: int) -> np.dtype[np.void]:
    whole = [(name, ">i4") for name in ("stack", "position", "group", "label", "n")]
    return np.dtype([*whole, ("loss", ">f8"), ("squared_error", ">f8"), *((f"p{at}", ">i4") for at in range(classes))])


def _placed(rows: np.ndarray, runs: Mapping[tuple[int, int], int], groups: Mapping[int, int], classes: int) -> Counts:
    widest = max((position for _, position in runs), default=0) + 1
    at_run = np.full((max((stack for stack, _ in runs), default=0) + 1) * widest, -1)
    for (stack, position), place in runs.items():
        at_run[stack * widest + position] = place
    where = (at_run[rows["stack"] * widest + rows["position"]], _places(groups)[rows["group"]], rows["label"])
    shape = (len(runs), len(groups), classes)
    n, predicted = np.zeros(shape, np.int64), np.zeros((*shape, classes), np.int64)
    loss, error, present = np.zeros(shape), np.zeros(shape), np.zeros(len(runs), bool)
    n[where], loss[where], error[where] = rows["n"], rows["loss"], rows["squared_error"]
    for label in range(classes):
        predicted[(*where, label)] = rows[f"p{label}"]
    present[where[0]] = True
    return Counts(n, predicted, loss, error, present)


def _places(groups: Mapping[int, int]) -> np.ndarray:
    found = np.full(max(groups, default=0) + 1, -1)
    for position, place in groups.items():
        found[position] = place
    return found


def sums_of_audit(
    session: Session, audit_id: str, quantities: Sequence[str], groups: Mapping[int, int]
) -> dict[str, SumTable]:
    """Measurements by quantity, over the points that have any and over all groups."""
    found: dict[str, list[tuple[Point, tuple[int, ...], Any]]] = {}
    asked = {"audit": audit_id, "quantities": list(quantities)}
    for quantity, method, epsilon, seeds, packed in session.execute(text(_MEASUREMENTS), asked):
        found.setdefault(quantity, []).append(((method, epsilon), tuple(seeds), np.frombuffer(packed, _SUMS)))
    places = _places(groups)
    tables = {}
    for quantity, points in found.items():
        numbers = np.full((len(points), len(groups), len(SUM_NAMES)), np.nan)
        for at, (_, _, rows) in enumerate(points):
            for place, name in enumerate(SUM_NAMES):
                numbers[at, places[rows["group"]], place] = rows[name]
        arrays = {name: numbers[..., place] for place, name in enumerate(SUM_NAMES)}
        tables[quantity] = SumTable(
            **arrays, seeds=tuple(seeds for _, seeds, _ in points), points=tuple(point for point, _, _ in points)
        )
    return tables
