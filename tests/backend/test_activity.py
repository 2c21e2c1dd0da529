"""The activity log: what is written, that it cannot be changed, and that a change shows all the same."""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from backend import chain
from backend.activity.service import ACTIONS
from backend.database import Database
from backend.tables import Activity
from tests.backend.samples import ROLES

Client = TestClient
PATH = "/api/v1/activity"


@pytest.fixture
def deeds(database: Database) -> None:
    """Five rows of the program's own."""
    for number in range(5):
        with database.transaction() as session:
            chain.record(session, chain.PROGRAM, "team.made", "team", f"{number}" * 32, count=number)


def tampered(database: Database, statement: str) -> chain.Check:
    """What a check finds after the owner of the database switched the guard off and did something."""
    with database.transaction() as session:
        session.execute(text("ALTER TABLE activity DISABLE TRIGGER activity_guard"))
        session.execute(text(statement))
        session.execute(text("ALTER TABLE activity ENABLE TRIGGER activity_guard"))
    with database.transaction() as session:
        return chain.check(session)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE activity SET action = 'x'",
        "DELETE FROM activity",
        "TRUNCATE activity",
        "DELETE FROM activity WHERE false",
    ],
)
def test_the_database_refuses_changes(database: Database, deeds: None, statement: str) -> None:
    with pytest.raises(ProgrammingError, match="append-only"), database.transaction() as session:
        session.execute(text(statement))
    with database.transaction() as session:
        assert chain.check(session).rows == 5


@pytest.mark.parametrize(
    ("statement", "broken_at", "reason"),
    [
        ("DELETE FROM activity WHERE number = 3", 3, "a row is missing"),
        ("DELETE FROM activity WHERE number = 1", 1, "a row is missing"),
        ("UPDATE activity SET action = 'team.renamed' WHERE number = 2", 2, "the row was changed"),
        ("UPDATE activity SET details = '{}' WHERE number = 4", 4, "the row was changed"),
        ("UPDATE activity SET at = at + interval '1 microsecond' WHERE number = 4", 4, "the row was changed"),
        ("UPDATE activity SET previous_hash = repeat('0', 64) WHERE number = 5", 5, "the row before it was replaced"),
    ],
)
def test_a_removed_or_changed_row_shows(
    database: Database, deeds: None, client_of: Callable[[str], Client], statement: str, broken_at: int, reason: str
) -> None:
    found = tampered(database, statement)
    assert (found.broken_at, found.reason) == (broken_at, reason)
    said = client_of("auditor").get(f"{PATH}/check").json()
    assert (said["whole"], said["broken_at"], said["reason"]) == (False, broken_at, reason)


def test_a_row_written_anew_with_its_hash_breaks_the_next(database: Database, deeds: None) -> None:
    with database.transaction() as session:
        row = session.get_one(Activity, 3)
        session.expunge(row)
        row.action = "team.renamed"
        forged = chain.hash_of(row)
    found = tampered(database, f"UPDATE activity SET action = 'team.renamed', hash = '{forged}' WHERE number = 3")
    assert (found.broken_at, found.reason) == (4, "the row before it was replaced")


def test_a_cut_end_shows(database: Database, deeds: None) -> None:
    found = tampered(database, "DELETE FROM activity WHERE number = 5")
    assert (found.broken_at, found.reason) == (5, "the log was cut at its end")


def test_an_export_can_be_checked_by_anybody(analyst: Client, client_of: Callable[[str], Client], ready: str) -> None:
    rows = list(csv.DictReader(io.StringIO(client_of("dpo").get(f"{PATH}.csv").text)))[::-1]
    before, names = "0" * 64, ("action", "person_id", "team_id", "via", "address", "object_kind", "object_id")
    for number, row in enumerate(rows, 1):
        content: list[Any] = [
            number,
            row["at"],
            *(row[name] or None for name in names),
            json.loads(row["details"]),
            before,
        ]
        content[6] = row["address"]
        spelled = json.dumps(content, sort_keys=True, separators=(",", ":"))
        before = hashlib.sha256(spelled.encode()).hexdigest()
        assert row["hash"] == before
    assert len(rows) > 5


