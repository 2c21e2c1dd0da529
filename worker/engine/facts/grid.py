"""One metric of one audit as arrays over points (method x epsilon), seeds and groups: what all facts are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.facts.intervals import ONE_UNIT
from worker.engine.metrics.base import Metric
from worker.engine.results import LEVEL, AuditFacts, Counts, MeasurementRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

BASELINE = "non-private"
Point = tuple[str, float | None]
SUM_NAMES = ("units", "rows", "total", "total_squared", "cross", "rows_squared", "total_each_squared")


@dataclass(frozen=True)
class SumTable:
    """Sums of measurement rows as arrays, shape (points, groups); NaN where there is none. See ``MeasurementRow``."""

    units: NDArray[np.float64]
    rows: NDArray[np.float64]
    total: NDArray[np.float64]
    total_squared: NDArray[np.float64]
    cross: NDArray[np.float64]
    rows_squared: NDArray[np.float64]
    total_each_squared: NDArray[np.float64]
    seeds: tuple[tuple[int, ...] | None, ...]
    """Of each point: the seeds that its rows hold."""
    points: tuple[Point, ...] = ()

    def at(self, point: int) -> SumTable:
        """The sums of one point, shape (groups,)."""
        return SumTable(**{name: getattr(self, name)[point] for name in SUM_NAMES}, seeds=(self.seeds[point],))

    def of(self, points: Sequence[Point]) -> SumTable:
        """The same over other points; NaN where there is none."""
        known = {point: at for at, point in enumerate(self.points)}
        at = np.array([known.get(point, -1) for point in points], np.int64)
        arrays = {name: np.where(at[:, None] < 0, np.nan, getattr(self, name)[at]) for name in SUM_NAMES}
        seeds = tuple(None if place < 0 else self.seeds[place] for place in at)
        return SumTable(**arrays, seeds=seeds, points=tuple(points))


@dataclass(frozen=True)
class Grid:
    """Values of one metric.

    Attributes:
        points: the baseline first, then in the order of the runs.
        runs: int, shape (points, seeds), position of the run in the facts, -1 where there is none.
        seeds: seed numbers, ascending.
        finished: bool, shape (points, seeds).
        paired: bool, shape (points, seeds): the run and the baseline of its seed both finished.
        value, baseline: float64, shape (points, seeds, groups), NaN where not paired or undefined.
        rows_used: int64, shape (groups,), rows the metric rests on.
        counts: the counts it was made from.
    """

    metric: Metric
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    runs: NDArray[np.int64]
    finished: NDArray[np.bool_]
    paired: NDArray[np.bool_]
    value: NDArray[np.float64]
    baseline: NDArray[np.float64]
    rows_used: NDArray[np.int64]
    counts: Counts | None

    @property
    def difference(self) -> NDArray[np.float64]:
        """Baseline minus value, shape (points, seeds, groups)."""
        return self.baseline - self.value

    @property
    def least(self) -> float:
        """The smallest sum of squares that is believed (see ``ONE_UNIT``)."""
        return ONE_UNIT if self.metric.bounded else 0.0

    def seeds_of(self, point: int) -> tuple[int, ...]:
        """Seeds of a point that are paired."""
        return tuple(seed for seed, ok in zip(self.seeds, self.paired[point], strict=True) if ok)


def make_grid(facts: AuditFacts, metric: Metric) -> Grid:
    """The metric over all runs of the audit."""
    counts = facts.counts if facts.counts is not None else counts_of_runs(facts)
    points = points_of(facts)
    seeds = tuple(sorted({run.seed for run in facts.runs}))
    where = {(run.method, run.epsilon_asked, run.seed): at for at, run in enumerate(facts.runs)}
    runs = np.array([[where.get((*point, seed), -1) for seed in seeds] for point in points], np.int64)
    runs = runs.reshape(len(points), len(seeds))
    done = np.array([run.state == "finished" for run in facts.runs], bool)
    if counts is not None:
        done &= counts.present
    finished = (runs >= 0) & (done[runs] if len(done) else False)
    own = finished[0] if points and points[0][0] == BASELINE else np.zeros(len(seeds), bool)
    paired = finished & own
    groups = len(facts.groups)
    if counts is None or not paired.any():
        empty = np.full((len(points), len(seeds), groups), np.nan)
        used = np.zeros(groups, np.int64)
        return Grid(metric, points, seeds, runs, finished, paired, empty, empty, used, counts)
    found = _values(facts, metric, counts)
    value = np.where(paired[..., None], found[runs], np.nan)
    baseline = np.where(paired[..., None], found[runs[0]][None], np.nan)
    used = metric.rows(counts)[runs[0][own][0]]
    return Grid(metric, points, seeds, runs, finished, paired, value, baseline, used, counts)


def _values(facts: AuditFacts, metric: Metric, counts: Counts) -> NDArray[np.float64]:
    """Shape (runs, groups)."""
    if metric.counted is not None:
        return metric.values(counts)
    missing = np.full((len(facts.runs), len(facts.groups)), np.nan)
    return facts.values.get(metric.key, missing)


def points_of(facts: AuditFacts) -> tuple[Point, ...]:
    """Methods and epsilons, the baseline first, then in the order of the runs."""
    points = dict.fromkeys((run.method, run.epsilon_asked) for run in facts.runs)
    return tuple(sorted(points, key=lambda point: point[0] != BASELINE))


def counts_of_runs(facts: AuditFacts) -> Counts | None:
    """The statistics of the test part as arrays; None where no run has any."""
    listed = [(at, row) for at, run in enumerate(facts.runs) for row in run.statistics if row.part == "test"]
    if not listed:
        return None
    classes = max(len(row.predicted) for _, row in listed)
    where = {group.key: at for at, group in enumerate(facts.groups)}
    shape = (len(facts.runs), len(facts.groups), classes)
    n, predicted = np.zeros(shape, np.int64), np.zeros((*shape, classes), np.int64)
    loss, error = np.zeros(shape), np.zeros(shape)
    for at, row in listed:
        if row.group in where:
            cell = (at, where[row.group], row.label)
            n[cell], predicted[cell], loss[cell], error[cell] = row.n, row.predicted, row.loss, row.squared_error
    present = np.zeros(len(facts.runs), bool)
    present[[at for at, _ in listed]] = True
    return Counts(n, predicted, loss, error, present)


def sums_of(facts: AuditFacts, points: Sequence[Point], quantity: str) -> SumTable:
    """The measurements of one quantity as arrays over points and groups."""
    if quantity in facts.sums:
        stored: SumTable = facts.sums[quantity]
        return stored.of(points)
    at_point = {point: at for at, point in enumerate(points)}
    at_group = {group.key: at for at, group in enumerate(facts.groups)}
    shape = (len(points), len(facts.groups), len(SUM_NAMES))
    found = np.full(shape, np.nan)
    seeds: list[tuple[int, ...] | None] = [None] * len(points)
    for row in facts.measurements:
        if row.quantity == quantity and (row.method, row.epsilon) in at_point and row.group in at_group:
            point = at_point[row.method, row.epsilon]
            seeds[point] = row.seeds
            found[point, at_group[row.group]] = _numbers(row)
    arrays = {name: found[..., place] for place, name in enumerate(SUM_NAMES)}
    return SumTable(**arrays, seeds=tuple(seeds), points=tuple(points))


def _numbers(row: MeasurementRow) -> tuple[float, ...]:
    sums = (row.total, row.total_squared, row.cross, row.rows_squared, row.total_each_squared)
    return (float(row.units), float(row.rows), *(float("nan") if value is None else value for value in sums))


def level_sums(facts: AuditFacts, grid: Grid) -> SumTable:
    """Sums of the runs' own levels."""
    return sums_of(facts, grid.points, LEVEL + grid.metric.key)


def attribute_set(attributes: Mapping[str, str]) -> str:
    """What makes a group, in words: ``sex``, or ``sex x race``; groups of one set do not overlap."""
    return " × ".join(attributes)
