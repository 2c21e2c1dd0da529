"""Datasets: receive, show, read anew, give roles, count groups, erase. Plain arguments in, plain dictionaries out."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from backend import plain
from backend.chain import PROGRAM, record
from backend.database import Database, ask
from backend.datasets import erasure, queries, samples, views
from backend.errors import Conflict, InputProblem, NotFound, TooLarge
from backend.once import fingerprint, first_with
from backend.paging import page
from backend.people.service import Principal, fetch_owned, require
from backend.plain import clean_name, refuse_strange, title_problem
from backend.queue import COUNT_GROUPS, READ_DATASET
from backend.settings import Settings
from backend.storage import Readable, Storage, WrittenFile
from backend.tables import Dataset, Recipe, random_id
from worker.engine.datasets.reading import SHOWN_WITH_A_READING, check_reading
from worker.engine.datasets.roles import check_roles

STATES = ("received", "profiled", "refused", "erased")
ROUTE = "POST /api/v1/datasets"
COUNT_SECONDS = 5.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Upload:
    """A file on its way in: the sender's name for it, and its bytes."""

    file_name: str
    content: Readable


class Counted:
    """Bytes as they come, up to a limit, whatever any header says."""

    def __init__(self, source: Readable, limit: int) -> None:
        self._source = source
        self._limit = limit
        self._seen = 0

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes.

        Raises:
            TooLarge: more than the limit came.
        """
        piece = self._source.read(size)
        self._seen += len(piece)
        if self._seen > self._limit:
            raise TooLarge(f"A file is larger than {self._limit:,} bytes. Nothing was stored. Send a smaller one.")
        return piece


def receive(
    session: Session,
    storage: Storage,
    settings: Settings,
    principal: Principal,
    file: Upload,
    *,
    test_file: Upload | None = None,
    name: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    sample: str | None = None,
    idempotency_key: str | None = None,
) -> dict[str, Any]:
    """Stores an upload under a key of its own and asks for it to be read. No database connection is held while storing.

    Raises:
        InputProblem: an empty file, a recipe that cannot be used, a key that was used with another body.
        TooLarge: a file beyond the limit.
    """
    require(principal, "run")
    asked = _asked_recipe({}, recipe or {})
    row = _new_row(storage, settings, principal, file.file_name, name)
    row.sample, row.asked_recipe = sample, asked or None
    store = _Store(session, storage, row, settings.upload_limit_bytes)
    _store_files(store, row, file, test_file)
    body = fingerprint([row.sha256, row.test_sha256, name, recipe, sample])
    first = first_with(session, principal, idempotency_key, ROUTE, body, row.id)
    if first != row.id:
        store.discard()
        return get_dataset(session, principal, first)
    session.add(row)
    session.flush()
    session.refresh(row)
    ask(session, READ_DATASET, row.id)
    record(session, principal, "dataset.added", "dataset", row.id, sample=sample is not None)
    return views.full(row, None)


def _new_row(storage: Storage, settings: Settings, principal: Principal, file_name: str, name: str | None) -> Dataset:
    problem = title_problem(name or "")
    if problem is not None:
        raise InputProblem.at("name", problem)
    shown = plain.file_name(file_name, otherwise="table.csv")
    return Dataset(
        id=random_id(),
        team_id=principal.team_id,
        created_by=principal.person_id,
        name=clean_name(name or "", otherwise=PurePath(shown).stem or "table"),
        file_name=shown,
        file_key=storage.new_file_key(),
        asked_at=datetime.now(UTC),
        expires_at=datetime.now(UTC) + timedelta(days=settings.upload_days),
    )


def _store_files(store: _Store, row: Dataset, file: Upload, test_file: Upload | None) -> None:
    written = store.write("file", "original", file)
    row.storage_key, row.sha256, row.size_bytes = store.keys[-1], written.sha256, written.size
    if test_file is not None:
        tested = store.write("test_file", "test", test_file)
        row.test_storage_key, row.test_sha256 = store.keys[-1], tested.sha256
        row.test_file_name = plain.file_name(test_file.file_name, otherwise="test.csv")


class _Store:
    """Files of one dataset; removed again if its row does not make it into the database."""

    def __init__(self, session: Session, storage: Storage, row: Dataset, limit: int) -> None:
        self.keys: list[str] = []
        self._storage, self._row, self._limit = storage, row, limit
        event.listen(session, "after_rollback", lambda _: self.discard(), once=True)

    def write(self, field: str, name: str, upload: Upload) -> WrittenFile:
        key = f"datasets/{self._row.id}/{name}"
        try:
            written = self._storage.write(key, Counted(upload.content, self._limit), self._row.file_key or b"")
        except BaseException:
            self.discard()
            raise
        self.keys.append(key)
        if written.size == 0:
            self.discard()
            raise InputProblem.at(field, "The file is empty. Choose a file with a header and rows.")
        return written

    def discard(self) -> None:
        while self.keys:
            self._storage.delete(self.keys.pop())


def receive_sample(
    session: Session,
    storage: Storage,
    settings: Settings,
    principal: Principal,
    key: object,
    *,
    name: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> dict[str, Any]:
    """A dataset from a sample, by the same way in as any upload."""
    require(principal, "run")
    sample = samples.find(key)
    if sample is None:
        offered = ", ".join(found.key for found in samples.offered()) or "none"
        raise InputProblem.at("sample", f"There is no such sample here. Offered are: {offered}.")
    upload = Upload(f"{sample.key}.csv", io.BytesIO(sample.csv_bytes()))
    return receive(
        session,
        storage,
        settings,
        principal,
        upload,
        name=name or sample.title,
        recipe=recipe,
        sample=sample.key,
        idempotency_key=idempotency_key,
    )


def list_samples() -> list[dict[str, Any]]:
    """The samples that can be chosen here."""
    return [
        {"key": found.key, "title": found.title, "description": found.description, "roles": found.roles}
        for found in samples.offered()
    ]


def list_datasets(
    session: Session,
    principal: Principal,
    *,
    limit: int = 50,
    cursor: str | None = None,
    state: str | None = None,
    sample: str | None = None,
) -> dict[str, Any]:
    """A page of datasets, newest first; erased ones only with ``state='erased'``."""
    require(principal, "read")
    if state is not None and state not in STATES:
        raise InputProblem.at("state", f"There is no such state. There are: {', '.join(STATES)}.")

    def lines(rows: Sequence[Dataset]) -> list[dict[str, Any]]:
        newest = queries.recipe_lines(session, [row.id for row in rows])
        return [views.line(row, newest.get(row.id)) for row in rows]

    return page(session, queries.datasets_of(principal, state, sample), Dataset, limit, cursor, lines)


def get_dataset(session: Session, principal: Principal, dataset_id: str) -> dict[str, Any]:
    """One dataset in full, with the newest recipe."""
    require(principal, "read")
    row = fetch_owned(session, principal, Dataset, dataset_id)
    return views.full(row, queries.newest_recipe(session, row.id))


def put_recipe(session: Session, principal: Principal, dataset_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the original anew; each given field replaces what was asked for it before, null takes it back.

    Raises:
        InputProblem: a field that cannot be used.
        Conflict: the dataset is being read, or was erased.
    """
    require(principal, "run")
    row = fetch_owned(session, principal, Dataset, dataset_id, lock=True)
    asked = _asked_recipe(row.asked_recipe or {}, body)
    if row.state not in ("profiled", "refused"):
        raise Conflict(_why_not(row.state))
    row.asked_recipe, row.state, row.problem = asked, "received", None
    row.asked_at, row.attempt, row.lease_until, row.worker = datetime.now(UTC), 0, None, None
    session.flush()
    ask(session, READ_DATASET, row.id)
    record(session, principal, "dataset.recipe", "dataset", row.id)
    return views.full(row, queries.newest_recipe(session, row.id))


