"""Killed, stopped, doubled, lost: the audit completes by itself, once, with the same numbers."""

from __future__ import annotations

import signal
import time
from typing import Any

import psutil
import pytest
from sqlalchemy import select, update

from backend.audits import service as audits
from backend.celery_queue import CeleryQueue
from backend.database import Database
from backend.embedded.services import Services
from backend.queue import MEASURE_AUDIT, PLAN_AUDIT, TRAIN_STACK
from backend.settings import Settings
from backend.tables import Audit, Stack
from tests.conftest import RecordingQueue
from tests.worker.audits import Desk, begin_again, numbers, small_csv
from tests.worker.conftest import StartWorker, Worker, wait_for

pytestmark = pytest.mark.services

SLOW: dict[str, Any] = {
    "epsilons": [1.0],
    "training": {"epochs": 80, "batch_size": 8, "learning_rate": 0.05, "clip": 1.0},
}
"""Some seconds a stack."""
ONE_EPSILON: dict[str, Any] = {"epsilons": [1.0], "seeds": 1}


@pytest.fixture
def desk(real_database: Database, settings: Settings) -> Desk:
    return Desk.of(real_database, settings)


@pytest.fixture
def dataset_id(desk: Desk, light_worker: Worker) -> str:
    """A dataset with counted groups, and a light worker that made it so."""
    dataset_id = desk.upload(small_csv())
    assert desk.wait_read(dataset_id)["state"] == "profiled"
    assert desk.give_roles(dataset_id) == "ready"
    return dataset_id


def wait_training(desk: Desk, audit_id: str, seconds: float = 60) -> Stack:
    """Until a stack is some way into its steps."""

    def found() -> Stack | None:
        return next((one for one in desk.stacks(audit_id) if one.state == "training" and one.step > 0), None)

    stack = wait_for(found, seconds)
    assert stack is not None
    return stack


def test_a_killed_train_worker_costs_time_and_nothing_else(
    desk: Desk, dataset_id: str, start_worker: StartWorker
) -> None:
    audit_id = desk.start(dataset_id, **SLOW)
    first = start_worker("train")
    killed = wait_training(desk, audit_id)
    first.kill()
    start_worker("train")
    assert desk.wait_state(audit_id, "finished", "failed").state == "finished"
    attempts = {stack.id: stack.attempt for stack in desk.stacks(audit_id)}
    assert attempts.pop(killed.id) == 2
    assert set(attempts.values()) == {1}
    disturbed = numbers(desk.database, audit_id)
    begin_again(desk.database, audit_id)
    assert desk.wait_state(audit_id, "finished", "failed").state == "finished"
    assert [stack.attempt for stack in desk.stacks(audit_id)] == [1, 1]
    assert numbers(desk.database, audit_id) == disturbed
    assert desk.kinds(audit_id).count("stack.finished") == 4


def test_a_worker_that_wakes_up_too_late_is_refused(desk: Desk, dataset_id: str, start_worker: StartWorker) -> None:
    longer = {"training": {**SLOW["training"], "epochs": 200}}
    audit_id = desk.start(dataset_id, **SLOW | ONE_EPSILON | longer)
    late = start_worker("train")
    stack = wait_training(desk, audit_id)
    late.process.send_signal(signal.SIGSTOP)
    assert desk.stacks(audit_id)[0].state == "training"
    start_worker("train")
    wait_for(lambda: desk.stacks(audit_id)[0].attempt == 2, 90)
    late.process.send_signal(signal.SIGCONT)
    desk.wait_state(audit_id, "finished")
    wait_for(lambda: f"{stack.id}: somebody else has it" in late.text(), 15)
    assert desk.kinds(audit_id).count("stack.finished") == 1


def test_children_of_a_killed_light_worker_die_with_it(settings: Settings, start_worker: StartWorker) -> None:
    light = start_worker("light")
    parent = psutil.Process(light.process.pid)
    children = wait_for(lambda: parent.children() if len(parent.children()) == 2 else [], 20)
    light.kill()
    assert not psutil.wait_procs(children, timeout=5)[1]


def test_a_worker_that_is_told_to_end_hands_its_stack_back(
    desk: Desk, dataset_id: str, start_worker: StartWorker
) -> None:
    audit_id = desk.start(dataset_id, **SLOW | ONE_EPSILON)
    first = start_worker("train")
    stack = wait_training(desk, audit_id)
    assert first.end() < 40
    with desk.database.transaction() as session:
        row = session.get_one(Stack, stack.id)
    assert (row.state, row.attempt, row.lease_until) == ("training", 0, None)
    start_worker("train")
    assert desk.wait_state(audit_id, "finished").measured_stacks == 1


def test_messages_that_come_often_and_late_do_no_harm(
    desk: Desk, dataset_id: str, start_worker: StartWorker, clean_redis: str
) -> None:
    audit_id = desk.start(dataset_id, **ONE_EPSILON)
    queue = CeleryQueue(clean_redis)
    [stack] = desk.stacks(audit_id)

    def send_all() -> None:
        for job, row_id in ((PLAN_AUDIT, audit_id), (TRAIN_STACK, stack.id), (MEASURE_AUDIT, audit_id)):
            for _ in range(5):
                queue.send(job, row_id)

    send_all()
    start_worker("train")
    start_worker("train")
    desk.wait_state(audit_id, "finished")
    before = numbers(desk.database, audit_id), desk.kinds(audit_id)
    send_all()
    time.sleep(2)
    assert (numbers(desk.database, audit_id), desk.kinds(audit_id)) == before
    assert [one.attempt for one in desk.stacks(audit_id)] == [1]
    assert before[1].count("stack.finished") == before[1].count("audit.finished") == 1
    queue.close()


