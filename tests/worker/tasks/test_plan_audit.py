from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import select

from backend.database import Database
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Audit, Calibration, Event, Run, Stack
from tests.conftest import RecordingQueue
from tests.worker.builders import make_audit, make_dataset, make_person, make_recipe, make_stack
from worker.engine import results
from worker.engine.accounting import calibrate as calibration
from worker.engine.errors import AccountingProblem
from worker.tasks import plan_audit
from worker.tasks.context import Context
from worker.tasks.plan_audit import cached

QUESTION: dict[str, Any] = {
    "methods": ["dp-sgd"],
    "epsilons": [1.0],
    "delta": 1e-5,
    "seeds": 1,
    "network": {"kind": "logistic", "hidden": []},
    "training": {"epochs": 1, "batch_size": 64, "learning_rate": 0.1, "clip": 1.0, "optimizer": "sgd"},
    "parameters": {"non-private": {"learning_rate": 0.5}, "dp-sgd": {"learning_rate": 0.1, "clip": 1.0}},
}


@pytest.fixture
def context(database: Database, settings: Settings) -> Context:
    return Context(settings, database, Storage(settings), "this worker", threading.Event())


@pytest.fixture
def audit_id(database: Database) -> str:
    with database.transaction() as session:
        dataset = make_dataset(session, make_person(session), state="profiled")
        recipe = make_recipe(session, dataset, summary={"units": 640, "unit": "row", "classes": 2, "features": 3})
        audit = make_audit(session, recipe, state="planning", question=QUESTION)
        stack = make_stack(session, audit)
        session.add(
            Run(
                team_id=audit.team_id,
                audit_id=audit.id,
                stack_id=stack.id,
                position=1,
                method="dp-sgd",
                seed=0,
                epsilon_asked=1.0,
                parameters=QUESTION["parameters"]["dp-sgd"],
            )
        )
        return audit.id


def found(*asked: float) -> results.Calibration:
    return results.Calibration(2.0, 0.99995, {"pld": 0.99995, "note": "checked"})


def refused(*asked: float) -> results.Calibration:
    raise AccountingProblem("The accountants disagree: PLD 2, RDP 1. No claim can be made. Choose another epsilon.")


def test_noise_is_stored_and_stacks_are_asked_for(
    context: Context, audit_id: str, queue: RecordingQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "calibrate", found)
    plan_audit.run(context, audit_id)
    with context.database.transaction() as session:
        audit = session.get_one(Audit, audit_id)
        baseline, private = session.scalars(select(Run).order_by(Run.position)).all()
        stack = session.scalar(select(Stack))
    assert (audit.state, audit.attempt, audit.lease_until) == ("queued", 0, None)
    assert (private.noise_multiplier, private.epsilon_spent) == (2.0, 0.99995)
    assert private.events == [
        {
            "noise_multiplier": 2.0,
            "sampling_probability": 0.1,
            "steps": 10,
            "adjacency": "add-or-remove-one",
            "releases": [{"what": "sum of scaled gradients", "noise_multiplier": 2.0}],
        }
    ]
    assert private.accountant_check == {"pld": 0.99995, "note": "checked"}
    assert (baseline.noise_multiplier, baseline.epsilon_spent, baseline.events) == (0.0, None, [])
    assert audit.claim is not None
    assert audit.claim["epsilons"]["one_run"]["values"] == [{"method": "dp-sgd", "asked": 1.0, "spent": 0.99995}]
    assert audit.claim["epsilons"]["choice_paid"]["value"] is None
    assert stack is not None
    assert queue.sent == [("stack.train", stack.id, None)]


def test_a_claim_that_cannot_be_made_ends_the_audit(
    context: Context, audit_id: str, queue: RecordingQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "calibrate", refused)
    plan_audit.run(context, audit_id)
    with context.database.transaction() as session:
        audit = session.get_one(Audit, audit_id)
        assert audit.state == "failed"
        assert audit.problem is not None
        assert set(audit.problem) == {"happened", "where", "next"}
        assert "accountants disagree" in audit.problem["where"]
        assert {run.state for run in session.scalars(select(Run))} == {"failed"}
        assert [stack.state for stack in session.scalars(select(Stack))] == ["failed"]
        assert list(session.scalars(select(Event.kind))) == ["audit.failed"]
    assert queue.sent == []


def test_a_calibration_is_computed_once(database: Database) -> None:
    calls: list[tuple[float, ...]] = []

    def count(*asked: float) -> results.Calibration:
        calls.append(asked)
        return found()

    find = cached(database, count)
    first = find(1.0, 1e-5, 0.1, 10)
    again = cached(database, count)(1.0, 1e-5, 0.1, 10)
    assert first == again == found()
    assert find(2.0, 1e-5, 0.1, 10) == found()
    assert calls == [(1.0, 1e-5, 0.1, 10), (2.0, 1e-5, 0.1, 10)]


def test_of_two_that_calibrate_the_same_the_first_counts(database: Database) -> None:
    def slower(*asked: float) -> results.Calibration:
        with database.transaction() as session:
            session.add(
                Calibration(
                    sampling_probability=0.1,
                    steps=10,
                    delta=1e-5,
                    epsilon=1.0,
                    noise_multiplier=2.5,
                    epsilon_spent=0.9,
                    accountant_check={},
                )
            )
        return found()

    assert cached(database, slower)(1.0, 1e-5, 0.1, 10).noise_multiplier == 2.5


def test_what_was_found_before_a_failure_is_kept(
    context: Context, audit_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two epsilons, and the worker fails at the second: the first is not computed again."""
    with context.database.transaction() as session:
        session.get_one(Audit, audit_id).question = QUESTION | {"epsilons": [1.0, 2.0]}
    calls: list[float] = []

    def fails_at_two(epsilon: float, *rest: float) -> results.Calibration:
        calls.append(epsilon)
        if epsilon == 2.0 and calls.count(2.0) == 1:
            raise MemoryError
        return found()

    monkeypatch.setattr(calibration, "calibrate", fails_at_two)
    for _ in range(2):
        plan_audit.run(context, audit_id)
    assert calls == [1.0, 2.0, 2.0]
