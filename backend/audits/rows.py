"""Tables of results: the one place where their rows are made, for REST, charts and CSV alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Row
from sqlalchemy.orm import Session

from backend.audits import queries
from backend.settings import Settings
from backend.tables import Audit, Group, Measurement, Recipe, Run
from worker.engine.datasets.groups import group_label
from worker.engine.facts.costs import Interval, cost_rows
from worker.engine.facts.headline import headline
from worker.engine.metrics.base import Metric
from worker.engine.results import AuditFacts, CostRow, GroupFacts, MeasurementRow, RunFacts, StatisticRow

COST_COLUMNS = [field.name for field in fields(CostRow)]
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


def facts(session: Session, settings: Settings, audit: Audit, recipe: Recipe) -> AuditFacts:
    """All that the numbers of an audit are made from."""
    keys = {group.id: group.key for group in queries.groups_of(session, recipe.id)}
    by_run: dict[str, list[StatisticRow]] = {}
    for row in queries.statistics_of(session, audit.id, "test"):
        if row.group_id in keys:
            by_run.setdefault(row.run_id, []).append(_statistic(row, keys[row.group_id]))
    return AuditFacts(
        groups=group_facts(session, recipe),
        runs=tuple(_run(run, by_run.get(run.id, ())) for run in queries.runs_of(session, audit.id)),
        measurements=tuple(
            _measurement(row, keys[row.group_id])
            for row in queries.measurements_of(session, audit.id)
            if row.group_id in keys
        ),
        seeds_planned=int(audit.question["seeds"]),
        withheld_below=settings.withheld_below,
        estimable_rows=settings.estimable_rows,
        estimable_per_label=settings.estimable_per_label,
    )


def group_facts(session: Session, recipe: Recipe) -> tuple[GroupFacts, ...]:
    """The groups of a recipe, everyone first, called as the recipe says."""
    return tuple(_group(group, recipe.reading) for group in queries.groups_of(session, recipe.id))


def _group(row: Group, reading: Mapping[str, Any]) -> GroupFacts:
    label = group_label(row.attributes, reading)
    return GroupFacts(row.key, label, row.attributes, row.test, row.estimable, row.reason)


def _run(row: Run, statistics: Sequence[StatisticRow]) -> RunFacts:
    return RunFacts(row.id, row.method, row.seed, row.epsilon_asked, row.epsilon_spent, row.state, tuple(statistics))


def _statistic(row: Row[Any], group: str) -> StatisticRow:
    numbers = {name: getattr(row, name) for name in NUMBER_COLUMNS}
    return StatisticRow(group=group, label=row.label, part=row.part, **numbers | {"predicted": tuple(row.predicted)})


def _measurement(row: Measurement, group: str) -> MeasurementRow:
    named = ("method", "label", "part", "quantity", "units", "rows", "total", "total_squared", "cross")
    same = {name: getattr(row, name) for name in (*named, "rows_squared", "total_each_squared", "reason")}
    return MeasurementRow(epsilon=row.epsilon_asked, group=group, seeds=tuple(row.seeds), **same)


def cost_table(found: AuditFacts, metric: Metric, interval: Interval, titles: Mapping[str, str]) -> dict[str, Any]:
    """The rows of ``/costs`` with the sentence made from them."""
    rows = cost_rows(found, metric, interval)
    return {
        "rows": [asdict(row) for row in rows],
        "headline": headline(rows, metric, titles, seeds_planned=found.seeds_planned),
        "metric": metric.key,
        "interval": interval,
    }


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