def _asked_recipe(earlier: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    refuse_strange(body)
    given = {key: value for key, value in body.items() if value is not None and key not in SHOWN_WITH_A_READING}
    errors = check_reading(given)
    if errors:
        raise InputProblem.of(errors)
    taken_back = {key for key, value in body.items() if value is None}
    return {key: value for key, value in {**earlier, **given}.items() if key not in taken_back}


def put_roles(session: Session, principal: Principal, dataset_id: str, body: Mapping[str, Any]) -> str:
    """Gives the columns their roles in a new version of the recipe, asks for its groups, and returns its id.

    Raises:
        InputProblem: every field that does not fit the table.
        Conflict: the table was not read yet, is being read anew, or was erased.
    """
    require(principal, "run")
    refuse_strange(body)
    row = fetch_owned(session, principal, Dataset, dataset_id, lock=True)
    newest = queries.newest_recipe(session, row.id)
    if row.state != "profiled" or newest is None:
        raise Conflict(_why_not(row.state))
    roles, errors = check_roles(body, newest.profile)
    if roles is None:
        raise InputProblem.of(errors)
    recipe = Recipe(
        team_id=row.team_id,
        dataset_id=row.id,
        created_by=principal.person_id,
        version=newest.version + 1,
        state="counting",
        reading=newest.reading,
        profile=newest.profile,
        roles=roles.to_json(),
        table_key=newest.table_key,
        asked_at=datetime.now(UTC),
    )
    session.add(recipe)
    session.flush()
    ask(session, COUNT_GROUPS, recipe.id)
    record(session, principal, "dataset.roles", "dataset", row.id)
    return recipe.id


def give_roles(database: Database, principal: Principal, dataset_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """``put_roles`` in its own transaction, then a short wait for the count; the dataset as it is after that."""
    with database.transaction() as session:
        recipe_id = put_roles(session, principal, dataset_id, body)
    wait_for_groups(database, recipe_id, seconds=COUNT_SECONDS)
    with database.transaction() as session:
        return get_dataset(session, principal, dataset_id)


def wait_for_groups(
    database: Database,
    recipe_id: str,
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> str | None:
    """The recipe's state once it is no longer counting, or when the time is up. Holds no connection while waiting."""
    until = clock() + seconds
    while True:
        with database.transaction() as session:
            state = queries.recipe_state(session, recipe_id)
        if state != "counting" or clock() >= until:
            return state
        pause(LOOK_SECONDS)


def groups(session: Session, principal: Principal, dataset_id: str) -> dict[str, Any]:
    """The groups of the newest recipe with their rows per part; no rows while none were counted."""
    require(principal, "read")
    row = fetch_owned(session, principal, Dataset, dataset_id)
    recipe = queries.newest_recipe(session, row.id)
    if recipe is None:
        return {"rows": [], "recipe_version": None, "recipe_state": None}
    rows = [views.group(found, recipe.reading) for found in queries.groups_of(session, recipe.id)]
    return {"rows": rows, "recipe_version": recipe.version, "recipe_state": recipe.state}


def ready_recipe(session: Session, principal: Principal, dataset_id: object) -> Recipe:
    """The recipe that a new audit of this dataset rests on.

    Raises:
        InputProblem, NotFound: no such dataset, told at the field ``dataset``.
        Conflict: its groups are not counted yet.
    """
    if not isinstance(dataset_id, str):
        raise InputProblem.at("dataset", "Give the id of a dataset.")
    try:
        row = fetch_owned(session, principal, Dataset, dataset_id)
    except NotFound:
        raise NotFound("dataset", [{"field": "dataset", "message": "There is no such dataset."}]) from None
    if row.state == "erased":
        raise Conflict("The dataset was erased. Nothing was stored. Choose another dataset, or upload the table again.")
    recipe = queries.newest_ready_recipe(session, row.id)
    if row.state != "profiled" or recipe is None:
        raise Conflict("The dataset has no counted groups yet. Nothing was stored. Give its columns roles first.")
    return recipe


def erase(
    session: Session, storage: Storage, settings: Settings, principal: Principal, dataset_id: str
) -> dict[str, Any]:
    """Destroys the key and the files, wipes the content, removes small groups, leaves a receipt. Twice does no harm."""
    require(principal, "run", "admin")
    queries.lock_recipes(session, fetch_owned(session, principal, Dataset, dataset_id).id)
    row = fetch_owned(session, principal, Dataset, dataset_id, lock=True)
    if row.state == "erased" and row.receipt is not None:
        return row.receipt
    record(session, principal, "dataset.erased", "dataset", row.id)
    return erasure.erase(session, storage, row, principal.person_id, settings.withheld_below)


def erase_expired(session: Session, storage: Storage, withheld_below: int) -> int:
    """Erases up to a few datasets whose time is over, as ``erase`` does; returns how many."""
    count = 0
    for dataset_id in queries.expired(session):
        queries.lock_recipes(session, dataset_id)
        row = session.get_one(Dataset, dataset_id, with_for_update=True, populate_existing=True)
        if row.state != "erased":
            erasure.erase(session, storage, row, "retention", withheld_below)
            record(session, PROGRAM, "dataset.erased", "dataset", row.id, expired=True)
            count += 1
    return count


def _why_not(state: str) -> str:
    if state == "received":
        return "The table is being read. Nothing was changed. Wait until it was read, then send this again."
    if state == "refused":
        return (
            "The table could not be read. Nothing was changed. See its problem, and change its recipe or upload again."
        )
    return "The dataset was erased. Nothing can be changed any more. Upload the table again if you may."