def test_many_at_once_make_one_chain(database: Database, engine: Engine) -> None:
    def deed(number: int) -> None:
        with database.transaction() as session:
            chain.record(session, chain.PROGRAM, "team.made", count=number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(deed, range(60)))
    with database.transaction() as session:
        found = chain.check(session)
    assert (found.rows, found.number, found.reason) == (60, 60, None)


def test_what_did_not_happen_is_not_written(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as session:
            chain.record(session, chain.PROGRAM, "team.made")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.transaction() as session:
        assert chain.check(session).rows == 0


def test_deeds_of_datasets_and_audits_are_written_without_a_cell(
    analyst: Client, client_of: Callable[[str], Client], ready: str, persons: dict[str, str]
) -> None:
    question = {"dataset": ready, "methods": ["non-private", "dp-sgd"], "epsilons": [1], "seeds": 3}
    audit = analyst.post("/api/v1/audits", json=question).json()["id"]
    assert analyst.post(f"/api/v1/audits/{audit}/stop").status_code == 200
    assert analyst.post(f"/api/v1/audits/{audit}/resume").status_code == 200
    assert analyst.get(f"/api/v1/audits/{audit}/runs.csv").status_code == 200
    assert analyst.put(f"/api/v1/datasets/{ready}/roles", json=ROLES | {"target": None}).status_code == 422
    analyst.post(f"/api/v1/audits/{audit}/stop")
    for address in (f"audits/{audit}", f"audits/{audit}", f"datasets/{ready}", f"datasets/{ready}"):
        assert analyst.delete(f"/api/v1/{address}").status_code == 200
    dpo = client_of("dpo")
    rows = dpo.get(PATH, params={"person": persons["analyst"], "limit": 200}).json()["items"][::-1]
    deeds = [row["action"] for row in rows if not row["action"].startswith("token.")]
    assert deeds == [
        "dataset.added", "dataset.roles", "audit.started", "audit.stopped", "audit.resumed", "table.asked",
        "audit.stopped", "audit.erased", "dataset.erased",
    ]  # fmt: skip
    assert {row["address"] for row in rows if row["via"] == "token"} == {"testclient"}
    everything = json.dumps(rows)
    assert "income" not in everything
    assert "people.csv" not in everything
    assert {row["person"] for row in rows} == {"Fairness analyst"}


def test_filters_and_pages(database: Database, deeds: None, client_of: Callable[[str], Client]) -> None:
    dpo = client_of("dpo")

    def found(**query: object) -> list[int]:
        answer = dpo.get(PATH, params={"action": "team.", **query})
        assert answer.status_code == 200, answer.text
        return [row["number"] for row in answer.json()["items"]]

    everything = found()
    assert everything == sorted(everything, reverse=True)
    assert len(everything) == 5
    assert found(object="3" * 32) == [4]
    assert found(person="0" * 32) == []
    assert found(action="sign-in.") == []
    assert found(since="2020-01-01", until="2100-01-01") == everything
    assert found(until="2020-01-01") == []
    first = dpo.get(PATH, params={"action": "team.made", "limit": 3}).json()
    rest = dpo.get(PATH, params={"action": "team.made", "limit": 3, "cursor": first["next"]}).json()
    assert [row["number"] for page in (first, rest) for row in page["items"]] == everything
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("since", "yesterday"),
        ("until", "2026-13-01"),
        ("action", "sing"),
        ("person", "'; --"),
        ("object", "\u00e9"),
        ("cursor", "x"),
        ("strange", "1"),
    ],
)
def test_filters_that_cannot_be_used(client_of: Callable[[str], Client], name: str, value: str) -> None:
    answer = client_of("dpo").get(PATH, params={name: value})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == name


def test_every_action_in_the_code_has_words_and_every_word_a_deed() -> None:
    named = {"invitation.accepted", "reset.accepted"}  # made of the purpose of a link
    for path in (Path(__file__).parents[2] / "backend").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) == "record":
                words = [
                    node.value
                    for argument in call.args
                    for node in ast.walk(argument)
                    if isinstance(node, ast.Constant)
                ]
                named |= {str(word) for word in words if re.fullmatch(r"[a-z-]+\.[a-z-]+", str(word))}
    assert named == set(ACTIONS)
