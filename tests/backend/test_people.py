"""Who gets in, what they may do, and what they may see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update

from backend.database import Database
from backend.edge import cookie_name
from backend.errors import InputProblem, NotAllowed, NotFound, NotSignedIn
from backend.people import service
from backend.people.service import Principal, fetch_owned, require
from backend.settings import Settings
from backend.tables import BrowserSession, Dataset, Person, SignInLink, Token

Client = TestClient
SAME = {"Sec-Fetch-Site": "same-origin"}


def principal(database: Database, person_id: str) -> Principal:
    with database.transaction() as session:
        found = service.principal_of_token(session, service.make_token(session, person_id, name="t"))
    assert found is not None
    return found


def test_a_link_signs_in_once_and_looking_does_not_burn_it(database: Database, persons: dict[str, str]) -> None:
    with database.transaction() as session:
        secret = service.make_link(session, persons["analyst"])
    for _ in range(3):
        with database.transaction() as session:
            assert service.link_is_open(session, secret)
    with database.transaction() as session:
        cookie = service.redeem_link(session, secret)
        found = service.principal_of_session(session, cookie)
        assert found is not None
        assert found.role == "analyst"
    with database.transaction() as session, pytest.raises(NotSignedIn):
        service.redeem_link(session, secret)
    with database.transaction() as session:
        assert not service.link_is_open(session, secret)
        stored = {row.secret_hash for row in session.query(SignInLink)}
        assert secret not in stored


def test_expired_and_unknown_links_do_not_sign_in(database: Database, persons: dict[str, str]) -> None:
    with database.transaction() as session:
        secret = service.make_link(session, persons["dpo"])
        session.execute(update(SignInLink).values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    for wrong in (secret, "", "\ud800", "x" * 10_000):
        with database.transaction() as session, pytest.raises(NotSignedIn):
            service.redeem_link(session, wrong)


def test_a_browser_session_opens_rest_until_it_is_revoked(
    app: FastAPI, settings: Settings, database: Database, persons: dict[str, str]
) -> None:
    with database.transaction() as session:
        secret = service.redeem_link(session, service.make_link(session, persons["dpo"]))
    browser = TestClient(app, cookies={cookie_name(settings): secret}, headers=SAME)
    assert browser.get("/api/v1/me").json()["permissions"] == ["decide", "oversee", "read"]
    made = browser.post("/api/v1/tokens", json={"name": "gate\n<b>", "scopes": ["read"], "days": 7})
    assert made.status_code == 201
    tool = TestClient(app, headers={"Authorization": f"Bearer {made.json()['token']}"})
    assert tool.get("/api/v1/me").json()["permissions"] == ["oversee", "read"]
    assert tool.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}).status_code == 403
    listed = browser.get("/api/v1/tokens").json()["items"]
    assert [item["name"] for item in listed] == ["gate <b>"]
    assert listed[0]["last_used_at"] is not None
    assert browser.delete(f"/api/v1/tokens/{listed[0]['id']}").status_code == 204
    assert tool.get("/api/v1/me").status_code == 401
    with database.transaction() as session:
        service.sign_out(session, secret)
    assert browser.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "x", "scopes": "read"}, "scopes"),
        ({"name": "x", "scopes": ["admin"]}, "scopes"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": ["read"], "days": 4000}, "days"),
        ({"name": "x", "scopes": ["read"], "days": "7"}, "days"),
        ({"name": "\u0000", "scopes": ["read"]}, "name"),
    ],
)
def test_a_token_that_cannot_be_made(
    app: FastAPI, settings: Settings, database: Database, persons: dict[str, str], body: dict, field: str
) -> None:
    with database.transaction() as session:
        secret = service.redeem_link(session, service.make_link(session, persons["dpo"]))
    answer = TestClient(app, cookies={cookie_name(settings): secret}, headers=SAME).post("/api/v1/tokens", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


@pytest.mark.parametrize("header", ["Bearer nonsense", "Basic eDp5", "Bearer", "Bearer \u00e9", ""])
def test_a_wrong_header_is_nobody(app: FastAPI, header: str) -> None:
    answer = TestClient(app, headers={"Authorization": header.encode("latin-1")}).get("/api/v1/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_expired_tokens_sessions_and_inactive_people_are_nobody(
    client_of: Callable[[str], Client], database: Database, persons: dict[str, str]
) -> None:
    with database.transaction() as session:
        cookie = service.redeem_link(session, service.make_link(session, persons["analyst"]))
        session.execute(update(BrowserSession).values(expires_at=datetime.now(UTC)))
        session.execute(update(Token).where(Token.person_id == persons["analyst"]).values(expires_at=datetime.now(UTC)))
        session.execute(update(Person).where(Person.id == persons["dpo"]).values(active=False))
    with database.transaction() as session:
        assert service.principal_of_session(session, cookie) is None
    assert client_of("analyst").get("/api/v1/me").status_code == 401
    assert client_of("dpo").get("/api/v1/me").status_code == 401
    assert client_of("auditor").get("/api/v1/me").status_code == 200


def test_one_function_decides_who_sees_what(
    database: Database, persons: dict[str, str], dataset: dict[str, str]
) -> None:
    people = {name: principal(database, person) for name, person in persons.items()}
    with database.transaction() as session:
        for name in ("analyst", "dpo", "auditor", "admin"):
            assert fetch_owned(session, people[name], Dataset, dataset["id"]).id == dataset["id"]
        with pytest.raises(NotFound):
            fetch_owned(session, people["stranger"], Dataset, dataset["id"])
        for strange in ("", "x" * 40, "\0", "'; --", "\ud800"):
            with pytest.raises(NotFound):
                fetch_owned(session, people["dpo"], Dataset, strange)


def test_permissions_of_roles() -> None:
    for role, held in service.PERMISSIONS_OF_ROLE.items():
        someone = Principal("p", "t", "Ada", role, held, "session")
        for permission in ("read", "run", "decide", "oversee", "admin"):
            if permission in held:
                require(someone, permission)  # type: ignore[arg-type]  # a loop over the four
            else:
                with pytest.raises(NotAllowed):
                    require(someone, permission)  # type: ignore[arg-type]  # a loop over the four


def test_demo_people_are_made_once(database: Database, settings: Settings) -> None:
    with database.transaction() as session:
        first = service.ensure_demo_people(session, settings)
    with database.transaction() as session:
        assert service.ensure_demo_people(session, settings) == first
    assert set(first) == {"analyst", "dpo", "admin"}


def test_tokens_for_nobody_are_refused(database: Database) -> None:
    with database.transaction() as session, pytest.raises(NotFound):
        service.make_token(session, "0" * 32, name="x")
    with database.transaction() as session, pytest.raises(InputProblem):
        service.make_token(session, "0" * 32, name="x", scopes=["everything"])
