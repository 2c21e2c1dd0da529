from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from backend.database import Database
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Stack
from tests.worker.builders import make_whole_audit
from worker.tasks import claims
from worker.tasks.claims import Claim, ClaimLost, Interrupted
from worker.tasks.context import Context
from worker.tasks.job import Job, perform

SECRET_CELL = "Jane Roe, HIV positive"


@pytest.fixture
def context(database: Database, settings: Settings) -> Context:
    return Context(settings, database, Storage(settings), "this worker", threading.Event())


@pytest.fixture
def stack_id(database: Database) -> str:
    with database.transaction() as session:
        return make_whole_audit(session)[1][0].id


def job(work: Any) -> Job:
    def give_up(session: Any, row: Stack, problem: dict[str, str]) -> None:
        row.state, row.reason = "failed", problem["happened"]

    return Job("stack.train", Stack, ("waiting", "training"), "training this stack", work, give_up)


def fetch(context: Context, stack_id: str) -> Stack:
    with context.database.transaction() as session:
        return session.get_one(Stack, stack_id)


def fails(context: Context, held: Claim) -> None:
    raise ValueError(f"could not convert string to float: {SECRET_CELL}")


def dies(context: Context, held: Claim) -> None:
    """As a killed worker leaves it: the lease runs out, nothing else happens."""
    with context.database.transaction() as session:
        claims.expire(session, held)
    raise ClaimLost


def test_a_job_that_keeps_failing_is_given_up(context: Context, stack_id: str) -> None:
    for attempt in range(1, 5):
        assert fetch(context, stack_id).state == "waiting"
        perform(context, job(fails), stack_id)
        assert attempt < 4 or fetch(context, stack_id).state == "failed"
    row = fetch(context, stack_id)
    assert row.reason == "An error (ValueError) occurred four times while training this stack."
    perform(context, job(fails), stack_id)
    assert fetch(context, stack_id).state == "failed"


def test_a_job_whose_worker_keeps_dying_is_given_up(context: Context, stack_id: str) -> None:
    for _ in range(4):
        perform(context, job(dies), stack_id)
        assert fetch(context, stack_id).state == "waiting"
    perform(context, job(dies), stack_id)
    row = fetch(context, stack_id)
    assert row.state == "failed"
    assert row.reason == "The worker died four times while training this stack."


def test_an_interrupted_job_goes_back_uncounted(context: Context, stack_id: str) -> None:
    def interrupted(context: Context, held: Claim) -> None:
        raise Interrupted

    for _ in range(6):
        perform(context, job(interrupted), stack_id)
    row = fetch(context, stack_id)
    assert (row.state, row.attempt, row.lease_until) == ("waiting", 0, None)


def test_messages_of_errors_are_not_logged(context: Context, stack_id: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        perform(context, job(fails), stack_id)
    assert "ValueError at test_job.py:" in caplog.text
    assert SECRET_CELL not in caplog.text


def test_a_job_on_nothing_does_nothing(context: Context) -> None:
    perform(context, job(fails), "0" * 32)
