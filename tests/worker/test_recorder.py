from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import select

from backend.database import Database
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Audit, Event, Stack
from tests.worker.builders import make_whole_audit
from tests.worker.conftest import wait_for
from worker import recorder
from worker.engine.errors import Stopped
from worker.recorder import Pace, Recorder
from worker.tasks import claims
from worker.tasks.claims import Claim, ClaimLost, Interrupted
from worker.tasks.context import Context


@pytest.fixture
def context(database: Database, settings: Settings) -> Context:
    return Context(settings, database, Storage(settings), "this worker", threading.Event())


@pytest.fixture
def observer(context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """An observer of the first of three stacks of 10 steps, beating ten times a second."""
    monkeypatch.setattr(recorder, "NEWS_SECONDS", 0.1)
    with context.database.transaction() as session:
        audit, stacks = make_whole_audit(session, 3, state="running")
        stack_id, audit_id = stacks[0].id, audit.id
        held = claims.claim(session, Stack, stack_id, "waiting", worker="this worker", lease_seconds=15)
        stacks[0].state = "training"
    assert held is not None
    made = Recorder(context, held, audit_id, 0, 10)
    with made.heartbeat.beating():
        yield made


def news(context: Context) -> list[Event]:
    with context.database.transaction() as session:
        return list(session.scalars(select(Event).order_by(Event.number)))


def test_news_tells_steps_and_comes_once_a_step(context: Context, observer: Recorder) -> None:
    observer.step(4, 10)
    wait_for(lambda: news(context))
    time.sleep(0.4)
    [event] = news(context)
    assert event.kind == "audit.progress"
    assert event.payload == {"stack": 0, "step": 4, "steps": 10, "seconds_left": None, "done_runs": 0}
    with context.database.transaction() as session:
        assert session.scalar(select(Stack.step).where(Stack.number == 0)) == 4


def test_the_time_left_is_of_the_whole_audit(
    context: Context, observer: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "seconds_per_step", lambda self: 2.0)
    observer.step(4, 10)
    wait_for(lambda: news(context))
    assert news(context)[0].payload["seconds_left"] == (6 + 10 + 10) * 2.0


def test_a_request_to_stop_is_heard(context: Context, observer: Recorder) -> None:
    observer.step(1, 10)
    with context.database.transaction() as session:
        session.scalars(select(Audit)).one().stop_requested = True

    def stopped() -> bool:
        try:
            observer.step(2, 10)
        except Stopped:
            return True
        return False

    assert wait_for(stopped)


def test_a_worker_that_is_ending_is_heard(context: Context, observer: Recorder) -> None:
    context.shutdown.set()
    with pytest.raises(Interrupted):
        observer.step(1, 10)


def test_a_row_taken_away_is_noticed(context: Context, observer: Recorder) -> None:
    with context.database.transaction() as session:
        for stack in session.scalars(select(Stack)):
            stack.attempt += 1

    def lost() -> bool:
        try:
            observer.step(2, 10)
        except ClaimLost:
            return True
        return False

    assert wait_for(lost)


def test_steps_cost_next_to_nothing(context: Context) -> None:
    quiet = Recorder(context, Claim(Stack, "0" * 32, 1, "w"), "0" * 32, 0, 10)
    began = time.perf_counter()
    for step in range(10_000):
        quiet.step(step, 10_000)
    assert time.perf_counter() - began < 0.5


def test_the_pace_is_told_once_it_is_sure() -> None:
    now = [100.0]
    pace = Pace(clock=lambda: now[0])
    assert pace.seconds_per_step() is None
    pace.report(10)
    now[0] += 1.0
    pace.report(20)
    assert pace.seconds_per_step() is None
    now[0] += 2.0
    pace.report(40)
    assert pace.seconds_per_step() == pytest.approx(0.1)
