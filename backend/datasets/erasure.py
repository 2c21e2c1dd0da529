"""What "erased" means: the key is destroyed with the transaction, the files right after it.

What stays: a receipt, counts of groups that are large enough, and the suppressed aggregates of audits. Everything
copied from the table (profile, labels, bounds) is wiped; audits that still run are stopped.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, case, delete, event, func, or_, select, update
from sqlalchemy.orm import Session

from backend.datasets import queries
from backend.progress.queries import record_event
from backend.storage import Storage
from backend.tables import Audit, Dataset, Group, Measurement, Recipe, Run, RunValue, Stack, Statistic
from worker.engine.results import EVERYONE

REASON = "The dataset was erased."
OPEN_AUDIT = ("planning", "queued", "running")


def erase(session: Session, storage: Storage, row: Dataset, erased_by: str, withheld_below: int) -> dict[str, Any]:
    """Erases a locked dataset and returns the receipt; files go once the transaction has committed."""
    audits = session.scalars(select(Audit).where(Audit.dataset_id == row.id).order_by(Audit.id).with_for_update()).all()
    recipes = queries.recipes_of(session, row.id)
    keys = _files(session, row, recipes, [audit.id for audit in audits])
    for audit in audits:
        _end(session, audit)
    statistics, groups = _suppress(session, [recipe.id for recipe in recipes], withheld_below)
    for recipe in recipes:
        _wipe(recipe)
    now = datetime.now(UTC)
    row.receipt = {
        "erased_at": now.isoformat(),
        "erased_by": erased_by,
        "dataset": row.id,
        "sha256": row.sha256,
        "key_destroyed": True,
        "files_deleted": len(keys),
        "groups_removed": groups,
        "statistics_removed": statistics,
        "audits": len(audits),
    }
    row.state, row.erased_at, row.file_key, row.asked_recipe, row.problem = "erased", now, None, None, None
    row.storage_key = row.test_storage_key = row.lease_until = row.worker = None
    record_event(session, row, "dataset.erased", {})
    event.listen(session, "after_commit", lambda _: [storage.delete(key) for key in keys], once=True)
    return row.receipt


def _files(session: Session, row: Dataset, recipes: Any, audit_ids: list[str]) -> set[str]:
    logits = session.scalars(select(Stack.logits_key).where(Stack.audit_id.in_(audit_ids))).all()
    named = [row.storage_key, row.test_storage_key, *(recipe.table_key for recipe in recipes), *logits]
    session.execute(update(Stack).where(Stack.audit_id.in_(audit_ids)).values(logits_key=None))
    return {key for key in named if key}


def _end(session: Session, audit: Audit) -> None:
    """Stops an audit whose source is gone; whoever trains it finds the row taken away."""
    if audit.state not in OPEN_AUDIT:
        return
    unfinished = (Stack.audit_id == audit.id) & Stack.state.in_(("waiting", "training"))
    taken = {"state": "stopped", "reason": REASON, "lease_until": None, "worker": None}
    session.execute(update(Stack).where(unfinished).values(attempt=Stack.attempt + 1, **taken))
    open_runs = (Run.audit_id == audit.id) & Run.state.in_(("waiting", "training"))
    session.execute(update(Run).where(open_runs).values(state="stopped", reason=REASON))
    audit.state, audit.stop_requested, audit.finished_at = "stopped", True, datetime.now(UTC)
    audit.lease_until = audit.worker = None
    audit.problem = {"happened": REASON, "where": "All stacks that had not finished.", "next": "Nothing is left to do."}
    record_event(session, audit, "audit.stopped", {"problem": audit.problem})


def _is_small(withheld_below: int) -> ColumnElement[bool]:
    """Whether a group must go; everyone goes only where the whole table is as small."""
    rows, least = Group.train + Group.validation + Group.test, func.least(Group.train, Group.validation, Group.test)
    smallest: ColumnElement[int] = case((Group.key == EVERYONE, rows), else_=least)
    return smallest < withheld_below


def _suppress(session: Session, recipe_ids: list[str], withheld_below: int) -> tuple[int, int]:
    """Removes every number about fewer than ``withheld_below`` rows, and groups with a part as small; returns how many
    statistics and groups."""
    is_small = _is_small(withheld_below)
    of_dataset = select(Group.id).where(Group.recipe_id.in_(recipe_ids))
    small = of_dataset.where(is_small)
    removed = session.execute(
        delete(Statistic)
        .where(
            or_(
                Statistic.group_id.in_(small),
                Statistic.group_id.in_(of_dataset) & (Statistic.n < withheld_below),
            )
        )
        .returning(Statistic.id)
        .execution_options(synchronize_session=False)
    ).all()
    session.execute(
        delete(Measurement)
        .where(Measurement.group_id.in_(of_dataset))
        .where(or_(Measurement.group_id.in_(small), Measurement.rows < withheld_below))
        .execution_options(synchronize_session=False)
    )
    session.execute(
        delete(RunValue)
        .where(RunValue.group_id.in_(of_dataset))
        .where(or_(RunValue.group_id.in_(small), RunValue.rows < withheld_below))
        .execution_options(synchronize_session=False)
    )
    groups = session.execute(
        delete(Group)
        .where(Group.recipe_id.in_(recipe_ids), is_small)
        .returning(Group.id)
        .execution_options(synchronize_session=False)
    ).all()
    return len(removed), len(groups)


def _wipe(recipe: Recipe) -> None:
    recipe.profile, recipe.reading, recipe.encoding, recipe.table_key = {}, {}, None, None
    recipe.summary = recipe.summary and {
        key: recipe.summary[key] for key in recipe.summary if key not in ("notes", "bounds")
    }
    recipe.lease_until = recipe.worker = None
    if recipe.state == "counting":
        recipe.state, recipe.problem = "refused", None
