"""The permutation floor: how large a gap looks if all groups are equal, because groups are small and there are many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.audits.measure import contributions
from worker.engine.audits.outcomes import BASELINE, Cell, LogitsTable, Member, Point, TestPart
from worker.engine.metrics import reasons
from worker.engine.metrics.base import Metric, Outcomes
from worker.engine.results import EVERYONE, EncodedData, FloorRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

DRAWS = 200
BIASED_IN_SMALL_GROUPS = ("calibration_error",)


def floors(
    logits_by_seed: Mapping[int, LogitsTable],
    runs: Mapping[str, tuple[str, float | None, int]],
    data: EncodedData,
    metrics: Sequence[Metric],
    families: Mapping[str, Sequence[str]],
    *,
    fewest_with_label: int,
    seed: int = 0,
) -> list[FloorRow]:
    """For each method, epsilon, metric and family of disjoint groups, gaps after whole units were shuffled over groups.

    A unit keeps its pair of results, with and without privacy, so the floor of the excess gap holds the pairing. What is
    shuffled is each row's part in the metric of everyone, averaged over seeds: exact for means, to first order for ratios
    and ranks. Only the groups that a gap is made of are shuffled.

    Args:
        families: keys of the groups that can be judged, by the attributes that make them.
        fewest_with_label: a group with fewer rows of the label that a metric needs sets no gap.
    """
    part = TestPart(logits_by_seed, runs, data)
    pairs = {point: part.paired(point) for point in part.points if point[0] != BASELINE and part.paired(point)}
    found: list[FloorRow] = []
    for by, keys in families.items():
        chosen = {metric.key: _family(part, metric, keys, fewest_with_label) for metric in metrics}
        why = {metric.key: _why_not(metric, chosen[metric.key][1]) for metric in metrics}
        levels = _levels(part, [metric for metric in metrics if why[metric.key] is None], chosen, pairs)
        for metric in metrics:
            own = why[metric.key] or levels[metric.key]
            if isinstance(own, str):
                found += [FloorRow(*point, metric.key, by, None, None, None, None, 0, own) for point in pairs]
            elif pairs:
                found += _shuffled(list(pairs), metric.key, by, own, *chosen[metric.key], seed)
    return found


def _why_not(metric: Metric, groups: NDArray[np.int64]) -> str | None:
    if metric.key in BIASED_IN_SMALL_GROUPS:
        return reasons.NO_FLOOR
    return reasons.FEW_GROUPS if groups.max(initial=-1) < 1 else None


def _family(part: TestPart, metric: Metric, keys: Sequence[str], fewest: int) -> tuple[Cell, NDArray[np.int64]]:
    """The test rows of all groups of the family, and each row's group (by position)."""
    members = [group.member for group in part.data.groups if group.key in keys]
    labels = range(part.data.classes) if metric.all_labels else [metric.label]
    kept = [m for m in members if all(len(part.cell("", m, label).rows) >= fewest for label in labels)]
    together = np.zeros(len(part.data.labels), bool)
    code = np.full(len(part.data.labels), -1, np.int64)
    for position, member in enumerate(kept):
        code[member & ~together] = position
        together |= member
    cell = part.cell(EVERYONE, together, metric.label)
    return cell, code[part.rows][cell.rows]


def _levels(
    part: TestPart,
    metrics: Sequence[Metric],
    chosen: Mapping[str, tuple[Cell, NDArray[np.int64]]],
    pairs: Mapping[Point, Sequence[Member]],
) -> dict[str, NDArray[np.float64] | str]:
    """By metric: sums within units of private and baseline levels, shape (units, 2 x points), seeds averaged; or why not.

    Points come first, since what a network says of each row is costly and serves all metrics.
    """
    columns: dict[str, list[NDArray[np.float64]]] = {metric.key: [] for metric in metrics}
    lost: dict[str, str] = {}
    known: tuple[list[Member], Outcomes] | None = None
    for members in pairs.values():
        baselines = part.baselines_of(members)
        if known is None or known[0] != baselines:
            known = baselines, part.outcomes(baselines)
        for outcomes in (part.outcomes(members), known[1]):
            for metric in metrics:
                cell = chosen[metric.key][0]
                each = contributions(metric, outcomes, cell)
                if isinstance(each, str):
                    lost[metric.key] = each
                else:
                    columns[metric.key].append(cell.by_unit(each).mean(axis=0))
    whole = {key: np.stack(found, axis=1) for key, found in columns.items() if found and key not in lost}
    return {key: whole.get(key, lost.get(key, reasons.NO_SEED)) for key in columns}


def _shuffled(
    points: Sequence[Point],
    metric: str,
    by: str,
    levels: NDArray[np.float64],
    cell: Cell,
    groups: NDArray[np.int64],
    seed: int,
) -> list[FloorRow]:
    unit_of_row = np.arange(len(groups)) if cell.unit_of_row is None else cell.unit_of_row
    of_unit = np.zeros(cell.units, np.int64)
    of_unit[unit_of_row[::-1]] = groups[::-1]  # a person in several groups goes with the first row
    starts = np.searchsorted(np.sort(of_unit), np.arange(of_unit.max() + 1))
    draw, spreads = np.random.default_rng(seed), np.empty((DRAWS, levels.shape[1]))
    for at in range(DRAWS):
        order = draw.permutation(cell.units)
        means = np.add.reduceat(levels[order], starts) / np.add.reduceat(cell.rows_per_unit[order], starts)[:, None]
        spreads[at] = means.max(0) - means.min(0)
    gaps, excess = spreads[:, ::2], spreads[:, ::2] - spreads[:, 1::2]
    upper = [np.quantile(array, 0.95, axis=0) for array in (gaps, excess)]
    numbers = np.stack([gaps.mean(0), upper[0], excess.mean(0), upper[1]], axis=1).round(12) + 0.0
    return [
        FloorRow(*point, metric, by, float(gap), float(high), float(excess), float(above), DRAWS)
        for point, (gap, high, excess, above) in zip(points, numbers, strict=True)
    ]
