"""Every route and page, as every role, by browser and by token, and as nobody, against the one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from backend.database import Database
from backend.edge import cookie_name
from backend.people import service
from backend.permissions import ACCESS, Access, as_markdown, may
from backend.settings import Settings
from frontend.charts.catalogue import CHARTS

ROLES = ("analyst", "dpo", "auditor", "admin")
SCOPES = {"analyst": "read run", "dpo": "read decide oversee", "auditor": "read oversee", "admin": "read oversee"}
"""What a token with every scope holds, written down by hand: never admin."""
UNKNOWN = "0" * 32
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SAME = {"Sec-Fetch-Site": "same-origin"}

EXPECTED = {
    "GET /api/v1/audits": "analyst dpo auditor admin",
    "POST /api/v1/audits": "analyst",
    "DELETE /api/v1/datasets/{dataset_id}": "analyst admin",
    "GET /activity": "dpo auditor admin",
    "POST /api/v1/people": "admin",
    "POST /team/people/{person_id}/link": "admin",
    "GET /api/v1/people": "analyst dpo auditor admin",
    "POST /tokens": "analyst dpo auditor admin",
    "GET /sign-in": "nobody analyst dpo auditor admin",
}
"""A few lines written by hand, so that a slip in the table itself shows."""


def routes(app: FastAPI) -> Iterator[str]:
    """Every route that the app serves, as `METHOD /path`."""
    for included in app.routes:
        for route in getattr(included, "original_router", app.router).routes if included is not None else ():
            assert isinstance(route, APIRoute), route
            for method in sorted(route.methods):
                yield f"{method} {route.path}"


class Walker:
    """Asks as somebody: by a browser session, by a token, or as nobody."""

    def __init__(self, app: FastAPI, settings: Settings, database: Database, persons: dict[str, str]) -> None:
        self.app, self.settings, self.database, self.persons = app, settings, database, persons
        self.clients: dict[tuple[str, str], TestClient] = {}
        self.values = {"name": "opening", "key": CHARTS[0].key, "version": "x", "name:path": "css/base.css"}

    def client(self, who: str, way: str) -> TestClient:
        if who == "nobody":
            return TestClient(self.app, headers=SAME, raise_server_exceptions=False, follow_redirects=False)
        with self.database.transaction() as session:
            if way == "token":
                scopes = ("read", "run", "decide")
                secret = service.make_token(session, self.persons[who], name="walk", scopes=scopes)
            else:
                secret = service.redeem_link(session, service.make_link(session, self.persons[who]))
        same: dict[str, Any] = {"raise_server_exceptions": False, "follow_redirects": False}
        if way == "token":
            return TestClient(self.app, headers={"Authorization": f"Bearer {secret}"}, **same)
        return TestClient(self.app, cookies={cookie_name(self.settings): secret}, headers=SAME, **same)

    def address(self, path: str, ids: dict[str, str]) -> str:
        if "{secret}" in path:
            with self.database.transaction() as session:
                ids = ids | {"secret": service.make_link(session, self.persons["analyst"])}
        for name, value in (self.values | ids).items():
            path = path.replace(f"{{{name}}}", value)
        for name in ("dataset_id", "audit_id", "token_id", "session_id", "person_id", "team_id"):
            path = path.replace(f"{{{name}}}", UNKNOWN)
        assert "{" not in path, path
        return path

    def ask(
        self, route: str, who: str, way: str = "session", ids: dict[str, str] | None = None, query: str = ""
    ) -> Any:
        method, _, path = route.partition(" ")
        self.app.state.closing = True  # so that a stream of events says hello and ends
        json = path.startswith("/api/") and method in ("POST", "PUT", "PATCH")
        body: dict[str, Any] = {"json": {}} if json else {"headers": FORM} if method == "POST" else {}
        if (who, way) not in self.clients:
            self.clients[who, way] = self.client(who, way)
        client = self.clients[who, way]
        if "sign" in path or "sessions" in path:  # may end the session or begin another
            del self.clients[who, way]
        return client.request(method, self.address(path, ids or {}) + query, **body)


@pytest.fixture
def walker(app: FastAPI, settings: Settings, database: Database, persons: dict[str, str]) -> Walker:
    return Walker(app, settings, database, persons)


def test_every_route_has_a_line_and_every_line_a_route(app: FastAPI) -> None:
    served = list(routes(app))
    assert len(served) == len(set(served))
    assert set(served) == set(ACCESS)


def test_the_page_of_the_documents_is_made_from_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "permissions.md"
    assert page.read_text("utf-8") == as_markdown(), "Run: counterpoise permissions > docs/permissions.md"


@pytest.mark.parametrize("route", EXPECTED)
def test_the_table_says_what_was_meant(route: str) -> None:
    access = ACCESS[route]
    found = ["nobody"] * access.open + [role for role in ROLES if may(role, access)]
    assert " ".join(found) == EXPECTED[route]


def expected(access: Access, who: str, way: str) -> int | None:
    """401, 403, or None for let through."""
    if access.open:
        return None
    if who == "nobody":
        return 401
    if way == "token":
        inside = not access.needs or bool(set(access.needs) & set(SCOPES[who].split()))
        return None if inside and not access.session_only else 403
    return None if may(who, access) else 403


@pytest.mark.parametrize(
    ("who", "way"), [("nobody", ""), *((role, way) for role in ROLES for way in ("session", "token"))]
)
def test_every_route_as(walker: Walker, who: str, way: str) -> None:
    wrong = []
    for route, access in ACCESS.items():
        status = walker.ask(route, who, way).status_code
        wanted = expected(access, who, way)
        fits = status == wanted if wanted else status not in (401, 403) and status < 500
        if not fits:
            wrong.append((route, status, wanted or "let through"))
    assert wrong == []


def test_a_route_without_a_line_opens_to_nobody(walker: Walker, monkeypatch: pytest.MonkeyPatch) -> None:
    left = {route: access for route, access in ACCESS.items() if route != "GET /datasets"}
    monkeypatch.setattr("backend.permissions.ACCESS", left)
    assert [walker.ask("GET /datasets", role).status_code for role in ROLES] == [403] * 4


AUDIT = {"methods": ["non-private", "dp-sgd"], "epsilons": [1], "seeds": 3}


def test_another_teams_ids_answer_404_everywhere(walker: Walker, analyst: TestClient, ready: str) -> None:
    audit = analyst.post("/api/v1/audits", json=AUDIT | {"dataset": ready})
    assert audit.status_code == 201, audit.text
    token = analyst.get("/api/v1/tokens").json()["items"][0]["id"]
    with walker.database.transaction() as session:
        secret = service.redeem_link(session, service.make_link(session, walker.persons["analyst"]))
        own = service.principal_of_session(session, secret)
        assert own is not None
    ids = {"dataset_id": ready, "audit_id": audit.json()["id"], "token_id": token, "session_id": own.way_id}
    wrong, walked = [], 0
    for route in (
        route for route, access in ACCESS.items() if any(name in route for name in ids) and may("analyst", access)
    ):
        walked += 1
        real, unknown = (walker.ask(route, "stranger", ids=given) for given in (ids, {}))
        if real.status_code != 404 or unknown.status_code != 404 or real.text != unknown.text:
            wrong.append((route, real.status_code, unknown.status_code))
    for query in (f"?audit={ids['audit_id']}", f"?dataset={ready}"):
        assert walker.ask("GET /api/v1/events", "stranger", query=query).status_code == 404
    assert walker.ask("GET /audits/new", "stranger", query=f"?dataset={ready}").status_code == 404
    assert walker.ask("GET /audits/new", "analyst", query=f"?dataset={ready}").status_code == 200
    assert wrong == []
    assert walked > 25


def test_an_admin_sees_the_objects_of_their_own_team_alone(
    walker: Walker, client_of: Callable[[str], TestClient], ready: str
) -> None:
    with walker.database.transaction() as session:
        from backend.tables import Person, Team

        other = session.query(Team).filter(Team.name == "Other").one()
        session.get_one(Person, walker.persons["admin"]).team_id = other.id
    assert walker.ask("GET /api/v1/datasets/{dataset_id}", "admin", ids={"dataset_id": ready}).status_code == 404