def test_two_workers_share_the_stacks_and_train_none_twice(
    desk: Desk, dataset_id: str, start_worker: StartWorker
) -> None:
    audit_id = desk.start(dataset_id, epsilons=[1.0], seeds=6)
    start_worker("train")
    start_worker("train")
    assert desk.wait_state(audit_id, "finished").measured_stacks == 6
    assert [stack.attempt for stack in desk.stacks(audit_id)] == [1] * 6
    assert desk.kinds(audit_id).count("stack.finished") == 6


def test_lost_messages_are_sent_again(
    desk: Desk, dataset_id: str, start_worker: StartWorker, services: Services
) -> None:
    """Nothing is ever sent but by the sweeper, and the broker forgets what it had."""
    silent = Desk(Database(desk.database.engine, RecordingQueue()), desk.storage, desk.settings, desk.principal)
    audit_id = silent.start(dataset_id, **ONE_EPSILON)
    wait_for(lambda: desk.audit(audit_id).state == "queued", 60)
    services.valkey.flush()
    start_worker("train")
    desk.wait_state(audit_id, "finished")


def test_stop_and_resume_give_the_same_numbers(desk: Desk, dataset_id: str, start_worker: StartWorker) -> None:
    audit_id = desk.start(dataset_id, **SLOW)
    start_worker("train")
    wait_training(desk, audit_id)
    with desk.database.transaction() as session:
        audits.stop(session, desk.principal, audit_id)
    desk.wait_state(audit_id, "stopped", seconds=60)
    assert "stopped" in {stack.state for stack in desk.stacks(audit_id)}
    with desk.database.transaction() as session:
        audits.resume(session, desk.principal, audit_id)
    assert desk.wait_state(audit_id, "finished", "failed").state == "finished"
    resumed = numbers(desk.database, audit_id)
    begin_again(desk.database, audit_id)
    desk.wait_state(audit_id, "finished")
    assert numbers(desk.database, audit_id) == resumed


def test_a_poisoned_stack_is_given_up_and_the_others_count(
    desk: Desk, dataset_id: str, start_worker: StartWorker
) -> None:
    audit_id = desk.start(dataset_id, epsilons=[1.0], seeds=2)
    wait_for(lambda: desk.audit(audit_id).state == "queued", 60)
    poisoned = desk.stacks(audit_id)[0]
    with desk.database.transaction() as session:
        session.execute(update(Stack).where(Stack.id == poisoned.id).values(threads=0))
    train = start_worker("train", RESEND_SECONDS="0.5")
    audit = desk.wait_state(audit_id, "failed")
    assert audit.measured_stacks == 1
    assert audit.problem is not None
    assert "four times while training this stack" in audit.problem["happened"]
    stacks = desk.stacks(audit_id)
    assert [stack.state for stack in stacks] == ["failed", "finished"]
    assert "RuntimeError at " in train.text()
    assert desk.kinds(audit_id)[-1] == "audit.failed"


def test_a_stack_that_kills_its_workers_is_given_up(desk: Desk, dataset_id: str, start_worker: StartWorker) -> None:
    audit_id = desk.start(dataset_id, **SLOW | ONE_EPSILON)
    for _ in range(2):
        worker = start_worker("train", ATTEMPTS="2")
        wait_training(desk, audit_id)
        worker.kill()
        with desk.database.transaction() as session:
            session.execute(update(Stack).where(Stack.audit_id == audit_id).values(step=0))
    start_worker("train", ATTEMPTS="2")
    audit = desk.wait_state(audit_id, "failed", "finished")
    assert audit.problem is not None
    assert audit.problem["happened"] == "The worker died twice while training this stack."


def test_restarts_of_database_and_queue_are_outlived(
    desk: Desk, dataset_id: str, start_worker: StartWorker, services: Services
) -> None:
    audit_id = desk.start(dataset_id, **SLOW)
    train = start_worker("train")
    wait_training(desk, audit_id)
    services.queue_child.stop()
    services.database_child.stop()
    time.sleep(1)
    services.postgres.prepare()
    services.database_child.start()
    services.postgres.wait_ready(services.database_child)
    services.valkey.prepare()
    services.queue_child.start()
    services.valkey.wait_ready(services.queue_child)
    audit = desk.wait_state(audit_id, "finished", "failed")
    assert audit.state == "finished", (audit.problem, train.text())
    assert train.process.poll() is None


def test_an_erased_audit_is_left_alone(desk: Desk, dataset_id: str, start_worker: StartWorker) -> None:
    audit_id = desk.start(dataset_id, **SLOW | ONE_EPSILON)
    train = start_worker("train")
    wait_training(desk, audit_id)
    with desk.database.transaction() as session:
        audits.erase(session, desk.storage, desk.principal, audit_id)
    wait_for(lambda: "somebody else has it" in train.text(), 15)
    with desk.database.transaction() as session:
        assert session.scalar(select(Audit.state).where(Audit.id == audit_id)) == "erased"
    found = numbers(desk.database, audit_id)
    assert found["statistics"] == found["measurements"] == []
