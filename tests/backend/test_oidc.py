"""OpenID Connect against an issuer that runs beside the test: who gets in, and every answer that must not be believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError

from backend.database import Database
from backend.people.oidc import Provider
from backend.settings import Settings
from backend.tables import Activity, Person
from tests.issuer import CLIENT, SECRET, Issuer, running_issuer

BASE = "http://testserver"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@pytest.fixture
def use(app: FastAPI, settings: Settings, issuer: Issuer) -> Callable[..., TestClient]:
    """The app with this issuer set, and a browser before it."""

    def client(**more: Any) -> TestClient:
        given = {
            "oidc_issuer": issuer.address,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SECRET,
            "base_url": BASE,
        }
        app.state.settings = settings.model_copy(update=given | more)
        app.state.provider = Provider(app.state.settings)
        return TestClient(app, base_url=BASE, follow_redirects=False, headers={"Sec-Fetch-Site": "none"})

    return client


def through(browser: TestClient, next_path: str = "/") -> Any:
    """To the issuer and back, as a browser goes; the answer to the return."""
    import requests

    out = browser.get("/sign-in/oidc", params={"next": next_path})
    assert out.status_code == 303
    back = requests.get(out.headers["location"], allow_redirects=False, timeout=10)
    return browser.get(back.headers["location"])


@pytest.fixture
def invited(database: Database, persons: dict[str, str]) -> str:
    with database.transaction() as session:
        session.get_one(Person, persons["dpo"]).email = "ada@example.org"
    return persons["dpo"]


def test_an_invited_person_gets_in_and_is_known_by_subject_later(
    use: Callable[..., TestClient], issuer: Issuer, invited: str, database: Database
) -> None:
    browser = use()
    assert "Single sign-on" in browser.get("/sign-in").text
    answer = through(browser, "/datasets?q=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/datasets?q=1")
    assert "HttpOnly" in answer.headers["set-cookie"]
    me = browser.get("/api/v1/me").json()
    assert (me["id"], me["role"]) == (invited, "dpo")
    issuer.person |= {"email": "new-address@example.org"}
    later = use()
    assert through(later).status_code == 303
    assert later.get("/api/v1/me").json()["id"] == invited
    assert issuer.asked[0]["code_challenge"] != issuer.asked[1]["code_challenge"]
    with database.transaction() as session:
        actions = [row.action for row in session.query(Activity).order_by(Activity.number)]
    assert actions == ["provider.linked", "sign-in.done", "sign-in.done"]


def test_strangers_are_refused_or_taken_in_as_the_settings_say(
    use: Callable[..., TestClient], issuer: Issuer, persons: dict[str, str]
) -> None:
    refused = through(use())
    assert refused.status_code == 403
    assert "Nobody has invited this account" in refused.text
    newcomer = use(oidc_newcomers="auditor")
    assert through(newcomer).status_code == 303
    assert newcomer.get("/api/v1/me").json()["role"] == "auditor"


def test_an_address_that_is_not_verified_opens_no_account(
    use: Callable[..., TestClient], issuer: Issuer, invited: str
) -> None:
    for said in (False, None, "true"):
        issuer.person["email_verified"] = said
        assert through(use()).status_code == 403


def test_switched_off_and_another_subject_are_refused(
    use: Callable[..., TestClient], issuer: Issuer, invited: str, database: Database
) -> None:
    assert through(use()).status_code == 303
    issuer.person["sub"] = "mallory"
    assert "belongs to another sign-in" in through(use()).text
    issuer.person["sub"] = "ada-1"
    with database.transaction() as session:
        session.get_one(Person, invited).active = False
    off = through(use())
    assert off.status_code == 403
    assert "switched off" in off.text


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"clock_off": -3600}, "their clocks differ"),
        ({"clock_off": 3600}, "their clocks differ"),
        ({"changes": {"nonce": "another"}}, "does not hold"),
        ({"changes": {"aud": "another"}}, "does not hold"),
        ({"changes": {"iss": "https://evil.example"}}, "does not hold"),
        ({"foreign_key": True}, "does not hold"),
        ({"refuses": True}, "did not sign you in"),
    ],
)
def test_an_answer_that_must_not_be_believed(
    use: Callable[..., TestClient], issuer: Issuer, invited: str, fault: dict[str, Any], said: str
) -> None:
    for name, value in fault.items():
        setattr(issuer, name, value)
    browser = use()
    answer = through(browser)
    assert answer.status_code == 401
    assert said in answer.text
    assert browser.get("/api/v1/me").status_code == 401


def test_clocks_may_differ_a_little(use: Callable[..., TestClient], issuer: Issuer, invited: str) -> None:
    for off in (-60, 60):
        issuer.clock_off = off
        assert through(use()).status_code == 303


def test_a_key_that_was_turned_is_fetched(use: Callable[..., TestClient], issuer: Issuer, invited: str) -> None:
    browser = use()
    assert through(browser).status_code == 303
    issuer.turn_key()
    assert through(browser).status_code == 303


def test_only_the_browser_that_began_can_finish_and_only_once(
    use: Callable[..., TestClient], issuer: Issuer, invited: str
) -> None:
    import requests

    browser, other = use(), TestClient(use().app, base_url=BASE, follow_redirects=False)
    back = requests.get(browser.get("/sign-in/oidc").headers["location"], allow_redirects=False, timeout=10)
    stolen = other.get(back.headers["location"])
    assert stolen.status_code == 401
    assert "was not begun in this browser" in stolen.text
    assert browser.get(back.headers["location"]).status_code == 303
    again = browser.get(back.headers["location"])
    assert again.status_code == 401
    crossed = use()
    crossed.get("/sign-in/oidc")
    assert crossed.get(back.headers["location"]).status_code == 401
    assert crossed.get("/sign-in/oidc/callback?state=\u00e9&code=x").status_code == 401


def test_an_issuer_that_is_away_or_names_another(use: Callable[..., TestClient], issuer: Issuer) -> None:
    assert use(oidc_issuer="http://127.0.0.1:9").get("/sign-in/oidc").status_code == 503
    assert use(oidc_issuer=f"{issuer.address}/").get("/sign-in/oidc").status_code == 503


def test_nobody_is_sent_elsewhere(use: Callable[..., TestClient], issuer: Issuer, invited: str) -> None:
    for wanted in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:1", "/sign-out", "/a\nb"):
        assert through(use(), wanted).headers["location"] == "/"


@pytest.mark.parametrize(
    "given",
    [
        {"oidc_issuer": "https://id.example"},
        {"oidc_issuer": "http://id.example", "oidc_client_id": "x", "mode": "production"},
        {"smtp_url": "https://mail.example"},
        {"smtp_url": "smtp://mail.example"},
    ],
)
def test_settings_that_do_not_fit_are_refused_at_start(settings: Settings, given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Settings(**(settings.model_dump(exclude={"cookie_secure"}) | given))
