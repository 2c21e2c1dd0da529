"""An app over the session's services, people of two teams, and a client for each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.database import Database
from backend.people import service as people
from backend.queue import COUNT_GROUPS, READ_DATASET
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Person, Team
from tests.backend.samples import CSV, ROLES
from tests.conftest import RecordingQueue
from worker.tasks import count_groups, read_dataset
from worker.tasks.context import Context

Client = TestClient


@pytest.fixture
def app(settings: Settings, database: Database) -> Iterator[FastAPI]:
    app = create_app(settings)
    app.state.database.engine.dispose()
    app.state.database = database
    yield app
    app.state.queue.close()


@pytest.fixture
def persons(database: Database) -> dict[str, str]:
    """Ids of an analyst, a DPO, an auditor and an admin of one team, and of another team's analyst."""
    with database.transaction() as session:
        ids = {}
        for team, roles in (("Fairness", ("analyst", "dpo", "auditor", "admin")), ("Other", ("analyst",))):
            row = Team(name=team)
            session.add(row)
            session.flush()
            for role in roles:
                person = Person(team_id=row.id, name=f"{team} {role}", role=role)
                session.add(person)
                session.flush()
                ids[role if team == "Fairness" else "stranger"] = person.id
    return ids


@pytest.fixture
def tokens(database: Database, persons: dict[str, str]) -> dict[str, str]:
    with database.transaction() as session:
        return {
            name: people.make_token(session, person, name=name, scopes=("read", "run", "decide"))
            for name, person in persons.items()
        }


@pytest.fixture
def client_of(app: FastAPI, tokens: dict[str, str]) -> Callable[[str], Client]:
    def client(name: str) -> Client:
        headers = {} if name == "nobody" else {"Authorization": f"Bearer {tokens[name]}"}
        return TestClient(app, headers=headers, raise_server_exceptions=False)

    return client


@pytest.fixture
def analyst(client_of: Callable[[str], Client]) -> Client:
    return client_of("analyst")


@pytest.fixture
def context(settings: Settings, database: Database) -> Context:
    return Context(settings, database, Storage(settings), "a test", threading.Event())


@pytest.fixture
def work(context: Context, queue: RecordingQueue) -> Callable[[], None]:
    """Does the light jobs that were asked for so far; tables are read in the warm child."""

    def work() -> None:
        while queue.sent:
            job, row_id, _ = queue.sent.pop(0)
            if job == READ_DATASET:
                read_dataset.run(context, row_id)
            elif job == COUNT_GROUPS:
                count_groups.run(context, row_id)

    return work


@pytest.fixture
def dataset(analyst: Client, work: Callable[[], None]) -> dict[str, Any]:
    """A small table, uploaded and read."""
    made = analyst.post("/api/v1/datasets", files={"file": ("people.csv", CSV)})
    assert made.status_code == 201, made.text
    work()
    return dict(analyst.get(f"/api/v1/datasets/{made.json()['id']}").json())


@pytest.fixture
def ready(analyst: Client, dataset: dict[str, Any], work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> str:
    """Id of a dataset whose groups are counted."""
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.0)
    given = analyst.put(f"/api/v1/datasets/{dataset['id']}/roles", json=ROLES)
    assert given.status_code == 200, given.text
    work()
    return str(dataset["id"])
