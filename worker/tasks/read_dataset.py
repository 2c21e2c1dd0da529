"""Job ``dataset.read``: reads an upload in a child process, stores it as a table and says what is in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.database import ask
from backend.progress.queries import record_event
from backend.queue import COUNT_GROUPS, READ_DATASET
from backend.tables import Dataset, Recipe
from worker.engine.datasets.roles import check_roles
from worker.engine.errors import TableProblem
from worker.tasks import claims
from worker.tasks.claims import Claim, Heartbeat
from worker.tasks.context import Context
from worker.tasks.job import Job, heartbeat, perform, problem_of
from worker.tasks.patience import patiently
from worker.tasks.temporary import private_folder


@dataclass(frozen=True)
class Found:
    """What is in a table that was read and stored."""

    reading: dict[str, Any]
    profile: dict[str, Any]


def run(context: Context, dataset_id: str) -> None:
    """Read one upload."""
    perform(context, JOB, dataset_id)


def _work(context: Context, held: Claim) -> None:
    with heartbeat(context, held).beating() as beat:
        with context.database.transaction() as session:
            dataset = session.get_one(Dataset, held.id)
            version = 1 + (session.scalar(select(func.max(Recipe.version)).filter_by(dataset_id=held.id)) or 0)
        key = f"datasets/{dataset.id}/table-{version}-{held.attempt}"
        for earlier in range(1, held.attempt):  # of attempts that died between writing and saving
            context.storage.delete(f"datasets/{dataset.id}/table-{version}-{earlier}")
        try:
            found = _read(context, dataset, key, beat)
        except TableProblem as error:
            why = problem_of(error)
            patiently(lambda: _save_refusal(context, held, why))
            return
        patiently(lambda: _save(context, held, dataset, version, key, found))


def _read(context: Context, dataset: Dataset, key: str, beat: Heartbeat) -> Found:
    """Decrypt into a private folder, read there in a child with limits, store the table, and leave nothing behind."""
    from worker.engine.datasets.formats.base import ReadLimits
    from worker.reader import read_in_child

    settings = context.settings
    limits = ReadLimits(
        rows=settings.table_limit_rows,
        columns=settings.table_limit_columns,
        memory_bytes=settings.reader_memory_bytes,
        seconds=settings.reader_seconds,
        unpacked_bytes=settings.reader_unpacked_bytes,
        unpack_ratio=settings.reader_unpack_ratio,
        output_bytes=settings.reader_output_bytes,
    )
    with private_folder(settings.temporary_folder) as folder:
        path = folder / f"upload{safe_suffix(dataset.file_name)}"
        context.storage.read_to(dataset.storage_key or "", dataset.file_key, path)
        test_path: Path | None = None
        if dataset.test_storage_key is not None:
            test_path = folder / f"test{safe_suffix(dataset.test_file_name or '')}"
            context.storage.read_to(dataset.test_storage_key, dataset.file_key, test_path)
        read = read_in_child(path, test_path, dataset.asked_recipe or {}, limits, folder)
        beat.check()
        with read.table.open("rb") as table:
            context.storage.write(key, table, dataset.file_key or b"")
        return Found(dict(read.reading), dict(read.profile))


def safe_suffix(file_name: str) -> str:
    """The endings of an uploaded file's name that tell its format, and nothing else of it."""
    found = re.search(r"(\.[a-z0-9]{1,10}){1,2}$", file_name.lower())
    return found.group(0) if found else ""


def _save(context: Context, held: Claim, seen: Dataset, version: int, key: str, found: Found) -> None:
    with context.database.transaction() as session:
        dataset = _hold(session, held)
        claims.release(session, held)
        if dataset.asked_recipe != seen.asked_recipe:  # another reading was asked for meanwhile
            ask(session, READ_DATASET, dataset.id)
            return
        carried = _carry_roles(session, dataset.id, found.profile)
        profile = found.profile | {"notes": [*found.profile["notes"], *carried.notes]}
        recipe = Recipe(
            team_id=dataset.team_id,
            dataset_id=dataset.id,
            created_by=dataset.created_by,
            version=version,
            state="read" if carried.roles is None else "counting",
            reading=found.reading,
            profile=profile,
            roles=carried.roles,
            table_key=key,
            asked_at=None if carried.roles is None else func.now(),
        )
        session.add(recipe)
        session.flush()
        if carried.roles is not None:
            ask(session, COUNT_GROUPS, recipe.id)
        dataset.state, dataset.problem = "profiled", None
        payload = {"recipe": recipe.id, "version": version, "rows": found.profile["rows"]}
        record_event(session, dataset, "dataset.profiled", payload)


@dataclass(frozen=True)
class _Carried:
    """Roles that still fit a table that is read anew, or a note why they do not."""

    roles: dict[str, Any] | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)


def _carry_roles(session: Session, dataset_id: str, profile: dict[str, Any]) -> _Carried:
    """The roles of the newest recipe, if there are any."""
    newest = select(Recipe).filter_by(dataset_id=dataset_id).order_by(Recipe.version.desc()).limit(1)
    earlier = session.scalar(newest)
    if earlier is None or earlier.roles is None:
        return _Carried()
    roles, errors = check_roles(earlier.roles, profile)
    if roles is not None:
        return _Carried(roles.to_json())
    said = f"The roles given before do not fit the table as it is read now: {errors[0].message} Give them again."
    return _Carried(notes=[{"message": said}])


def _save_refusal(context: Context, held: Claim, why: dict[str, Any]) -> None:
    with context.database.transaction() as session:
        _refuse(session, _hold(session, held), why)
        claims.release(session, held)


def _hold(session: Session, held: Claim) -> Dataset:
    claims.hold(session, held)
    dataset = session.get_one(Dataset, held.id, populate_existing=True)
    if dataset.state != "received":
        raise claims.ClaimLost(held.id)  # erased meanwhile
    return dataset


def _refuse(session: Session, dataset: Dataset, why: dict[str, Any]) -> None:
    dataset.state, dataset.problem = "refused", why
    record_event(session, dataset, "dataset.refused", {"problem": why})


JOB = Job(
    name=READ_DATASET,
    table=Dataset,
    states=("received",),
    doing="reading this dataset",
    work=_work,
    give_up=_refuse,
)
