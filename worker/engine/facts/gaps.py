"""Gaps: the spread of a metric over groups, and how much of it privacy added (METHODS.md 1.2 and 1.3).

A gap is that of seed means, within one set of attributes, so that groups do not overlap; only groups that can be judged
set it. Which pair of groups is truly farthest apart is not known, so intervals hold for all pairs at once (Bonferroni).
The excess gap is bounded through pairs: if a, b set the baseline's gap, privacy added at least what it added to a, b; if
they set the private gap, at most that. Both bounds are paired differences, narrow where the pair is plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.facts.costs import FEWEST_PERSONS, rounded, spent_of
from worker.engine.facts.grid import BASELINE, SUM_NAMES, Grid, SumTable, attribute_set, level_sums, make_grid, sums_of
from worker.engine.facts.intervals import (
    FEWEST_SEEDS,
    Components,
    Spread,
    components,
    sampling_spread,
    student_quantile,
)
from worker.engine.facts.rows import GapRow
from worker.engine.metrics import reasons
from worker.engine.metrics.base import Metric
from worker.engine.results import EVERYONE, AuditFacts, FloorRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 0.05
ODDS = "equalized_odds"
ODDS_METRICS = ("true_positive_rate", "false_positive_rate")


def judged(facts: AuditFacts, metric: Metric, used: NDArray[np.int64], sums: SumTable) -> list[int]:
    """Positions of the groups that may set a gap: enough rows and persons, also of the label that the metric needs."""
    few = np.atleast_1d(((sums.units < FEWEST_PERSONS) & (sums.units < sums.rows)).any(0))
    return [
        at
        for at, group in enumerate(facts.groups)
        if group.key != EVERYONE
        and group.estimable
        and group.n >= max(facts.estimable_rows, facts.withheld_below)
        and not few[at]
        and (not metric.needs_label or used[at] >= facts.estimable_per_label)
    ]


def gap_rows(facts: AuditFacts, metric: Metric, *, intervals: bool = True) -> list[GapRow]:
    """One row for each method, epsilon and set of attributes; the baseline has a gap and no excess.

    Without ``intervals`` only the gaps themselves are computed, which is quick.
    """
    grid = make_grid(facts, metric)
    work = _Work(facts, grid, sums_of(facts, grid.points, metric.key), level_sums(facts, grid), intervals)
    floors = {(row.method, row.epsilon, row.by): row for row in facts.floors if row.metric == metric.key}
    sets: dict[str, list[int]] = {}
    for at, group in enumerate(facts.groups):
        if group.key != EVERYONE:
            sets.setdefault(attribute_set(group.attributes), []).append(at)
    fit, spent = set(judged(facts, metric, grid.rows_used, work.levels)), spent_of(facts)
    rows = []
    for by, members in sets.items():
        chosen = [at for at in members if at in fit]
        for point, (method, epsilon) in enumerate(grid.points):
            row = GapRow(
                method, epsilon, spent[method, epsilon], metric.key, by, len(chosen), len(members) - len(chosen)
            )
            rows.append(_with_floor(work.filled(row, point, chosen), floors.get((method, epsilon, by))))
    return rows


def _with_floor(row: GapRow, floor: FloorRow | None) -> GapRow:
    if floor is None or row.gap is None:
        return row
    names = ("gap", "gap_upper", "excess", "excess_upper")
    targets = ("floor", "floor_upper", "excess_floor", "excess_floor_upper")
    row = replace(row, **{to: getattr(floor, name) for name, to in zip(names, targets, strict=True)})
    if floor.reason is None or row.reason is not None:
        return row
    return replace(row, reason=reasons.words(floor.reason), reason_code=floor.reason)


@dataclass(frozen=True)
class _Pairs:
    """Differences of all pairs a, b of k groups, shape (k, k), and their spread."""

    difference: NDArray[np.float64]
    spread: Spread

    def half(self, alpha: float) -> NDArray[np.float64]:
        """Half widths that hold for all pairs at once."""
        count = len(self.difference)
        one, other = np.triu_indices(count, 1)
        freedom = self.spread.freedom[one, other]
        freedom = np.where(np.isfinite(freedom), freedom, 1.0)
        quantile = student_quantile(1 - alpha / (2 * max(len(one), 1)), freedom)
        found = np.zeros((count, count))
        found[one, other] = found[other, one] = quantile * np.sqrt(self.spread.variance[one, other])
        return found


@dataclass(frozen=True)
class _Work:
    facts: AuditFacts
    grid: Grid
    sums: SumTable
    levels: SumTable
    intervals: bool

    def filled(self, row: GapRow, point: int, chosen: Sequence[int]) -> GapRow:
        seeds = self.grid.paired[point]
        if len(chosen) < 2:
            return _because(row, reasons.FEW_GROUPS)
        if not seeds.any():
            return _because(row, reasons.UNFINISHED)
        value, baseline = (array[point][seeds][:, chosen] for array in (self.grid.value, self.grid.baseline))
        if np.isnan(value).any() or np.isnan(baseline).any():
            return _because(row, self._why(point, chosen))
        row = self._point(row, value, baseline, chosen)
        if not self.intervals:
            return row
        if self.levels.seeds[point] is None:
            return _because(row, reasons.UNMEASURED)
        own = self._pairs(value, self.levels.at(point), chosen)
        row = _gap_interval(row, own)
        if row.method == BASELINE:
            return replace(row, reason=reasons.words(reasons.IS_BASELINE), reason_code=reasons.IS_BASELINE)
        if self.sums.seeds[point] != self.grid.seeds_of(point) or self.levels.seeds[0] is None:
            return _because(row, reasons.UNMEASURED)
        before = self._pairs(baseline, self.levels.at(0), chosen)
        added = self._pairs(value - baseline, self.sums.at(point), chosen)
        low, high = excess_interval(own, before, added)
        row = replace(row, low=rounded(low), high=rounded(high))
        return row if len(value) >= FEWEST_SEEDS else _because(row, reasons.FEW_SEEDS)

    def _point(
        self, row: GapRow, value: NDArray[np.float64], baseline: NDArray[np.float64], chosen: Sequence[int]
    ) -> GapRow:
        own, before = value.mean(0), baseline.mean(0)
        top, bottom = int(own.argmax()), int(own.argmin())
        gap, base = own[top] - own[bottom], before.max() - before.min()
        keys = [self.facts.groups[at].key for at in chosen]
        row = replace(row, highest=keys[top], lowest=keys[bottom], gap=rounded(gap), seeds=len(value))
        row = replace(row, ratio=rounded(own[bottom] / own[top]) if own[top] > 0 else None)
        if row.method == BASELINE:
            return row
        costs = self.grid.metric.sign * (before - own)
        return replace(
            row,
            baseline_gap=rounded(base),
            excess=rounded(rounded(gap) - rounded(base)),
            signed=rounded(own[before.argmax()] - own[before.argmin()]),
            cost_gap=rounded(costs.max() - costs.min()),
            xi=self._xi(row, costs),
        )

    def _xi(self, row: GapRow, costs: NDArray[np.float64]) -> float | None:
        """Largest distance of a group's cost from everyone's (Tran 2021: against the population)."""
        everyone = next((at for at, group in enumerate(self.facts.groups) if group.key == EVERYONE), None)
        point = self.grid.points.index((row.method, row.epsilon_asked))
        if everyone is None:
            return None
        whole = self.grid.difference[point][self.grid.paired[point]][:, everyone].mean() * self.grid.metric.sign
        return None if np.isnan(whole) else rounded(float(np.abs(costs - whole).max()))

    def _pairs(self, each: NDArray[np.float64], sums: SumTable, chosen: Sequence[int]) -> _Pairs:
        """``each`` by seed and group, shape (s, k); where seeds are too few, the rows' part alone is used."""
        own = SumTable(**{name: getattr(sums, name)[list(chosen)] for name in SUM_NAMES}, seeds=sums.seeds)
        mean = each.mean(0)
        difference = mean[:, None] - mean[None, :]
        if len(each) < FEWEST_SEEDS:
            return _Pairs(difference, _added(sampling_spread(own, least=self.grid.least)))
        parts = components(own, each, least=self.grid.least)
        centred = each - mean
        shared = centred.T @ centred / (len(each) - 1) / len(each)
        of_seeds = np.maximum(np.diag(shared)[:, None] + np.diag(shared)[None, :] - 2 * shared, 0.0)
        freedom = np.full_like(of_seeds, len(each) - 1.0)
        spread = Components(Spread(of_seeds, freedom), _added(parts.units), _added(parts.residual)).both()
        return _Pairs(difference, spread)

    def _why(self, point: int, chosen: Sequence[int]) -> str:
        grid = self.grid
        if grid.metric.counted is None or grid.counts is None:
            return reasons.UNMEASURED
        seeds = np.flatnonzero(grid.paired[point])
        for runs in (grid.runs[point], grid.runs[0]):
            for at in chosen:
                for seed in seeds:
                    if np.isnan((grid.value if runs is grid.runs[point] else grid.baseline)[point, seed, at]):
                        return grid.metric.code(grid.counts, int(runs[seed]), at)
        return reasons.NOBODY_PREDICTED


