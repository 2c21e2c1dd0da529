"""A small table, the way of an audit through the services, and what the tests compare."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from backend.audits import service as audits
from backend.database import Database
from backend.datasets import service as datasets
from backend.people.service import Principal
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Audit, Event, Measurement, Person, Run, Stack, Statistic
from tests.worker.builders import make_person
from tests.worker.conftest import wait_for

ROLES = {"target": {"column": "outcome", "favourable": "yes"}, "protected": ["sex"], "features": ["a", "b", "kind"]}


def small_csv(rows: int = 900) -> bytes:
    draw = random.Random(7)
    lines = ["a,b,kind,sex,outcome"]
    for _ in range(rows):
        a, b, kind, sex = draw.gauss(0, 1), draw.gauss(0, 1), draw.choice("xyz"), draw.choice(["Female", "Male"])
        chance = 1 / (1 + math.exp(-(1.5 * a - b + (0.5 if sex == "Male" else -0.5) + (kind == "x"))))
        lines.append(f"{a:.4f},{b:.4f},{kind},{sex},{'yes' if draw.random() < chance else 'no'}")
    return "\n".join(lines).encode()


@dataclass
class Desk:
    """An analyst with a database, a storage and settings."""

    database: Database
    storage: Storage
    settings: Settings
    principal: Principal

    @classmethod
    def of(cls, database: Database, settings: Settings) -> Desk:
        with database.transaction() as session:
            person = make_person(session)
        return cls(database, Storage(settings), settings, principal_of(person))

    def upload(self, content: bytes, file_name: str = "small.csv", **more: Any) -> str:
        file = datasets.Upload(file_name, io.BytesIO(content))
        with self.database.transaction() as session:
            row = datasets.receive(session, self.storage, self.settings, self.principal, file, **more)
        return str(row["id"])

    def dataset(self, dataset_id: str) -> dict[str, Any]:
        with self.database.transaction() as session:
            return datasets.get_dataset(session, self.principal, dataset_id)

    def wait_read(self, dataset_id: str) -> dict[str, Any]:
        wait_for(lambda: self.dataset(dataset_id)["state"] != "received", 60)
        return self.dataset(dataset_id)

    def give_roles(self, dataset_id: str, roles: dict[str, Any] | None = None) -> str | None:
        with self.database.transaction() as session:
            recipe_id = datasets.put_roles(session, self.principal, dataset_id, roles or ROLES)
        return datasets.wait_for_groups(self.database, recipe_id, seconds=60)

    def start(self, dataset_id: str, **question: Any) -> str:
        body: dict[str, Any] = {
            "dataset": dataset_id,
            "methods": ["dp-sgd"],
            "epsilons": [1.0, 2.0],
            "seeds": 2,
            "network": {"kind": "mlp", "hidden": [8]},
            "training": {"epochs": 2, "batch_size": 64, "learning_rate": 0.1, "clip": 1.0},
        }
        with self.database.transaction() as session:
            return str(audits.start(session, self.settings, self.principal, body | question)["id"])

    def audit(self, audit_id: str) -> Audit:
        with self.database.transaction() as session:
            return session.get_one(Audit, audit_id)

    def stacks(self, audit_id: str) -> list[Stack]:
        with self.database.transaction() as session:
            return list(session.scalars(select(Stack).where(Stack.audit_id == audit_id).order_by(Stack.number)))

    def wait_state(self, audit_id: str, *states: str, seconds: float = 90) -> Audit:
        wait_for(lambda: self.audit(audit_id).state in states, seconds)
        return self.audit(audit_id)

    def kinds(self, stream: str) -> list[str]:
        with self.database.transaction() as session:
            return list(session.scalars(select(Event.kind).where(Event.stream == stream).order_by(Event.number)))


def principal_of(person: Person) -> Principal:
    return Principal(person.id, person.team_id, person.name, person.role, frozenset({"read", "run"}), "session")


def numbers(database: Database, audit_id: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every stored number of an audit, bit for bit, in an order of its own."""
    with database.transaction() as session:
        return {
            "statistics": _rows(session, Statistic, audit_id, ("id",)),
            "measurements": _rows(session, Measurement, audit_id, ("id",)),
            "runs": _rows(session, Run, audit_id, ("created_at",)),
        }


def _rows(session: Session, table: Any, audit_id: str, leave_out: Sequence[str]) -> list[tuple[Any, ...]]:
    columns = [column for column in table.__table__.columns if column.name not in leave_out]
    found = session.execute(select(*columns).where(table.audit_id == audit_id))
    return sorted(tuple(repr(value) for value in row) for row in found)


def begin_again(database: Database, audit_id: str) -> None:
    """The audit as it was when it had just been planned: the twin that nothing disturbs."""
    with database.transaction() as session:
        session.execute(delete(Statistic).where(Statistic.audit_id == audit_id))
        session.execute(delete(Measurement).where(Measurement.audit_id == audit_id))
        session.execute(update(Run).where(Run.audit_id == audit_id).values(state="waiting", reason=None))
        fresh = {"state": "waiting", "attempt": 0, "lease_until": None, "worker": None, "step": 0, "asked_at": None}
        session.execute(update(Stack).where(Stack.audit_id == audit_id).values(**fresh))
        audit = session.get_one(Audit, audit_id)
        audit.state, audit.measured_stacks, audit.finished_at = "queued", 0, None
