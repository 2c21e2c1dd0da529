"""Which groups pay more than the rest: one planned family of comparisons, adjusted by Holm (METHODS.md 1.3).

The family is fixed before anything trains: every group that can be judged x every private method, on the primary metric
averaged over epsilons. Each group is compared with all other rows, so that a large group is not compared with itself.
Marks at single epsilons are given only inside a marked comparison. No choice of a reader changes any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.facts.costs import rounded
from worker.engine.facts.grid import Grid, make_grid, sums_of
from worker.engine.facts.intervals import FEWEST_SEEDS, ONE_UNIT, Spread, both_spread, student_above
from worker.engine.facts.rows import MarkRow
from worker.engine.metrics import reasons
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.results import EVERYONE, PRIMARY, REST, AuditFacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 0.05
Marked = dict[tuple[str, float | None, str], bool | None]


def family_groups(facts: AuditFacts) -> list[int]:
    """Positions of the groups that are compared: known from the dataset alone."""
    everyone = max((group.n for group in facts.groups), default=0)
    return [
        at
        for at, group in enumerate(facts.groups)
        if group.key != EVERYONE and group.estimable and facts.estimable_rows <= group.n < everyone
    ]


def mark_rows(facts: AuditFacts) -> list[MarkRow]:
    """The planned family with its p values, by method and group."""
    return _Marks(facts).rows()


def marked(facts: AuditFacts) -> Marked:
    """For each method, epsilon and group of the family whether it is marked; None where it cannot be said."""
    return _Marks(facts).by_epsilon()


class _Marks:
    def __init__(self, facts: AuditFacts) -> None:
        self.facts, self.grid = facts, make_grid(facts, ACCURACY)
        self.groups = family_groups(facts)
        self.methods = list(dict.fromkeys(method for method, epsilon in self.grid.points if epsilon is not None))
        self.pooled = sums_of(facts, [(method, None) for method in self.methods], REST + PRIMARY)
        self.single = sums_of(facts, self.grid.points, REST + PRIMARY)
        self.least = _least(facts)

    @property
    def size(self) -> int:
        return len(self.groups) * len(self.methods)

    def rows(self) -> list[MarkRow]:
        rows = [row for at, method in enumerate(self.methods) for row in self._of_method(at, method)]
        adjusted = holm([row.p for row in rows], self.size)
        return [
            row if p is None else replace(row, p_adjusted=rounded(p), marked=bool(p <= ALPHA))
            for row, p in zip(rows, adjusted, strict=True)
        ]

    def by_epsilon(self) -> Marked:
        found: Marked = {}
        for row in self.rows():
            points = [at for at, (method, _) in enumerate(self.grid.points) if method == row.method]
            inside = self._inside(points, row.group) if row.marked else [row.marked] * len(points)
            for point, value in zip(points, inside, strict=True):
                found[row.method, self.grid.points[point][1], row.group] = value
        return found

    def _inside(self, points: Sequence[int], group: str) -> list[bool | None]:
        """Marks at each epsilon of one marked comparison, by Holm over its epsilons."""
        at = next(place for place, known in enumerate(self.facts.groups) if known.key == group)
        chances: list[float | None] = []
        for point in points:
            own = self._contrasts(point)
            seeds = self.single.seeds[point]
            if seeds != self.grid.seeds_of(point) or len(own) < FEWEST_SEEDS:
                chances.append(None)
                continue
            mean, spread = own.mean(0), both_spread(self.single.at(point), own, least=self.least)
            chances.append(_chance(mean, spread, at))
        return [None if p is None else bool(p <= ALPHA) for p in holm(chances, len(points))]

    def _contrasts(self, point: int) -> NDArray[np.float64]:
        """Cost of each group less that of everyone else, shape (seeds, groups)."""
        return np.asarray(against_rest(self.facts, self.grid, point)[self.grid.paired[point]], dtype=np.float64)

    def _of_method(self, at: int, method: str) -> list[MarkRow]:
        points = [place for place, (name, _) in enumerate(self.grid.points) if name == method]
        whole: NDArray[np.bool_] = np.asarray(self.grid.paired[points].all(0), dtype=bool)
        seeds = tuple(seed for seed, ok in zip(self.grid.seeds, whole, strict=True) if ok)
        code = None
        if len(seeds) < FEWEST_SEEDS:
            code = reasons.FEW_SEEDS if self.grid.finished.any() else reasons.UNFINISHED
        elif self.pooled.seeds[at] != seeds:
            code = reasons.UNMEASURED
        if code is not None:
            return [self._empty(method, group, len(seeds), code) for group in self.groups]
        each = np.mean([against_rest(self.facts, self.grid, point)[whole] for point in points], axis=0)
        spread = both_spread(self.pooled.at(at), each, least=self.least)
        return [self._row(method, group, each.mean(0), spread, len(seeds)) for group in self.groups]

    def _empty(self, method: str, group: int, seeds: int, code: str) -> MarkRow:
        known = self.facts.groups[group]
        nothing = (None, None, None, None, None, None)
        row = MarkRow(method, known.key, known.label, known.n, PRIMARY, *nothing, family=self.size, seeds=seeds)
        return replace(row, reason_code=code, reason=reasons.words(code))

    def _row(self, method: str, group: int, mean: NDArray[np.float64], spread: Spread, seeds: int) -> MarkRow:
        chance = _chance(mean, spread, group)
        if chance is None:
            return self._empty(method, group, seeds, reasons.UNMEASURED)
        half, difference = float(spread.half_width()[group]), float(mean[group])
        return replace(
            self._empty(method, group, seeds, ""),
            difference=rounded(difference),
            low=rounded(difference - half),
            high=rounded(difference + half),
            p=rounded(chance),
            reason=None,
            reason_code=None,
        )


def against_rest(facts: AuditFacts, grid: Grid, point: int) -> NDArray[np.float64]:
    """Baseline minus value of each group less that of all other rows, shape (seeds, groups); the primary metric only."""
    difference = grid.difference[point]
    everyone = next(at for at, group in enumerate(facts.groups) if group.key == EVERYONE)
    n = np.array([group.n for group in facts.groups], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (n[everyone] * difference[:, [everyone]] - n * difference) / (n[everyone] - n)
        return np.asarray(difference - rest, dtype=np.float64)


def _least(facts: AuditFacts) -> NDArray[np.float64]:
    """The smallest sum of squares that is believed: one row of the group and one of the rest changed in every seed."""
    n = np.array([group.n for group in facts.groups], np.float64)
    total = n.max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(ONE_UNIT * total**2 * (1 / n**2 + 1 / (total - n) ** 2), dtype=np.float64)


def _chance(mean: NDArray[np.float64], spread: Spread, group: int) -> float | None:
    """One-sided: how often a difference so large would be seen if the group paid no more than the rest."""
    variance, freedom = float(spread.variance[group]), float(spread.freedom[group])
    if not variance > 0 or not freedom > 0:
        return None
    return float(student_above(float(mean[group]) / variance**0.5, freedom))


def holm(chances: Sequence[float | None], size: int) -> list[float | None]:
    """Adjusted p values over a family of ``size``; those that are None count as untested members (Holm 1979)."""
    known = sorted((p, at) for at, p in enumerate(chances) if p is not None)
    adjusted: list[float | None] = [None] * len(chances)
    largest = 0.0
    for rank, (p, at) in enumerate(known):
        largest = max(largest, min(1.0, p * (size - rank)))
        adjusted[at] = largest
    return adjusted