def _added(spread: Spread) -> Spread:
    """Of the difference of two groups that share no unit: variances add, degrees of freedom by Satterthwaite."""
    variance, freedom = np.asarray(spread.variance), np.asarray(spread.freedom)
    total = variance[:, None] + variance[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(variance > 0, variance**2 / freedom, 0.0)
        together = total**2 / (weight[:, None] + weight[None, :])
    return Spread(total, np.where(np.isfinite(together), together, freedom[:, None]))


def _gap_interval(row: GapRow, own: _Pairs) -> GapRow:
    half, off = own.half(ALPHA), ~np.eye(len(own.difference), dtype=bool)
    low, high = (own.difference - half)[off].max(), (own.difference + half)[off].max()
    if not np.isfinite(high):
        return row
    return replace(row, gap_low=rounded(max(low, 0.0)), gap_high=rounded(high))


def excess_interval(own: _Pairs, before: _Pairs, added: _Pairs) -> tuple[float, float]:
    """Bounds of the excess gap, each of the three families of pairs at a third of the error.

    A pair may be the farthest of a network if the upper limit of its distance reaches the largest lower limit. If a, b is
    the farthest without DP, the excess is at least what privacy added to a, b, and at least the private gap's lower limit
    less the upper limit of a, b; the larger of the two holds. The upper bound is the mirror image.
    """
    third, off = ALPHA / 3, ~np.eye(len(own.difference), dtype=bool)
    of_own, of_before, of_added = (pairs.half(third) for pairs in (own, before, added))
    least_own = max(float((own.difference - of_own)[off].max()), 0.0)
    least_before = max(float((before.difference - of_before)[off].max()), 0.0)
    upper_own, upper_before = own.difference + of_own, before.difference + of_before
    low = np.maximum(added.difference - of_added, least_own - upper_before)[off & (upper_before >= least_before)].min()
    high = np.minimum(added.difference + of_added, upper_own - least_before)[off & (upper_own >= least_own)].max()
    return float(low), float(high)


def _because(row: GapRow, code: str) -> GapRow:
    return replace(row, reason=reasons.words(code), reason_code=code)


def equalized_odds(first: Sequence[GapRow], second: Sequence[GapRow]) -> list[GapRow]:
    """The larger of two gaps at each point, row by row: of true and of false positive rates (Fairlearn's convention).

    Intervals, floors and pairs are those of the larger one; the excess is against the larger baseline gap.
    """
    rows = []
    for one, other in zip(first, second, strict=True):
        if one.gap is None or other.gap is None:
            rows.append(replace(one if one.gap is None else other, metric=ODDS))
            continue
        larger = one if one.gap >= other.gap else other
        row = replace(larger, metric=ODDS, cost_gap=None, xi=None)
        if one.baseline_gap is not None and other.baseline_gap is not None and larger.gap is not None:
            base = max(one.baseline_gap, other.baseline_gap)
            row = replace(row, baseline_gap=base, excess=rounded(larger.gap - base))
            if base != larger.baseline_gap:
                row = replace(row, low=None, high=None, excess_floor=None, excess_floor_upper=None)
        rows.append(row)
    return rows
