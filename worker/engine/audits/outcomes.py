"""From stored logits to what each network says of each test row, and to each row's part in a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from worker.engine.audits.logits import log_probabilities, losses, predictions
from worker.engine.metrics import reasons
from worker.engine.metrics.base import Metric, Outcomes
from worker.engine.results import PARTS, EncodedData

if TYPE_CHECKING:
    from numpy.typing import NDArray

BASELINE = "non-private"
Point = tuple[str, float | None]
Member = tuple[int, str]
"""Seed and run id."""


class LogitsTable(Protocol):
    """Logits of one stack: ``row_ids`` int64, shape (rows,); ``logits`` by run id, float32, shape (rows, outputs)."""

    @property
    def row_ids(self) -> NDArray[np.int64]: ...

    @property
    def logits(self) -> Mapping[str, NDArray[np.float32]]: ...


@dataclass(frozen=True)
class Cell:
    """Rows of one group, positions within the test rows, and their units (rows, or persons).

    ``unit_of_row`` is None where every unit is one row.
    """

    group: str
    label: int | None
    rows: NDArray[np.int64]
    unit_of_row: NDArray[np.int64] | None
    units: int
    rows_per_unit: NDArray[np.float64]

    def by_unit(self, each: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums within units of values a row, shape (s, rows) to (s, units)."""
        if self.unit_of_row is None:
            return each
        return np.stack([np.bincount(self.unit_of_row, weights=row, minlength=self.units) for row in each])


class TestPart:
    """The test rows of one table with the networks' logits of them.

    Args:
        logits_by_seed: one table a seed.
        runs: method, epsilon and seed of every finished run, by run id.
    """

    __test__ = False

    def __init__(
        self,
        logits_by_seed: Mapping[int, LogitsTable],
        runs: Mapping[str, tuple[str, float | None, int]],
        data: EncodedData,
    ) -> None:
        self.data = data
        self.rows = np.flatnonzero(data.parts == PARTS.index("test"))
        self.labels, self.unit_ids = data.labels[self.rows], data.unit_ids[self.rows]
        self._tables = logits_by_seed
        self._places = {seed: self._place(table) for seed, table in logits_by_seed.items()}
        self.points: dict[Point, list[Member]] = {}
        for run, (method, epsilon, seed) in runs.items():
            if seed in logits_by_seed:
                self.points.setdefault((method, epsilon), []).append((seed, run))
        for members in self.points.values():
            members.sort()
        self.baselines = dict(self.points.get((BASELINE, None), ()))

    def _place(self, table: LogitsTable) -> NDArray[np.int64]:
        order = np.argsort(table.row_ids)
        return np.asarray(order[np.searchsorted(table.row_ids, self.data.row_ids[self.rows], sorter=order)])

    def paired(self, point: Point) -> list[Member]:
        """Runs of a point whose seed has a finished baseline."""
        return [member for member in self.points[point] if member[0] in self.baselines]

    def baselines_of(self, members: Sequence[Member]) -> list[Member]:
        """The baseline of each run's seed."""
        return [(seed, self.baselines[seed]) for seed, _ in members]

    def outcomes(self, members: Sequence[Member]) -> Outcomes:
        """What these runs say of the test rows."""
        shape = (len(self._places[members[0][0]]), -1)
        logits = np.stack(
            [
                np.asarray(self._tables[seed].logits[run], np.float32)[self._places[seed]].reshape(shape)
                for seed, run in members
            ]
        )
        return outcomes_of(logits, self.labels, self.data.classes)

    def cell(self, group: str, member: NDArray[np.bool_], label: int | None = None) -> Cell:
        """The test rows of a group, of all labels or of one."""
        inside = member[self.rows]
        rows = np.flatnonzero(inside if label is None else inside & (self.labels == label))
        units, unit_of_row = np.unique(self.unit_ids[rows], return_inverse=True)
        per_unit = np.bincount(unit_of_row, minlength=len(units)).astype(np.float64)
        return Cell(group, label, rows, None if len(units) == len(rows) else unit_of_row, len(units), per_unit)

    def cells(self, labels: Sequence[int | None]) -> Iterator[dict[int | None, Cell]]:
        """For each group its cells by label."""
        for group in self.data.groups:
            yield {label: self.cell(group.key, group.member, label) for label in labels}


def outcomes_of(logits: NDArray[np.float32], labels: NDArray[np.int64], classes: int) -> Outcomes:
    """What networks say, from logits of shape (s, m, outputs); one output for two classes."""
    logs, predicted = log_probabilities(logits), predictions(logits)
    probability = np.exp(logs)
    true = np.take_along_axis(probability, np.broadcast_to(labels, predicted.shape)[..., None], -1)[..., 0]
    if classes == 2:
        error, confidence = (1.0 - true) ** 2, probability[..., 1]
        margin = logits[..., 0] if logits.shape[-1] == 1 else logits[..., 1] - logits[..., 0]
        hit = np.broadcast_to(labels.astype(np.float64), predicted.shape)
    else:
        error = (probability**2).sum(-1) - 2.0 * true + 1.0
        confidence, margin = probability.max(-1), logits.max(-1)
        hit = (predicted == labels).astype(np.float64)
    loss = losses(logs, labels)
    return Outcomes(labels, classes, predicted, loss, error, margin.astype(np.float64), confidence, hit)


def undefined(metric: Metric, labels: NDArray[np.int64], classes: int) -> str | None:
    """Why a metric cannot be computed for rows with these labels, whatever a network says; None if it can."""
    if metric.two_classes and classes > 2:
        return reasons.TWO_CLASSES
    if not len(labels):
        return reasons.NO_LABEL if metric.needs_label else reasons.NO_ROWS
    if metric.all_labels and len(np.unique(labels)) < classes:
        return reasons.NO_LABEL
    return None
