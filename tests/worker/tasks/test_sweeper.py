from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from backend.database import Database
from backend.tables import Audit, Dataset, Recipe, Stack
from tests.conftest import RecordingQueue
from tests.worker.builders import make_audit, make_dataset, make_person, make_recipe, make_stack
from worker.tasks.sweeper import ADVISORY_LOCK, sweep

LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


def run(database: Database, **lengths: int) -> int:
    counted = Counter(lengths)
    with database.transaction() as session:
        return sweep(session, lambda queue: counted[queue], 10)


@pytest.fixture
def rows(database: Database) -> dict[str, str]:
    """One row of each kind that wants a job, all asked for long ago."""
    with database.transaction() as session:
        person = make_person(session)
        received = make_dataset(session, person, asked_at=LONG_AGO)
        read = make_dataset(session, person, state="profiled")
        counting = make_recipe(session, read, state="counting", asked_at=LONG_AGO)
        ready = make_recipe(session, read, version=2)
        planning = make_audit(session, ready, state="planning", asked_at=LONG_AGO)
        queued = make_audit(session, ready)
        stack = make_stack(session, queued, asked_at=LONG_AGO)
        on_gpu = make_stack(session, queued, number=1, asked_at=LONG_AGO, kernel="eager-cuda")
        running = make_audit(session, ready, state="running", asked_at=LONG_AGO)
        make_stack(session, running, state="finished")
        return {
            "received": received.id,
            "counting": counting.id,
            "planning": planning.id,
            "stack": stack.id,
            "gpu": on_gpu.id,
            "measure": running.id,
        }


def test_every_kind_of_lost_job_is_sent_again_once(
    database: Database, queue: RecordingQueue, rows: dict[str, str]
) -> None:
    assert run(database) == 6
    assert set(queue.sent) == {
        ("dataset.read", rows["received"], "light"),
        ("dataset.groups", rows["counting"], "light"),
        ("audit.plan", rows["planning"], "light"),
        ("audit.measure", rows["measure"], "light"),
        ("stack.train", rows["stack"], "train"),
        ("stack.train", rows["gpu"], "train-gpu"),
    }
    assert run(database) == 0


def test_queues_that_hold_enough_messages_do_not_grow(
    database: Database, queue: RecordingQueue, rows: dict[str, str]
) -> None:
    assert run(database, **{"light": 3, "train": 1, "train-gpu": 7}) == 1
    assert [job for job, _, _ in queue.sent] != ["stack.train"]


def change(database: Database, table: type[Any], row_id: str, **values: Any) -> None:
    with database.transaction() as session:
        for name, value in values.items():
            setattr(session.get_one(table, row_id), name, value)


def test_what_somebody_works_on_is_left_alone(database: Database, queue: RecordingQueue, rows: dict[str, str]) -> None:
    later = datetime.now(UTC) + timedelta(minutes=1)
    for table, name in ((Dataset, "received"), (Recipe, "counting"), (Audit, "planning"), (Audit, "measure")):
        change(database, table, rows[name], lease_until=later)
    change(database, Stack, rows["gpu"], lease_until=later, state="training")
    change(database, Stack, rows["stack"], lease_until=LONG_AGO, state="training")
    assert run(database) == 1
    assert queue.sent == [("stack.train", rows["stack"], "train")]


def test_what_was_asked_for_just_now_is_left_alone(database: Database, rows: dict[str, str]) -> None:
    now = datetime.now(UTC)
    for table, name in ((Dataset, "received"), (Recipe, "counting"), (Audit, "planning"), (Audit, "measure")):
        change(database, table, rows[name], asked_at=now)
    for name in ("stack", "gpu"):
        change(database, Stack, rows[name], asked_at=now)
    assert run(database) == 0


def test_an_audit_with_nothing_left_to_train_or_measure_is_sent_to_be_ended(
    database: Database, queue: RecordingQueue, rows: dict[str, str]
) -> None:
    change(database, Audit, rows["measure"], measured_stacks=1)
    run(database)
    assert ("audit.measure", rows["measure"], "light") in queue.sent


@pytest.mark.parametrize("state", ["stopped", "failed", "finished", "erased"])
def test_ended_audits_rest(database: Database, queue: RecordingQueue, rows: dict[str, str], state: str) -> None:
    with database.transaction() as session:
        for audit in session.scalars(select(Audit)):
            audit.state = state
    run(database)
    assert {job for job, _, _ in queue.sent} == {"dataset.read", "dataset.groups"}


def test_two_do_not_sweep_at_once(database: Database, rows: dict[str, str]) -> None:
    with database.transaction() as other:
        other.scalar(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
        assert run(database) == 0
    assert run(database) == 6
