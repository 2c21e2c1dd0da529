from __future__ import annotations

import threading
import time

import pytest

from backend.database import Database
from backend.tables import Stack
from tests.worker.builders import make_whole_audit
from tests.worker.conftest import wait_for
from worker.tasks import claims
from worker.tasks.claims import Claim, ClaimLost, Heartbeat, Interrupted

LEASE = 30.0


@pytest.fixture
def stack_id(database: Database) -> str:
    with database.transaction() as session:
        return make_whole_audit(session)[1][0].id


def take(database: Database, stack_id: str, worker: str, lease_seconds: float = LEASE) -> Claim | None:
    with database.transaction() as session:
        return claims.claim(session, Stack, stack_id, "waiting", "training", worker=worker, lease_seconds=lease_seconds)


def stack(database: Database, stack_id: str) -> Stack:
    with database.transaction() as session:
        return session.get_one(Stack, stack_id)


def test_a_claimed_row_cannot_be_claimed_again(database: Database, stack_id: str) -> None:
    first = take(database, stack_id, "a")
    assert first is not None
    assert first.attempt == 1
    assert take(database, stack_id, "b") is None


def test_a_row_in_another_state_cannot_be_claimed(database: Database, stack_id: str) -> None:
    with database.transaction() as session:
        session.get_one(Stack, stack_id).state = "finished"
    assert take(database, stack_id, "a") is None


def test_an_expired_lease_may_be_taken_and_the_late_result_is_refused(database: Database, stack_id: str) -> None:
    late = take(database, stack_id, "a", lease_seconds=0)
    assert late is not None
    second = take(database, stack_id, "b")
    assert second is not None
    assert second.attempt == 2
    with pytest.raises(ClaimLost), database.transaction() as session:
        claims.hold(session, late)
    with database.transaction() as session:
        assert not claims.renew(session, late, LEASE)
        claims.hold(session, second)


def test_an_expired_lease_that_nobody_took_still_counts(database: Database, stack_id: str) -> None:
    late = take(database, stack_id, "a", lease_seconds=0)
    assert late is not None
    with database.transaction() as session:
        claims.hold(session, late)
        assert claims.renew(session, late, LEASE)
    assert take(database, stack_id, "b") is None


def test_of_many_that_race_one_wins(database: Database, stack_id: str) -> None:
    won: list[Claim] = []
    begin = threading.Barrier(8)

    def race(worker: str) -> None:
        begin.wait()
        if (held := take(database, stack_id, worker)) is not None:
            won.append(held)

    threads = [threading.Thread(target=race, args=(f"worker {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert stack(database, stack_id).attempt == 1


def test_handing_back_does_not_count_and_expiring_does(database: Database, stack_id: str) -> None:
    held = take(database, stack_id, "a")
    assert held is not None
    with database.transaction() as session:
        claims.hand_back(session, held)
    again = take(database, stack_id, "a")
    assert again is not None
    assert again.attempt == 1
    with database.transaction() as session:
        claims.expire(session, again)
    third = take(database, stack_id, "a")
    assert third is not None
    assert third.attempt == 2


def test_the_heartbeat_keeps_a_short_lease_alive(database: Database, stack_id: str) -> None:
    held = take(database, stack_id, "a", lease_seconds=3)
    assert held is not None
    with Heartbeat(database, held, 3, threading.Event()).beating() as beat:
        time.sleep(7)
        beat.check()
        assert take(database, stack_id, "b") is None
    wait_for(lambda: take(database, stack_id, "b") is not None, 60)


def test_the_heartbeat_notices_that_the_row_was_taken(database: Database, stack_id: str) -> None:
    held = take(database, stack_id, "a", lease_seconds=0)
    assert held is not None
    assert take(database, stack_id, "b") is not None
    with Heartbeat(database, held, 0.2, threading.Event()).beating() as beat:
        wait_for(lambda: _lost(beat), 60)


def _lost(beat: Heartbeat) -> bool:
    try:
        beat.check()
    except ClaimLost:
        return True
    return False


def test_the_heartbeat_tells_a_job_that_its_worker_is_ending(database: Database, stack_id: str) -> None:
    held, ending = take(database, stack_id, "a"), threading.Event()
    assert held is not None
    beat = Heartbeat(database, held, LEASE, ending)
    beat.check()
    ending.set()
    with pytest.raises(Interrupted):
        beat.check()
