"""The privacy cost of each group: method x epsilon x group, paired with the baseline of the same seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from worker.engine.facts.intervals import FEWEST_SEEDS, Spread, both_spread, sampling_spread, seed_spread
from worker.engine.metrics.base import Metric, Value
from worker.engine.results import AuditFacts, CostRow, GroupFacts, MeasurementRow, RunFacts, StatisticRow

BASELINE = "non-private"
Interval = Literal["both", "sampling", "seeds"]
INTERVALS: tuple[Interval, ...] = ("both", "sampling", "seeds")
IS_BASELINE = "this is the baseline"
_TEST = "test"
_Point = tuple[str, float | None]
_Rows = dict[str, list[StatisticRow]]


@dataclass(frozen=True)
class _Pair:
    """A metric's value and its baseline's for one seed."""

    seed: int
    value: float
    baseline: float


@dataclass(frozen=True)
class _Series:
    """All runs of one method and epsilon."""

    method: str
    epsilon_asked: float | None
    runs: tuple[RunFacts, ...]

    @property
    def epsilon_spent(self) -> float | None:
        spent = [run.epsilon_spent for run in self.runs if run.epsilon_spent is not None]
        return max(spent) if spent else None


def cost_rows(facts: AuditFacts, metric: Metric, interval: Interval = "both") -> list[CostRow]:
    """One row for each method, epsilon and group, the baseline first, then in the order of the runs.

    ``value`` and ``baseline`` are means over the seeds whose run and baseline both finished. A diverged run is left out
    and counted in ``reason``. Below ``withheld_below`` test rows no number is given; below ``estimable_rows``, or with
    fewer than ``estimable_per_label`` rows of the label the metric needs, the numbers stand with a reason, "not
    enough to judge". The ``interval`` field names what the interval really holds, which is "sampling" where both
    was asked for and there are under 3 seeds.
    """
    tables = {run.run: _by_group(run.statistics) for run in facts.runs if run.state == "finished"}
    baselines = {run.seed: tables[run.run] for run in facts.runs if run.method == BASELINE and run.run in tables}
    diverged = {run.seed for run in facts.runs if run.method == BASELINE and run.state == "diverged"}
    measured = {(m.method, m.epsilon, m.group, m.label, m.quantity): m for m in facts.measurements if m.part == _TEST}
    rows = []
    for series in _series(facts.runs):
        for group in facts.groups:
            row = _row(series, group, metric, interval, tables, baselines, diverged)
            measurement = measured.get((series.method, series.epsilon_asked, group.key, metric.label, metric.quantity))
            rows.append(_finish(row, facts, group, metric, measurement))
    return rows


@dataclass(frozen=True)
class _Draft:
    row: CostRow
    pairs: tuple[_Pair, ...]
    undefined: Value | None
    rows_used: int
    left_out: str | None


def _by_group(statistics: Iterable[StatisticRow]) -> _Rows:
    found: _Rows = {}
    for row in statistics:
        if row.part == _TEST:
            found.setdefault(row.group, []).append(row)
    return found


def _series(runs: Sequence[RunFacts]) -> list[_Series]:
    points: dict[_Point, list[RunFacts]] = {}
    for run in runs:
        points.setdefault((run.method, run.epsilon_asked), []).append(run)
    ordered = sorted(points, key=lambda point: point[0] != BASELINE)
    return [_Series(method, epsilon, tuple(points[method, epsilon])) for method, epsilon in ordered]


def _row(
    series: _Series,
    group: GroupFacts,
    metric: Metric,
    interval: Interval,
    tables: dict[str, _Rows],
    baselines: dict[int, _Rows],
    diverged: set[int],
) -> _Draft:
    pairs, undefined, used = [], None, 0
    for run in sorted(series.runs, key=lambda run: run.seed):
        if run.run not in tables or run.seed not in baselines:
            continue
        value = metric.value(tables[run.run].get(group.key, ()))
        baseline = metric.value(baselines[run.seed].get(group.key, ()))
        used = value.rows
        if value.value is None or baseline.value is None:
            undefined = value if value.value is None else baseline
        else:
            pairs.append(_Pair(run.seed, value.value, baseline.value))
    row = CostRow(
        method=series.method,
        epsilon_asked=series.epsilon_asked,
        epsilon_spent=series.epsilon_spent,
        group=group.key,
        group_label=group.label,
        n=group.n,
        value=None,
        baseline=None,
        cost=None,
        low=None,
        high=None,
        interval=interval,
        seeds=len(pairs),
    )
    missing = {run.seed for run in series.runs if run.run in tables} - baselines.keys()
    return _Draft(row, tuple(pairs), undefined, used, _left_out(series, missing & diverged))


def _left_out(series: _Series, unpaired: set[int]) -> str | None:
    """Runs without a number: they diverged themselves, or the baseline of their seed did."""
    diverged, count = sum(run.state == "diverged" for run in series.runs), len(series.runs)
    own = f"{diverged} of {count} runs diverged and are left out" if diverged else None
    other = f"the baseline diverged for {len(unpaired)} of {count} runs, which are left out" if unpaired else None
    return _join(own, other)


def _finish(
    draft: _Draft, facts: AuditFacts, group: GroupFacts, metric: Metric, measured: MeasurementRow | None
) -> CostRow:
    """The row with its numbers, or without them and the reason."""
    if group.n < facts.withheld_below:
        return replace(draft.row, reason=f"withheld: fewer than {facts.withheld_below} test rows")
    if draft.undefined is not None:
        return replace(draft.row, reason=_join(draft.undefined.reason, draft.left_out))
    if not draft.pairs:
        return replace(draft.row, reason=draft.left_out or "no run with a finished baseline yet")
    row = replace(draft.row, value=_mean(p.value for p in draft.pairs), baseline=_mean(p.baseline for p in draft.pairs))
    caution = _caution(facts, group, metric, draft.rows_used)
    if row.method == BASELINE:
        return replace(row, reason=_join(IS_BASELINE, caution, draft.left_out))
    costs = [metric.cost(pair.baseline, pair.value) for pair in draft.pairs]
    kind, spread, why = _spread(row.interval, costs, draft.pairs, measured)
    row = replace(row, cost=_mean(costs), interval=kind, reason=_join(caution, draft.left_out, why))
    if spread is None:
        return row
    cost, half = _mean(costs), spread.half_width()
    return replace(row, low=round(cost - half, 12), high=round(cost + half, 12))


def _mean(values: Iterable[float]) -> float:
    """Rounded to twelve decimals, so that a difference of equal rates is 0 and not the dust of its division."""
    listed = list(values)
    return round(math.fsum(listed) / len(listed), 12)


def _join(*reasons: str | None) -> str | None:
    return "; ".join(reason for reason in reasons if reason) or None


def _caution(facts: AuditFacts, group: GroupFacts, metric: Metric, rows_used: int) -> str | None:
    if group.n < facts.estimable_rows:
        return f"n = {group.n}: not enough to judge"
    if not group.estimable:
        return group.reason or "not enough to judge"
    if metric.label is not None and rows_used < facts.estimable_per_label:
        return f"{rows_used} test rows with this label: not enough to judge"
    return None


def _spread(
    interval: str, costs: Sequence[float], pairs: Sequence[_Pair], measured: MeasurementRow | None
) -> tuple[str, Spread | None, str | None]:
    """What the interval holds, its spread or None, and what has to be said about it."""
    few = f"under {FEWEST_SEEDS} seeds: nothing is said about training luck" if len(costs) < FEWEST_SEEDS else None
    if interval == "seeds":
        return (interval, None, few) if few else (interval, seed_spread(costs), None)
    if measured is None or measured.seeds != tuple(pair.seed for pair in pairs):
        return interval, None, _join(few, "the rows are still being measured")
    if interval == "sampling" or few:
        spread = sampling_spread(measured)
        return "sampling", spread, _join(few if interval == "both" else None, measured.reason)
    spread = both_spread(measured, [pair.baseline - pair.value for pair in pairs])
    return interval, spread, measured.reason
