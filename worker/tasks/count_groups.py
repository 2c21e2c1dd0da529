"""Job ``dataset.groups``: splits a table by its recipe, counts its groups and settles how it is encoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert
from sqlalchemy.orm import Session

from backend.database import ask
from backend.progress.queries import record_event
from backend.queue import COUNT_GROUPS
from backend.tables import Dataset, Group, Recipe
from worker.engine.errors import TableProblem
from worker.tasks import claims
from worker.tasks.claims import Claim
from worker.tasks.context import Context
from worker.tasks.job import Job, heartbeat, perform, problem_of
from worker.tasks.patience import patiently

if TYPE_CHECKING:
    from backend.settings import Settings
    from worker.engine.datasets.groups import GroupCount


@dataclass(frozen=True)
class Counted:
    """What was found out about a recipe."""

    groups: list[GroupCount]
    roles: dict[str, Any]
    encoding: dict[str, Any]
    summary: dict[str, Any]


def run(context: Context, recipe_id: str) -> None:
    """Count the groups of one recipe."""
    perform(context, JOB, recipe_id)


def _work(context: Context, held: Claim) -> None:
    with heartbeat(context, held).beating() as beat:
        with context.database.transaction() as session:
            recipe = session.get_one(Recipe, held.id)
            dataset = session.get_one(Dataset, recipe.dataset_id)
        if dataset.file_key is None or recipe.table_key is None:
            raise claims.ClaimLost(held.id)  # erased meanwhile
        stored = context.storage.read(recipe.table_key, dataset.file_key)
        try:
            counted = count(stored, recipe, context.settings)
        except TableProblem as error:
            why = problem_of(error)
            patiently(lambda: _save_refusal(context, held, why))
        else:
            beat.check()
            patiently(lambda: _save(context, held, counted))


def count(stored: bytes, recipe: Recipe, settings: Settings) -> Counted:
    """Split, groups, encoding and summary of a stored table, by the roles of its recipe.

    Raises:
        TableProblem: the table cannot be used with these roles.
    """
    from worker.engine.datasets import encode, groups, split, table
    from worker.engine.datasets.repeats_target import repeats_target
    from worker.engine.datasets.roles import Roles

    rows, roles = table.from_bytes(stored), Roles.from_json(recipe.roles or {})
    parts = split.assign_parts(rows, roles, recipe.dataset_id)
    thresholds = groups.Thresholds(settings.withheld_below, settings.estimable_rows, settings.estimable_per_label)
    found = groups.count_groups(rows, roles, parts, recipe.reading, thresholds)
    encoding = encode.make_encoding(rows, roles, parts, recipe.reading.get("schema"))
    data = encode.encode(rows, roles, parts, encoding, [group.key for group in found])
    summary = encode.summary(data, rows, roles, encoding) | {"notes": repeats_target(rows, roles)}
    return Counted(found, recipe.roles or {}, encoding, summary)


def _save(context: Context, held: Claim, counted: Counted) -> None:
    with context.database.transaction() as session:
        recipe = _hold(session, held)
        if recipe.roles != counted.roles:  # new roles came while these were counted
            claims.release(session, held)
            ask(session, COUNT_GROUPS, recipe.id)
            return
        session.execute(delete(Group).where(Group.recipe_id == recipe.id))
        rows = [_row(recipe, position, group) for position, group in enumerate(counted.groups)]
        session.execute(insert(Group), rows)
        recipe.encoding, recipe.summary = counted.encoding, counted.summary
        recipe.state, recipe.problem = "ready", None
        _tell(session, recipe, {"state": "ready", "groups": len(rows)})
        claims.release(session, held)


def _row(recipe: Recipe, position: int, group: GroupCount) -> dict[str, Any]:
    return {
        "team_id": recipe.team_id,
        "recipe_id": recipe.id,
        "position": position,
        "key": group.key,
        "attributes": dict(group.attributes),
        "train": group.train,
        "validation": group.validation,
        "test": group.test,
        "test_units": group.test_units,
        "label_counts": {part: dict(counts) for part, counts in group.label_counts.items()},
        "base_rate": group.base_rate,
        "estimable": group.estimable,
        "reason": group.reason,
    }


def _save_refusal(context: Context, held: Claim, why: dict[str, Any]) -> None:
    with context.database.transaction() as session:
        _refuse(session, _hold(session, held), why)
        claims.release(session, held)


def _hold(session: Session, held: Claim) -> Recipe:
    claims.hold(session, held)
    recipe = session.get_one(Recipe, held.id, populate_existing=True)
    if recipe.state != "counting":
        raise claims.ClaimLost(held.id)  # new roles, or erased
    return recipe


def _refuse(session: Session, recipe: Recipe, why: dict[str, Any]) -> None:
    recipe.state, recipe.problem = "refused", why
    _tell(session, recipe, {"state": "refused", "problem": why})


def _tell(session: Session, recipe: Recipe, payload: dict[str, Any]) -> None:
    dataset = session.get_one(Dataset, recipe.dataset_id)
    record_event(session, dataset, "dataset.groups", payload | {"recipe": recipe.id, "version": recipe.version})


JOB = Job(
    name=COUNT_GROUPS,
    table=Recipe,
    states=("counting",),
    doing="counting the groups of this dataset",
    work=_work,
    give_up=_refuse,
)
