"""From the logits of the evaluation rows to measurements: sums over units that intervals are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from worker.engine.results import PARTS, EncodedData, MeasurementRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTITIES: tuple[str, ...] = ("correct", "loss", "predicted_positive")
BASELINE = "non-private"
_TEST = PARTS.index("test")


class LogitsTable(Protocol):
    """Logits of one stack: ``row_ids`` int64, shape (rows,); ``logits`` by run id, float32, shape (rows, outputs)."""

    @property
    def row_ids(self) -> NDArray[np.int64]: ...

    @property
    def logits(self) -> Mapping[str, NDArray[np.float32]]: ...


@dataclass(frozen=True)
class _Cell:
    """The rows of one group and label, and their units."""

    group: str
    label: int | None
    rows: NDArray[np.int64]
    unit_of_row: NDArray[np.int64]
    units: int
    rows_per_unit: NDArray[np.float64]


def measure(
    logits_by_seed: Mapping[int, LogitsTable],
    runs: Mapping[str, tuple[str, float | None, int]],
    data: EncodedData,
    quantities: Sequence[str] = QUANTITIES,
) -> list[MeasurementRow]:
    """Measurements of the test part for each method, epsilon, group, label (and all labels) and quantity.

    A difference is baseline minus run, of the same seed and row. Units are rows, or persons where unit ids are persons:
    sums go within the person first. Runs that are not in ``runs`` (diverged, unfinished) and seeds without a finished
    baseline are left out; ``seeds`` names those that count.

    Args:
        logits_by_seed: one table a seed.
        runs: method, epsilon and seed of every finished run, by run id.
    """
    test = np.flatnonzero(data.parts == _TEST)
    cells = list(_cells(data, test))
    points: dict[tuple[str, float | None], list[tuple[int, str]]] = {}
    baselines: dict[int, str] = {}
    for run, (method, epsilon, seed) in runs.items():
        if method == BASELINE:
            baselines[seed] = run
        elif seed in logits_by_seed:
            points.setdefault((method, epsilon), []).append((seed, run))
    baseline_values = {
        seed: _values(logits_by_seed[seed], run, data, test, quantities)
        for seed, run in baselines.items()
        if seed in logits_by_seed
    }
    rows = []
    for (method, epsilon), members in points.items():
        paired = sorted(member for member in members if member[0] in baseline_values)
        differences = _differences(logits_by_seed, paired, baseline_values, data, test, quantities)
        seeds = tuple(seed for seed, _ in paired)
        for quantity in quantities:
            rows += [_measurement(method, epsilon, quantity, seeds, differences[quantity], cell) for cell in cells]
    return rows


def _cells(data: EncodedData, test: NDArray[np.int64]) -> Iterator[_Cell]:
    """Every group x (all labels, each label); ``rows`` are positions within the test rows."""
    labels, unit_ids = data.labels[test], data.unit_ids[test]
    for group in data.groups:
        for label in (None, *range(data.classes)):
            member = group.member[test]
            rows = np.flatnonzero(member if label is None else member & (labels == label))
            units, unit_of_row = np.unique(unit_ids[rows], return_inverse=True)
            per_unit = np.bincount(unit_of_row, minlength=len(units)).astype(np.float64)
            yield _Cell(group.key, label, rows, unit_of_row, len(units), per_unit)


def _values(
    table: LogitsTable, run: str, data: EncodedData, test: NDArray[np.int64], quantities: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Each quantity for each test row, float64, shape (test rows,)."""
    order = np.argsort(table.row_ids)
    places = order[np.searchsorted(table.row_ids, data.row_ids[test], sorter=order)]
    logits = np.asarray(table.logits[run], dtype=np.float64).reshape(len(table.row_ids), -1)[places]
    return {quantity: quantity_values(quantity, logits, data.labels[test]) for quantity in quantities}


def quantity_values(quantity: str, logits: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """One quantity a row from its logits, shape (rows, 1) for two classes, else (rows, classes).

    Class 1 of two is predicted from a logit above 0, and of several the first largest. Loss is cross-entropy in nats with
    probabilities clamped at 1e-12.
    """
    scores = np.concatenate([np.zeros_like(logits), logits], axis=1) if logits.shape[1] == 1 else logits
    if quantity == "loss":
        top = scores.max(axis=1, keepdims=True)
        normaliser = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        losses: NDArray[np.float64] = np.minimum(normaliser - scores[np.arange(len(labels)), labels], -np.log(1e-12))
        return losses
    predicted = scores.argmax(axis=1)
    counted = predicted == (labels if quantity == "correct" else 1)
    return np.asarray(counted, dtype=np.float64)


def _differences(
    logits_by_seed: Mapping[int, LogitsTable],
    paired: Sequence[tuple[int, str]],
    baselines: Mapping[int, Mapping[str, NDArray[np.float64]]],
    data: EncodedData,
    test: NDArray[np.int64],
    quantities: Sequence[str],
) -> dict[str, NDArray[np.float64]]:
    """Baseline minus run, float64, shape (seeds, test rows), by quantity."""
    found: dict[str, list[NDArray[np.float64]]] = {quantity: [] for quantity in quantities}
    for seed, run in paired:
        values = _values(logits_by_seed[seed], run, data, test, quantities)
        for quantity in quantities:
            found[quantity].append(baselines[seed][quantity] - values[quantity])
    return {quantity: np.array(each).reshape(len(paired), len(test)) for quantity, each in found.items()}


def _measurement(
    method: str,
    epsilon: float | None,
    quantity: str,
    seeds: tuple[int, ...],
    differences: NDArray[np.float64],
    cell: _Cell,
) -> MeasurementRow:
    reason = "no finished seed" if not seeds else "no test rows" if not cell.units else None
    if reason:
        sums: tuple[float | None, ...] = (None, None, None, None)
    else:
        chosen = differences[:, cell.rows]
        each = np.stack([np.bincount(cell.unit_of_row, weights=row, minlength=cell.units) for row in chosen])
        mean = each.mean(axis=0)
        squares = float((each**2).sum(axis=1).mean())
        sums = (float(mean.sum()), float((mean**2).sum()), float((mean * cell.rows_per_unit).sum()), squares)
    return MeasurementRow(
        method=method,
        epsilon=epsilon,
        group=cell.group,
        label=cell.label,
        part="test",
        quantity=quantity,
        seeds=seeds,
        units=cell.units,
        rows=len(cell.rows),
        total=sums[0],
        total_squared=sums[1],
        cross=sums[2],
        rows_squared=float((cell.rows_per_unit**2).sum()),
        total_each_squared=sums[3],
        reason=reason,
    )
