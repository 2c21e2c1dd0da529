"""The privacy cost of each group: method x epsilon x group, paired with the baseline of the same seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from worker.engine.facts.grid import BASELINE as BASELINE
from worker.engine.facts.grid import Grid, SumTable, make_grid, sums_of
from worker.engine.facts.intervals import FEWEST_SEEDS, both_spread, sampling_spread, seed_spread, student_quantile
from worker.engine.metrics import reasons
from worker.engine.metrics.base import Metric
from worker.engine.results import AuditFacts, CostRow, GroupFacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

Interval = Literal["both", "sampling", "seeds"]
INTERVALS: tuple[Interval, ...] = ("both", "sampling", "seeds")
IS_BASELINE = reasons.WORDS[reasons.IS_BASELINE]
FEWEST_PERSONS = 20
Said = tuple[str, str]
"""A reason: its code and its sentence."""


def cost_rows(
    facts: AuditFacts,
    metric: Metric,
    interval: Interval = "both",
    marked: Mapping[tuple[str, float | None, str], bool | None] | None = None,
    survives: Mapping[tuple[str, float | None, str], str] | None = None,
) -> list[CostRow]:
    """One row for each method, epsilon and group, the baseline first, then in the order of the runs.

    ``value`` and ``baseline`` are means over the seeds whose run and baseline both finished. A diverged run is left out
    and counted in ``reason``. Below ``withheld_below`` test rows no number is given; below ``estimable_rows``, or with
    fewer than ``estimable_per_label`` rows of the label the metric needs, the numbers stand with a reason, "not
    enough to judge". The ``interval`` field names what the interval really holds, which is "sampling" where both
    was asked for and there are under 3 seeds.

    Args:
        marked: by method, epsilon asked and group, from ``engine.facts.marks``.
        survives: the same, from ``engine.facts.tuning``.
    """
    grid = make_grid(facts, metric)
    sums = sums_of(facts, grid.points, metric.key)
    spent = spent_of(facts)
    cautions = [
        _caution(facts, group, metric, int(used)) for group, used in zip(facts.groups, grid.rows_used, strict=True)
    ]
    marks, kept = marked or {}, survives or {}
    rows = []
    for point, (method, epsilon) in enumerate(grid.points):
        numbers = _numbers(facts, grid, sums, point, interval)
        for at, group in enumerate(facts.groups):
            key = (method, epsilon, group.key)
            found, said = _filled(facts, grid, numbers, point, at, cautions[at])
            rows.append(
                CostRow(
                    method=method,
                    epsilon_asked=epsilon,
                    epsilon_spent=spent[method, epsilon],
                    group=group.key,
                    group_label=group.label,
                    n=group.n,
                    **_NOTHING | {"interval": interval, "seeds": numbers.seeds} | found,
                    marked=marks.get(key),
                    survives_tuning=kept.get(key),
                    reason="; ".join(sentence for _, sentence in said) or None,
                    reason_code=said[0][0] if said else None,
                )
            )
    return rows


_NOTHING: dict[str, Any] = dict.fromkeys(("value", "baseline", "cost", "low", "high"))


@dataclass(frozen=True)
class _Numbers:
    """The numbers of one point; arrays of shape (groups,), NaN where undefined."""

    seeds: int
    value: NDArray[np.float64]
    baseline: NDArray[np.float64]
    cost: NDArray[np.float64]
    half: NDArray[np.float64]
    fresh: NDArray[np.float64]
    interval: str
    why: Said | None
    measured: bool
    units: NDArray[np.float64]
    rows: NDArray[np.float64]
    left_out: tuple[Said, ...]


def spent_of(facts: AuditFacts) -> dict[tuple[str, float | None], float | None]:
    """Epsilon spent at each method and epsilon: the largest of its runs."""
    spent: dict[tuple[str, float | None], float | None] = {}
    for run in facts.runs:
        key = (run.method, run.epsilon_asked)
        known = [value for value in (spent.get(key), run.epsilon_spent) if value is not None]
        spent[key] = max(known) if known else None
    return spent


def _numbers(facts: AuditFacts, grid: Grid, sums: SumTable, point: int, interval: Interval) -> _Numbers:
    chosen = grid.paired[point]
    value, baseline = grid.value[point][chosen], grid.baseline[point][chosen]
    seeds, groups = int(chosen.sum()), grid.value.shape[2]
    nothing = np.full(groups, np.nan)
    kind, why, half, fresh = interval, None, nothing, nothing
    measured = sums.seeds[point] == grid.seeds_of(point)
    if seeds:
        kind, why, half = _half(grid, sums, point, interval, measured)
        fresh = _fresh(value)
    cost = grid.metric.sign * (baseline - value)
    return _Numbers(
        seeds=seeds,
        value=value.mean(0) if seeds else nothing,
        baseline=baseline.mean(0) if seeds else nothing,
        cost=cost.mean(0) if seeds else nothing,
        half=half,
        fresh=fresh,
        interval=kind,
        why=why,
        measured=measured,
        units=sums.units[point],
        rows=sums.rows[point],
        left_out=_left_out(facts, grid, point),
    )


def _half(
    grid: Grid, sums: SumTable, point: int, interval: Interval, measured: bool
) -> tuple[Interval, Said | None, NDArray[np.float64]]:
    """What the interval holds, what has to be said about it, and half its width."""
    differences = grid.difference[point][grid.paired[point]]
    nothing = np.full(differences.shape[1], np.nan)
    few = _say(reasons.FEW_SEEDS) if len(differences) < FEWEST_SEEDS else None
    if interval == "seeds":
        return interval, few, nothing if few else seed_spread(differences).half_width()
    if not measured:
        return interval, few, nothing
    own = sums.at(point)
    if interval == "sampling" or few:
        spread = sampling_spread(own, least=grid.least)
        return "sampling", few if interval == "both" else None, spread.half_width()
    return interval, None, both_spread(own, differences, least=grid.least).half_width()


def _fresh(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half of the prediction interval of one more run: t SD sqrt(1 + 1/S), of the metric itself, unpaired."""
    seeds = len(value)
    if seeds < FEWEST_SEEDS:
        return np.full(value.shape[1], np.nan)
    factor = float(student_quantile(0.975, seeds - 1)) * math.sqrt(1 + 1 / seeds)
    return np.asarray(factor * value.std(0, ddof=1), dtype=np.float64)


