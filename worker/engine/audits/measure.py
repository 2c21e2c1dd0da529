"""From the logits of the test rows to measurements: sums over units that intervals are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.audits.outcomes import BASELINE, Cell, LogitsTable, TestPart, undefined
from worker.engine.metrics import reasons
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.base import Metric, Outcomes
from worker.engine.results import EVERYONE, LEVEL, PRIMARY, REST, EncodedData, MeasurementRow, RunValue

if TYPE_CHECKING:
    from numpy.typing import NDArray


def measure(
    logits_by_seed: Mapping[int, LogitsTable],
    runs: Mapping[str, tuple[str, float | None, int]],
    data: EncodedData,
    metrics: Sequence[Metric] = (ACCURACY,),
) -> list[MeasurementRow]:
    """Measurements of the test part for each method, epsilon, group and metric.

    Three kinds (see ``MeasurementRow.quantity``): the difference baseline minus run of the same seed and row; the level of
    the run itself, the baseline's too; and for the primary metric the difference of a group less that of all other rows,
    at each epsilon and averaged over a method's epsilons, for methods that have some.
    A row's part in a metric is ``Metric.linear``; units are rows,
    or persons where unit ids are persons: sums go within the person first. Runs that are not in ``runs`` (diverged,
    unfinished) and seeds without a finished baseline are left out; ``seeds`` names those that count.

    Args:
        logits_by_seed: one table a seed.
        runs: method, epsilon and seed of every finished run, by run id.
    """
    part = TestPart(logits_by_seed, runs, data)
    labels: list[int | None] = list(dict.fromkeys(metric.label for metric in metrics))
    cells = list(part.cells(labels))
    rows: list[MeasurementRow] = []
    pooled = _Pooled()
    for point, members in part.points.items():
        own = part.outcomes(members)
        rows += list(_levels(point, members, own, cells, metrics))
        if point[0] == BASELINE:
            continue
        paired = part.paired(point)
        if not paired:
            rows += _no_seed(point, cells, metrics)
            continue
        pair = (part.outcomes(paired), part.outcomes(part.baselines_of(paired)))
        rows += list(_differences(point, paired, pair, cells, metrics))
        if point[1] is not None and any(metric.key == PRIMARY for metric in metrics):
            gained = pair[1].correct - pair[0].correct
            pooled.add(point, paired, gained)
            rows += _contrasts(point, tuple(seed for seed, _ in paired), gained, part)
    return rows + pooled.rows(part)


def _levels(
    point: tuple[str, float | None],
    members: Sequence[tuple[int, str]],
    own: Outcomes,
    cells: Sequence[Mapping[int | None, Cell]],
    metrics: Sequence[Metric],
) -> Iterator[MeasurementRow]:
    seeds = tuple(seed for seed, _ in members)
    for cell, metric in ((by_label[metric.label], metric) for by_label in cells for metric in metrics):
        found = contributions(metric, own, cell)
        each, reason = (None, found) if isinstance(found, str) else (found, None)
        yield measurement(point, LEVEL + metric.key, seeds, each, cell, reason)


def _differences(
    point: tuple[str, float | None],
    paired: Sequence[tuple[int, str]],
    pair: tuple[Outcomes, Outcomes],
    cells: Sequence[Mapping[int | None, Cell]],
    metrics: Sequence[Metric],
) -> Iterator[MeasurementRow]:
    seeds = tuple(seed for seed, _ in paired)
    for cell, metric in ((by_label[metric.label], metric) for by_label in cells for metric in metrics):
        after, before = (contributions(metric, outcomes, cell) for outcomes in pair)
        if isinstance(after, str) or isinstance(before, str):
            reason = after if isinstance(after, str) else str(before)
            yield measurement(point, metric.key, seeds, None, cell, reason)
        else:
            yield measurement(point, metric.key, seeds, before - after, cell, None)


def _no_seed(
    point: tuple[str, float | None], cells: Sequence[Mapping[int | None, Cell]], metrics: Sequence[Metric]
) -> list[MeasurementRow]:
    return [
        measurement(point, metric.key, (), None, by_label[metric.label], reasons.NO_SEED)
        for by_label in cells
        for metric in metrics
    ]


def contributions(metric: Metric, outcomes: Outcomes, cell: Cell) -> NDArray[np.float64] | str:
    """Each row's part in the metric, shape (s, rows of the cell); or the code of why it is undefined."""
    why = undefined(metric, outcomes.labels[cell.rows], outcomes.classes)
    if why is not None:
        return why
    found = metric.linear(outcomes.at(cell.rows))
    return reasons.NOBODY_PREDICTED if np.isnan(found).any() else found


