"""The trade-off: which points no other point beats, and the strongest epsilon that a limit on every group allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.facts.costs import rounded, spent_of
from worker.engine.facts.gaps import gap_rows
from worker.engine.facts.grid import BASELINE, Grid, make_grid, sums_of
from worker.engine.facts.headline import shown_epsilon
from worker.engine.facts.intervals import FEWEST_SEEDS, both_spread
from worker.engine.facts.rows import CandidateRow
from worker.engine.metrics import reasons
from worker.engine.metrics.base import Metric
from worker.engine.results import EVERYONE, AuditFacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 0.05
NO_GROUP = "no_group_of_this_size"
NO_GROUP_WORDS = "no group has so many test rows"


@dataclass(frozen=True)
class Tradeoff:
    """Candidates, and the answer in words with the point it names (method and epsilon asked), None where there is none."""

    rows: tuple[CandidateRow, ...]
    answer: str
    method: str | None
    epsilon_asked: float | None


def tradeoff(
    facts: AuditFacts, metric: Metric, titles: Mapping[str, str], *, group_min: int, max_cost: float
) -> Tradeoff:
    """The strongest epsilon at which no group of at least ``group_min`` test rows loses more than ``max_cost``.

    Decided by upper limits: at each point every such group's one-sided upper limit must lie within (all must pass, so
    nothing is adjusted over groups); epsilons are tried from the weakest downward and the first failure ends it (so nothing
    is adjusted over epsilons); methods are adjusted by Bonferroni. A group that cannot be judged cannot pass.

    Args:
        max_cost: in the metric's own unit: a share, or nats.
    """
    grid = make_grid(facts, metric)
    groups = [at for at, group in enumerate(facts.groups) if group.key != EVERYONE and group.n >= group_min]
    points = [at for at, (method, epsilon) in enumerate(grid.points) if method != BASELINE and epsilon is not None]
    methods = list(dict.fromkeys(grid.points[at][0] for at in points))
    upper = upper_limits(facts, grid, ALPHA / max(len(methods), 1))
    excess = _excess(facts, metric)
    spent = spent_of(facts)
    rows = [_candidate(facts, grid, at, groups, upper[at], excess, spent, max_cost) for at in points]
    rows = _with_pareto(rows, metric)
    if metric.better is None:
        rows = [replace(row, passes=None) for row in rows]
    chosen = _strongest(rows, methods)
    return Tradeoff(
        tuple(rows),
        _answer(chosen, rows, metric, titles, group_min, max_cost),
        chosen.method if chosen else None,
        chosen.epsilon_asked if chosen else None,
    )


def upper_limits(facts: AuditFacts, grid: Grid, alpha: float) -> NDArray[np.float64]:
    """One-sided upper limits of every cost at level 1 - alpha, shape (points, groups); NaN where there is none."""
    sums = sums_of(facts, grid.points, grid.metric.key)
    found = np.full((len(grid.points), len(facts.groups)), np.nan)
    for point in range(len(grid.points)):
        own = grid.difference[point][grid.paired[point]]
        if len(own) >= FEWEST_SEEDS and sums.seeds[point] == grid.seeds_of(point):
            half = both_spread(sums.at(point), own, least=grid.least).half_width(1 - 2 * alpha)
            found[point] = grid.metric.sign * own.mean(0) + half
    return found


def _excess(facts: AuditFacts, metric: Metric) -> dict[tuple[str, float | None], tuple[float, str]]:
    """The largest excess gap over the sets of attributes, by point."""
    found: dict[tuple[str, float | None], tuple[float, str]] = {}
    for row in gap_rows(facts, metric, intervals=False):
        key = (row.method, row.epsilon_asked)
        if row.excess is not None and (key not in found or row.excess > found[key][0]):
            found[key] = (row.excess, row.by)
    return found


def _candidate(
    facts: AuditFacts,
    grid: Grid,
    point: int,
    groups: Sequence[int],
    upper: NDArray[np.float64],
    excess: Mapping[tuple[str, float | None], tuple[float, str]],
    spent: Mapping[tuple[str, float | None], float | None],
    max_cost: float,
) -> CandidateRow:
    method, epsilon = grid.points[point]
    added, by = excess.get((method, epsilon), (None, None))
    names = (method, epsilon or 0.0, spent[method, epsilon], grid.metric.key)
    row = CandidateRow(*names, None, None, None, None, added, by, None, None, len(groups))
    seeds = grid.paired[point]
    if not seeds.any():
        return _because(row, reasons.UNFINISHED)
    everyone = next(at for at, group in enumerate(facts.groups) if group.key == EVERYONE)
    overall = grid.value[point][seeds][:, everyone].mean()
    row = replace(row, overall=None if np.isnan(overall) else rounded(overall))
    if not groups:
        return replace(row, reason=NO_GROUP_WORDS, reason_code=NO_GROUP)
    costs = grid.metric.sign * grid.difference[point][seeds][:, groups].mean(0)
    fit = [not np.isnan(cost) and facts.groups[at].estimable for cost, at in zip(costs, groups, strict=True)]
    if any(fit):
        worst = int(np.nanargmax(np.where(fit, costs, np.nan)))
        row = replace(row, worst_cost=rounded(costs[worst]), worst_group=facts.groups[groups[worst]].key)
    limits = upper[list(groups)]
    if np.isnan(limits).all():
        return _because(row, reasons.FEW_SEEDS if seeds.sum() < FEWEST_SEEDS else reasons.UNMEASURED)
    sure = bool(all(fit) and not np.isnan(limits).any() and (limits <= max_cost).all())
    return replace(row, worst_upper=rounded(np.nanmax(limits)), passes=sure)


def _because(row: CandidateRow, code: str) -> CandidateRow:
    return replace(row, reason=reasons.words(code), reason_code=code)


def _with_pareto(rows: Sequence[CandidateRow], metric: Metric) -> list[CandidateRow]:
    """Marks the points that no other point beats; those without all four numbers are not compared."""
    sign = -1.0 if metric.better == "higher" else 1.0
    whole = [
        None
        if row.overall is None or row.worst_cost is None or row.excess is None
        else (sign * row.overall, row.worst_cost, row.excess, row.epsilon_spent or row.epsilon_asked)
        for row in rows
    ]
    known = [point for point in whole if point is not None]
    return [
        replace(row, pareto=None if point is None else not any(_beats(other, point) for other in known))
        for row, point in zip(rows, whole, strict=True)
    ]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def _strongest(rows: Sequence[CandidateRow], methods: Sequence[str]) -> CandidateRow | None:
    """From the weakest epsilon downward until the first failure, for each method; the strongest of them all."""
    found: list[CandidateRow] = []
    for method in methods:
        own = sorted((row for row in rows if row.method == method), key=lambda row: -row.epsilon_asked)
        passed = None
        for row in own:
            if not row.passes:
                break
            passed = row
        if passed is not None:
            found.append(passed)
    return min(found, key=lambda row: (row.epsilon_spent or row.epsilon_asked, row.worst_upper or 0.0), default=None)


def _answer(
    chosen: CandidateRow | None,
    rows: Sequence[CandidateRow],
    metric: Metric,
    titles: Mapping[str, str],
    group_min: int,
    max_cost: float,
) -> str:
    limit = f"{100 * max_cost:g} points" if metric.unit == "points" else f"{max_cost:g} nats"
    about = f"no group of at least {group_min:,} test rows loses more than {limit} of {metric.title.lower()}"
    why = next((row.reason for row in rows if row.passes is None and row.reason), None)
    if metric.better is None:
        return f"{metric.title} has no better or worse, so there is no cost to limit. Choose another metric."
    if chosen is None and (not rows or all(row.passes is None for row in rows)):
        return f"It cannot be said yet at which epsilon {about}: {why or 'no run has finished'}."
    if chosen is None:
        return (
            f"At no epsilon of this audit is it shown that {about}. Ask for a weaker epsilon, more seeds or more rows."
        )
    epsilon = shown_epsilon(chosen.epsilon_spent or chosen.epsilon_asked)
    return (
        f"Down to epsilon {epsilon}, with {titles.get(chosen.method, chosen.method)}, it is shown that {about}: "
        "every group's upper limit lies within."
    )