def _filled(
    facts: AuditFacts, grid: Grid, numbers: _Numbers, point: int, at: int, caution: Said | None
) -> tuple[dict[str, Any], list[Said]]:
    """The numbers of one row as far as there are any, and the reasons for those that are missing or not to be judged."""
    if facts.groups[at].n < facts.withheld_below:
        return {}, [(reasons.WITHHELD, f"withheld: fewer than {facts.withheld_below} test rows")]
    if not numbers.seeds:
        return {}, list(numbers.left_out) or [_say(reasons.UNFINISHED)]
    value, baseline = float(numbers.value[at]), float(numbers.baseline[at])
    if math.isnan(value) or math.isnan(baseline):
        return {"seeds": 0}, [_why_undefined(grid, point, at), *numbers.left_out]
    found: dict[str, Any] = {"value": rounded(value), "baseline": rounded(baseline)}
    if not math.isnan(numbers.fresh[at]):
        half = float(numbers.fresh[at])
        found |= {"fresh_low": rounded(value - half, 10), "fresh_high": rounded(value + half, 10)}
    if grid.points[point][0] == BASELINE:
        return found, [said for said in (_say(reasons.IS_BASELINE), caution, *numbers.left_out) if said]
    cost, half = rounded(numbers.cost[at]), float(numbers.half[at])
    found |= {"cost": cost, "interval": numbers.interval}
    if not math.isnan(half):
        found |= {"low": rounded(cost - half, 10), "high": rounded(cost + half, 10)}
    waits = None if numbers.measured or numbers.interval == "seeds" else _say(reasons.UNMEASURED)
    said = (caution or _few_persons(numbers, at), *numbers.left_out, numbers.why, waits)
    return found, [reason for reason in said if reason]


def _few_persons(numbers: _Numbers, at: int) -> Said | None:
    """Where several rows belong to one person, persons count, also of the label that a metric needs."""
    units, rows = float(numbers.units[at]), float(numbers.rows[at])
    if math.isnan(units) or units >= FEWEST_PERSONS or units >= rows:
        return None
    return reasons.FEW_PERSONS, f"{units:.0f} persons: not enough to judge"


def _why_undefined(grid: Grid, point: int, at: int) -> Said:
    """The reason, and how many seeds it holds for where it does not hold for all."""
    counts, metric = grid.counts, grid.metric
    both = (grid.value[point], grid.runs[point]), (grid.baseline[point], grid.runs[0])
    for values, runs in both:
        missing = np.isnan(values[:, at]) & grid.paired[point]
        if counts is not None and missing.any():
            code = metric.code(counts, int(runs[missing][0]), at)
            if metric.counted is None and code == reasons.NOBODY_PREDICTED:
                return _say(reasons.UNMEASURED)
            some = f", in {missing.sum()} of {grid.paired[point].sum()} seeds"
            return code, reasons.words(code) + (some if missing.sum() < grid.paired[point].sum() else "")
    return _say(reasons.UNMEASURED)


def _left_out(facts: AuditFacts, grid: Grid, point: int) -> tuple[Said, ...]:
    """Runs without a number: they diverged themselves, or the baseline of their seed did."""
    runs = [facts.runs[at] for at in grid.runs[point] if at >= 0]
    lost = {facts.runs[at].seed for at in grid.runs[0] if at >= 0 and facts.runs[at].state == "diverged"}
    lost = lost if grid.points[0][0] == BASELINE else set()
    diverged = sum(run.state == "diverged" for run in runs)
    unpaired = sum(run.state == "finished" and run.seed in lost for run in runs)
    said = []
    if diverged:
        said.append((reasons.DIVERGED, f"{diverged} of {len(runs)} runs diverged and are left out"))
    if unpaired:
        text = f"the baseline diverged for {unpaired} of {len(runs)} runs, which are left out"
        said.append((reasons.DIVERGED, text))
    return tuple(said)


def _caution(facts: AuditFacts, group: GroupFacts, metric: Metric, rows_used: int) -> Said | None:
    if group.n < facts.estimable_rows:
        return reasons.FEW_ROWS, f"n = {group.n}: not enough to judge"
    if not group.estimable:
        persons = "person" in (group.reason or "")
        return reasons.FEW_PERSONS if persons else reasons.FEW_ROWS, group.reason or "not enough to judge"
    if metric.needs_label and 0 < rows_used < facts.estimable_per_label:
        kind = "this label" if metric.label is not None else "its rarest label"
        return reasons.FEW_LABELS, f"{rows_used} test rows with {kind}: not enough to judge"
    return None


def _say(code: str) -> Said:
    return code, reasons.words(code)


def rounded(value: float, decimals: int = 12) -> float:
    """Twelve decimals, so that a difference of equal rates is 0 and not the dust of its division; never minus zero.

    Ends of intervals have ten: what Student's t is computed by differs in the fifteenth.
    """
    return round(float(value), decimals) + 0.0