def measurement(
    point: tuple[str, float | None],
    quantity: str,
    seeds: tuple[int, ...],
    each: NDArray[np.float64] | None,
    cell: Cell,
    reason: str | None,
) -> MeasurementRow:
    """The sums of values a seed and row, shape (s, rows), None where undefined."""
    sums: tuple[float | None, ...] = (None, None, None, None)
    if each is not None:
        by_unit = cell.by_unit(each)
        mean = by_unit.mean(axis=0)
        squares = float((by_unit**2).sum(axis=1).mean())
        sums = (float(mean.sum()), float((mean**2).sum()), float((mean * cell.rows_per_unit).sum()), squares)
    return MeasurementRow(
        method=point[0],
        epsilon=point[1],
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


def _contrasts(
    point: tuple[str, float | None], seeds: tuple[int, ...], gained: NDArray[np.float64], part: TestPart
) -> list[MeasurementRow]:
    """Each group against everyone else, from differences a seed and test row, shape (s, m)."""
    everyone = part.cell(EVERYONE, np.ones(len(part.data.labels), bool))
    rows = []
    for group in part.data.groups:
        inside = group.member[part.rows]
        count, others = int(inside.sum()), int((~inside).sum())
        if count and others:
            weight = len(inside) * np.where(inside, 1.0 / count, -1.0 / others)
            cell = Cell(group.key, None, everyone.rows, everyone.unit_of_row, everyone.units, everyone.rows_per_unit)
            rows.append(measurement(point, REST + PRIMARY, seeds, gained * weight, cell, None))
    return rows


@dataclass
class _Sum:
    total: NDArray[np.float64]
    epsilons: int = 1


class _Pooled:
    """Differences of each method and seed, summed over epsilons as they come."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int], _Sum] = {}
        self._epsilons: dict[str, int] = {}

    def add(
        self, point: tuple[str, float | None], paired: Sequence[tuple[int, str]], gained: NDArray[np.float64]
    ) -> None:
        self._epsilons[point[0]] = self._epsilons.get(point[0], 0) + 1
        for (seed, _), row in zip(paired, gained, strict=True):
            known = self._sums.get((point[0], seed))
            if known is None:
                self._sums[point[0], seed] = _Sum(row.copy())
            else:
                known.total += row
                known.epsilons += 1

    def rows(self, part: TestPart) -> list[MeasurementRow]:
        """Contrasts of the means over epsilons; a seed counts where it has every epsilon of its method."""
        found: list[MeasurementRow] = []
        for method, epsilons in self._epsilons.items():
            whole = {s: v.total for (m, s), v in self._sums.items() if m == method and v.epsilons == epsilons}
            if whole:
                seeds = tuple(sorted(whole))
                gained = np.stack([whole[seed] for seed in seeds]) / epsilons
                found += _contrasts((method, None), seeds, gained, part)
        return found


def run_values(
    logits_by_seed: Mapping[int, LogitsTable],
    runs: Mapping[str, tuple[str, float | None, int]],
    data: EncodedData,
    metrics: Sequence[Metric],
) -> list[RunValue]:
    """Of every run and group, the metrics that counts cannot give."""
    part = TestPart(logits_by_seed, runs, data)
    wanted = [metric for metric in metrics if metric.counted is None]
    cells = list(part.cells([metric.label for metric in wanted] or [None]))
    rows: list[RunValue] = []
    for members in part.points.values() if wanted else ():
        outcomes = part.outcomes(members)
        for by_label in cells:
            for metric in wanted:
                rows += _values(metric, outcomes, by_label[metric.label], members)
    return rows


def _values(metric: Metric, outcomes: Outcomes, cell: Cell, members: Sequence[tuple[int, str]]) -> Iterator[RunValue]:
    found = contributions(metric, outcomes, cell)
    for at, (_, run) in enumerate(members):
        if isinstance(found, str):
            yield RunValue(run, cell.group, "test", metric.key, None, len(cell.rows), found)
        else:
            yield RunValue(run, cell.group, "test", metric.key, float(found[at].mean()), len(cell.rows))
