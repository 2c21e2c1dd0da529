"""Tables of results: the one place where their rows are made, for REST, charts and CSV alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from sqlalchemy import Row
from sqlalchemy.orm import Session

from backend.audits import arrays, queries
from backend.settings import Settings
from backend.tables import Audit, GapFloor, Group, Recipe, Run
from worker.engine.datasets.groups import group_label
from worker.engine.facts.costs import Interval, cost_rows
from worker.engine.facts.headline import headline
from worker.engine.facts.marks import marked
from worker.engine.facts.rows import CandidateRow, DisparityRow, GapRow, MarkRow
from worker.engine.metrics.base import Metric
from worker.engine.results import (
    LEVEL,
    PRIMARY,
    REST,
    AuditFacts,
    CostRow,
    Counts,
    FloorRow,
    GroupFacts,
    RunFacts,
)

COST_COLUMNS, GAP_COLUMNS, MARK_COLUMNS, DISPARITY_COLUMNS, CANDIDATE_COLUMNS = (
    [field.name for field in fields(kind)] for kind in (CostRow, GapRow, MarkRow, DisparityRow, CandidateRow)
)
MEASUREMENT_COLUMNS = [
    *("method", "epsilon_asked", "group", "label", "part", "quantity", "seeds", "units", "rows"),
    *("total", "total_squared", "cross", "rows_squared", "total_each_squared", "tag", "reason"),
]
VALUE_COLUMNS = ["run", "method", "seed", "epsilon_asked", "group", "part", "metric", "value", "rows", "tag", "reason"]
RUN_COLUMNS = [
    "id",
    "stack",
    "method",
    "seed",
    "epsilon_asked",
    "epsilon_spent",
    "noise_multiplier",
    "state",
    "reason",
    "parameters",
    "accountant_check",
    "events",
]
NUMBER_COLUMNS = [
    "n",
    "predicted",
    "loss",
    "loss_squared",
    "squared_error",
    "score",
    "both_right",
    "baseline_only_right",
    "run_only_right",
    "both_wrong",
    "loss_difference",
    "loss_difference_squared",
]
STATISTIC_COLUMNS = [
    "run",
    "method",
    "seed",
    "epsilon_asked",
    "group",
    "part",
    "label",
    *NUMBER_COLUMNS,
    "tag",
    "reason",
]


def facts(session: Session, settings: Settings, audit: Audit, recipe: Recipe, metrics: Sequence[str]) -> AuditFacts:
    """All that the numbers of an audit are made from; measurements of these metrics alone, and what marks rest on."""
    stored = queries.groups_of(session, recipe.id)
    runs = queries.runs_of(session, audit.id)
    quantities = {PRIMARY, REST + PRIMARY, *metrics, *(LEVEL + metric for metric in metrics)}
    return AuditFacts(
        groups=tuple(_group(group, recipe.reading) for group in stored),
        runs=tuple(_run(run) for run in runs),
        sums=arrays.sums_of_audit(
            session, audit.id, sorted(quantities), {g.position: at for at, g in enumerate(stored)}
        ),
        counts=_counts(session, audit, recipe, runs, stored),
        values=_values(session, audit, runs, stored, metrics),
        floors=tuple(_floor(row) for row in queries.floors_of(session, audit.id, metrics)),
        seeds_planned=int(audit.question["seeds"]),
        withheld_below=settings.withheld_below,
        estimable_rows=settings.estimable_rows,
        estimable_per_label=settings.estimable_per_label,
    )


def _counts(
    session: Session, audit: Audit, recipe: Recipe, runs: Sequence[Run], groups: Sequence[Group]
) -> Counts | None:
    numbers = queries.stack_numbers(session, audit.id)
    at_run = {(numbers[run.stack_id], run.position): at for at, run in enumerate(runs)}
    at_group = {group.position: at for at, group in enumerate(groups)}
    return arrays.counts_of_test(session, audit.id, at_run, at_group, int((recipe.summary or {}).get("classes", 2)))


def _values(
    session: Session, audit: Audit, runs: Sequence[Run], groups: Sequence[Group], metrics: Sequence[str]
) -> dict[str, Any]:
    at_run = {run.id: at for at, run in enumerate(runs)}
    at_group = {group.id: at for at, group in enumerate(groups)}
    found = {metric: np.full((len(runs), len(groups)), np.nan) for metric in metrics}
    for row in queries.run_values_of(session, audit.id, metrics):
        if row.value is not None and row.group_id in at_group:
            found[row.metric][at_run[row.run_id], at_group[row.group_id]] = row.value
    return found


def group_facts(session: Session, recipe: Recipe) -> tuple[GroupFacts, ...]:
    """The groups of a recipe, everyone first, called as the recipe says."""
    return tuple(_group(group, recipe.reading) for group in queries.groups_of(session, recipe.id))


def _group(row: Group, reading: Mapping[str, Any]) -> GroupFacts:
    label = group_label(row.attributes, reading)
    return GroupFacts(row.key, label, row.attributes, row.test, row.estimable, row.reason, row.test_units)


def _run(row: Run) -> RunFacts:
    return RunFacts(row.id, row.method, row.seed, row.epsilon_asked, row.epsilon_spent, row.state)


def _floor(row: GapFloor) -> FloorRow:
    numbers = (row.gap, row.gap_upper, row.excess, row.excess_upper)
    return FloorRow(row.method, row.epsilon_asked, row.metric, row.by, *numbers, row.draws, row.reason)


def row_of(row: Any) -> dict[str, Any]:
    """A frozen row of the engine as a dictionary; quicker than ``asdict``, which copies every value."""
    return dict(vars(row))


def cost_table(found: AuditFacts, metric: Metric, interval: Interval, titles: Mapping[str, str]) -> dict[str, Any]:
    """The rows of ``/costs`` with the sentence made from them."""
    rows = cost_rows(found, metric, interval, marked(found))
    return {
        "rows": [row_of(row) for row in rows],
        "headline": headline(rows, metric, titles, seeds_planned=found.seeds_planned),
        "metric": metric.key,
        "interval": interval,
    }


def measurement_rows(session: Session, settings: Settings, audit: Audit) -> list[dict[str, Any]]:
    """The rows of ``/measurements``; sums about too few rows are withheld, with the reason."""
    groups = {group.id: group for group in queries.groups_of(session, audit.recipe_id)}
    rows = queries.measurements_of(session, audit.id)
    return [
        _measurement_row(row, groups[row.group_id], settings.withheld_below) for row in rows if row.group_id in groups
    ]


def _measurement_row(row: Row[Any], group: Group, withheld_below: int) -> dict[str, Any]:
    named = {name: getattr(row, name) for name in MEASUREMENT_COLUMNS if name not in ("group", "tag")}
    named |= {"group": group.key, "tag": "audit-only", "seeds": list(row.seeds)}
    if group.test < withheld_below:
        sums = ("total", "total_squared", "cross", "rows_squared", "total_each_squared")
        named |= dict.fromkeys(sums) | {"reason": f"withheld: fewer than {withheld_below} test rows"}
    return named


def value_rows(session: Session, settings: Settings, audit: Audit) -> list[dict[str, Any]]:
    """The rows of ``/values``: metrics of single runs that counts cannot give; withheld as everywhere."""
    groups = {group.id: group for group in queries.groups_of(session, audit.recipe_id)}
    runs = {run.id: run for run in queries.runs_of(session, audit.id)}
    found = []
    for row in queries.all_values_of(session, audit.id):
        run, group = runs[row.run_id], groups.get(row.group_id)
        if group is None:
            continue
        withheld = group.test < settings.withheld_below
        named = {"run": run.id, "method": run.method, "seed": run.seed, "epsilon_asked": run.epsilon_asked}
        named |= {"group": group.key, "part": row.part, "metric": row.metric, "rows": row.rows, "tag": "audit-only"}
        named["value"] = None if withheld else row.value
        named["reason"] = f"withheld: fewer than {settings.withheld_below} test rows" if withheld else row.reason
        found.append(named)
    return found


def run_rows(session: Session, audit: Audit) -> list[dict[str, Any]]:
    """The rows of ``/runs``."""
    same = [name for name in RUN_COLUMNS if name != "stack"]
    return [
        {"stack": run.stack_id} | {name: getattr(run, name) for name in same}
        for run in queries.runs_of(session, audit.id)
    ]


def statistic_rows(session: Session, settings: Settings, audit: Audit) -> list[dict[str, Any]]:
    """The rows of ``/statistics``; numbers about too few rows of a part are withheld, with the reason."""
    groups = {group.id: group for group in queries.groups_of(session, audit.recipe_id)}
    runs = {run.id: run for run in queries.runs_of(session, audit.id)}
    return [
        _statistic_row(row, runs[row.run_id], groups[row.group_id], settings.withheld_below)
        for row in queries.statistics_of(session, audit.id)
    ]


def _statistic_row(row: Row[Any], run: Run, group: Group, withheld_below: int) -> dict[str, Any]:
    withheld = getattr(group, row.part) < withheld_below
    return {
        "run": run.id,
        "method": run.method,
        "seed": run.seed,
        "epsilon_asked": run.epsilon_asked,
        "group": group.key,
        "part": row.part,
        "label": row.label,
        **{name: None if withheld else getattr(row, name) for name in NUMBER_COLUMNS},
        "tag": "audit-only",
        "reason": f"withheld: fewer than {withheld_below} {row.part} rows" if withheld else None,
    }
