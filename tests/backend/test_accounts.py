"""Accounts: invitations, passwords, resets, locks, sessions, teams, mails."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update

from backend.database import Database
from backend.edge import browser_name, cookie_name
from backend.people import passwords, service
from backend.settings import Settings
from backend.tables import Activity, BrowserSession, Person, SignInCount, SignInLink
from tests.backend.mail_server import mail_server
from tests.frontend.test_pages import check_page

SAME = {"Sec-Fetch-Site": "same-origin"}
WORD = "a quiet river at dusk"
EMAIL = "ada@example.org"


@pytest.fixture
def browser(app: FastAPI) -> Callable[[], TestClient]:
    """A fresh browser: cookies of its own, no redirects followed."""
    return lambda: TestClient(app, headers=SAME, follow_redirects=False, raise_server_exceptions=False)


@pytest.fixture
def signed(
    browser: Callable[[], TestClient], database: Database, settings: Settings, persons: dict[str, str]
) -> Callable[[str], TestClient]:
    """A browser in which somebody is signed in."""

    def client(name: str) -> TestClient:
        with database.transaction() as session:
            secret = service.redeem_link(session, service.make_link(session, persons[name]))
        found = browser()
        found.cookies.set(cookie_name(settings), secret)
        return found

    return client


@pytest.fixture
def ada(signed: Callable[[str], TestClient], browser: Callable[[], TestClient]) -> str:
    """Id of an analyst who was invited and chose a password."""
    made = signed("admin").post("/api/v1/people", json={"name": "Ada", "email": "Ada@Example.org", "role": "analyst"})
    assert made.status_code == 201, made.text
    path = made.json()["link"].removeprefix("http://127.0.0.1:8000")
    done = browser().post(path, data={"name": "Ada", "password": WORD, "again": WORD})
    assert done.status_code == 303, done.text
    return str(made.json()["id"])


def sign_in(client: TestClient, password: str = WORD, email: str = EMAIL, **more: str) -> Any:
    return client.post("/sign-in", data={"email": email, "password": password} | more)


def test_an_invitation_makes_an_account_once(
    signed: Callable[[str], TestClient], browser: Callable[[], TestClient], database: Database
) -> None:
    admin = signed("admin")
    made = admin.post("/api/v1/people", json={"name": "Ada", "email": EMAIL, "role": "dpo"}).json()
    assert (made["state"], made["mailed"]) == ("invited", False)
    path = made["link"].removeprefix("http://127.0.0.1:8000")
    guest = browser()
    assert "makes your account as data-protection officer" in guest.get(path).text
    short = guest.post(path, data={"name": "Ada", "password": "short", "again": "short"})
    assert short.status_code == 422
    assert "at least 12 characters" in short.text
    assert guest.post(path, data={"name": "", "password": WORD, "again": WORD}).status_code == 422
    assert guest.post(path, data={"name": "Ada L.", "password": WORD, "again": WORD}).headers["location"] == "/"
    assert guest.get("/api/v1/me").json()["name"] == "Ada L."
    assert browser().post(path, data={"name": "x", "password": WORD, "again": WORD}).status_code == 401
    assert browser().get(path).status_code == 401
    with database.transaction() as session:
        person = session.get_one(Person, made["id"])
        assert str(person.password_hash).startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert {"state": "active"}.items() <= admin.get("/api/v1/people").json()["items"][0].items()


def test_the_first_administrator_gives_name_email_and_password(
    browser: Callable[[], TestClient], settings: Settings, database: Database
) -> None:
    from backend.link import fresh_link

    path = fresh_link(settings.model_copy(update={"mode": "production"}), None).removeprefix(settings.base_url)
    guest = browser()
    missing = guest.post(path, data={"name": "Ada", "email": "no address", "password": WORD, "again": WORD})
    assert missing.status_code == 422
    assert "not an e-mail address" in missing.text
    assert guest.post(path, data={"name": "Ada", "email": EMAIL, "password": WORD, "again": WORD}).status_code == 303
    assert guest.get("/api/v1/me").json()["role"] == "admin"
    again = fresh_link(settings.model_copy(update={"mode": "production"}), None)
    with database.transaction() as session:
        found = service.link_person(session, again.rpartition("/")[2])
        assert found is not None
        assert (found["name"], found["purpose"]) == ("Ada", "sign-in")


@pytest.mark.parametrize(
    ("word", "again", "field"),
    [
        ("eleven char", "eleven char", "password"),
        ("x" * 201, "x" * 201, "password"),
        ("abababababab", "abababababab", "password"),
        ("I am ada.lovelace!", "I am ada.lovelace!", "password"),
        ("password1234", "password1234", "password"),
        ("qwertyuiop123", "qwertyuiop123", "password"),
        (WORD, WORD + " ", "again"),
    ],
)
def test_passwords_that_are_refused(word: str, again: str, field: str) -> None:
    with pytest.raises(passwords.InputProblem) as caught:
        passwords.check_new(word, again, "ada.lovelace@example.org")
    assert caught.value.errors[0]["field"] == field


def test_signing_in_goes_where_one_wanted_and_leaves_a_careful_cookie(
    browser: Callable[[], TestClient], ada: str, app: FastAPI, settings: Settings
) -> None:
    visitor = browser()
    page = visitor.get("/datasets?q=x")
    assert page.status_code == 401
    assert 'name="next" value="/datasets?q=x"' in page.text
    for wanted, given in (("/datasets?q=x", "/datasets?q=x"), ("//evil.example/", "/"), ("https://evil.example", "/")):
        answer = sign_in(browser(), next=wanted)
        assert (answer.status_code, answer.headers["location"]) == (303, given)
    cookie = answer.headers["set-cookie"]
    for flag in ("HttpOnly", "SameSite=lax", "Path=/", "Max-Age=1814400"):
        assert flag in cookie
    app.state.settings = settings.model_copy(update={"base_url": "https://testserver"})
    object.__setattr__(app.state.settings, "cookie_secure", True)
    over_tls = sign_in(browser()).headers["set-cookie"]
    assert over_tls.startswith("__Host-counterpoise=")
    assert "Secure" in over_tls


def test_signing_in_anew_ends_the_session_that_the_browser_had(
    browser: Callable[[], TestClient], ada: str, app: FastAPI, settings: Settings
) -> None:
    client = browser()
    sign_in(client)
    before = client.cookies[cookie_name(settings)]
    sign_in(client)
    assert client.cookies[cookie_name(settings)] != before
    assert TestClient(app, cookies={cookie_name(settings): before}).get("/api/v1/me").status_code == 401
    assert client.get("/api/v1/me").status_code == 200


def test_wrong_words_say_nothing_of_who_exists(browser: Callable[[], TestClient], ada: str, database: Database) -> None:
    said = {
        re.sub(r'value="[^"]*"', "", sign_in(browser(), word, address).text)
        for word, address in (
            ("wrong", EMAIL),
            (WORD, "bob@example.org"),
            ("", ""),
            ("\U0001f600" * 300, EMAIL),
            (WORD, "\0"),
        )
    }
    assert len(said) == 1
    assert "The e-mail address or the password is wrong" in said.pop()
    with database.transaction() as session:
        rows = [row for row in session.query(Activity) if row.action == "sign-in.failed"]
        assert {row.object_id for row in rows} == {ada, None}
        assert "example" not in str([(row.details, row.address) for row in rows])


def test_an_account_is_locked_for_a_while_and_a_link_still_works(
    browser: Callable[[], TestClient], signed: Callable[[str], TestClient], ada: str, database: Database
) -> None:
    answers = [sign_in(browser(), "wrong").status_code for _ in range(11)]
    assert answers == [422] * 10 + [429]
    locked = sign_in(browser())
    assert locked.status_code == 429
    assert 0 < int(locked.headers["retry-after"]) <= 15 * 60
    assert "Signing in is locked for 15 more minutes" in locked.text
    assert sign_in(browser(), "wrong", "bob@example.org").status_code == 422
    link = signed("admin").post(f"/api/v1/people/{ada}/link").json()["link"].removeprefix("http://127.0.0.1:8000")
    assert browser().get(link).status_code == 200
    with database.transaction() as session:
        assert session.query(Activity).filter(Activity.action == "sign-in.locked").count() == 1
        session.execute(update(SignInCount).values(since=datetime.now(UTC) - timedelta(minutes=16)))
    assert sign_in(browser()).status_code == 303
    assert [sign_in(browser(), "wrong").status_code for _ in range(3)] == [422] * 3
    assert sign_in(browser()).status_code == 303, "the right word starts the count anew"


def test_an_address_that_keeps_failing_is_refused_without_a_look(
    browser: Callable[[], TestClient], app: FastAPI, settings: Settings, ada: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.state.settings = settings.model_copy(update={"sign_in_failures": 1})
    codes = [sign_in(browser(), "wrong", f"p{number}@example.org").status_code for number in range(6)]
    assert codes == [422] * 5 + [429]

    def looked(*_: object, **__: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr("backend.people.accounts.begin_sign_in", looked)
    assert sign_in(browser()).status_code == 429


def test_a_reset_ends_sessions_and_replaces_earlier_links(
    browser: Callable[[], TestClient], signed: Callable[[str], TestClient], ada: str
) -> None:
    old, admin = browser(), signed("admin")
    assert sign_in(old).status_code == 303
    first, second = (
        admin.post(f"/api/v1/people/{ada}/link").json()["link"].removeprefix("http://127.0.0.1:8000") for _ in "12"
    )
    assert browser().get(first).status_code == 401
    assert "ends every session" in browser().get(second).text
    new = "another river at dawn"
    assert browser().post(second, data={"password": new, "again": new}).status_code == 303
    gone = old.get("/")
    assert gone.status_code == 401
    assert "The password of this account was changed" in gone.text
    assert sign_in(browser()).status_code == 422
    assert sign_in(browser(), new).status_code == 303


def test_changing_the_password_asks_for_the_present_one(browser: Callable[[], TestClient], ada: str) -> None:
    here, there = browser(), browser()
    sign_in(here)
    sign_in(there)
    new = "another river at dawn"
    wrong = here.post("/me/password", data={"present": "wrong", "password": new, "again": new})
    assert wrong.status_code == 422
    assert "not your present password" in wrong.text
    assert here.post("/me/password", data={"present": WORD, "password": new, "again": new}).status_code == 303
    assert here.get("/api/v1/me").status_code == 200
    assert there.get("/api/v1/me").status_code == 401
    assert sign_in(browser(), new).status_code == 303


def test_sessions_are_listed_and_ended(browser: Callable[[], TestClient], ada: str, database: Database) -> None:
    here, there = browser(), browser()
    there.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    sign_in(here)
    sign_in(there)
    listed = here.get("/api/v1/sessions").json()["items"]
    assert {item["browser"] for item in listed} >= {"Firefox on Linux"}
    other = next(item["id"] for item in listed if item["browser"] == "Firefox on Linux")
    assert here.delete(f"/api/v1/sessions/{other}").status_code == 204
    assert here.delete(f"/api/v1/sessions/{other}").status_code == 404
    said = there.get("/").text
    assert "This session was ended from another browser. It was at" in said
    assert here.delete("/api/v1/sessions").json()["ended"] >= 1
    assert "You signed out everywhere" in here.get("/").text
    third = browser()
    sign_in(third)
    with database.transaction() as session:
        session.execute(update(BrowserSession).values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    assert "This session has expired" in third.get("/").text


def test_an_admin_changes_people_but_not_the_last_admin(
    signed: Callable[[str], TestClient], browser: Callable[[], TestClient], persons: dict[str, str], ada: str
) -> None:
    admin, her = signed("admin"), browser()
    sign_in(her)
    team = admin.post("/api/v1/teams", json={"name": "Credit"}).json()["id"]
    changed = admin.patch(f"/api/v1/people/{ada}", json={"role": "auditor", "team": team, "email": "a@example.org"})
    assert changed.json()["role"] == "auditor"
    assert her.get("/api/v1/me").json()["team"] == team
    assert [one["name"] for one in her.get("/api/v1/people").json()["items"]] == ["Ada"]
    assert [one["name"] for one in her.get("/api/v1/teams").json()["items"]] == ["Credit"]
    for body, field in (
        ({"role": "king"}, "role"),
        ({"team": "0" * 32}, "team"),
        ({"email": "nothing"}, "email"),
        ({"active": "no"}, "active"),
        ({"strange": 1}, "strange"),
        ({"name": "\u0000"}, "name"),
    ):
        answer = admin.patch(f"/api/v1/people/{ada}", json=body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    for body in ({"role": "analyst"}, {"active": False}):
        last = admin.patch(f"/api/v1/people/{persons['admin']}", json=body)
        assert last.status_code == 409
        assert "last active admin" in last.json()["detail"]
    assert admin.patch(f"/api/v1/people/{ada}", json={"active": False}).json()["state"] == "off"
    assert "switched off" in her.get("/").text
    assert admin.post(f"/api/v1/people/{ada}/link").status_code == 409
    assert sign_in(browser(), email="a@example.org").status_code == 422
    assert admin.patch(f"/api/v1/people/{'0' * 32}", json={}).status_code == 404
    taken = admin.post("/api/v1/people", json={"name": "B", "email": "A@example.org", "role": "dpo"})
    assert taken.json()["errors"] == [{"field": "email", "message": "Somebody else has this e-mail address."}]
    assert admin.post("/api/v1/teams", json={"name": "Credit"}).status_code == 422
    assert admin.patch(f"/api/v1/teams/{team}", json={"name": "Loans"}).json()["name"] == "Loans"


def test_the_pages_of_the_team_do_the_same(signed: Callable[[str], TestClient], persons: dict[str, str]) -> None:
    admin = signed("admin")
    bad = admin.post("/team/invite", data={"name": "", "email": "x", "role": "king"})
    assert bad.status_code == 422
    assert bad.text.count('aria-invalid="true"') >= 2
    good = admin.post("/team/invite", data={"name": "<b>Bo", "email": "bo@example.org", "role": "analyst"})
    assert "shown this once" in good.text
    assert "&lt;b&gt;Bo" in good.text
    analyst = persons["analyst"]
    fields = {"name": "Ann", "email": "", "role": "dpo", "active": "yes"}
    assert admin.post(f"/team/people/{analyst}", data=fields).status_code == 303
    assert "data-protection officer" in admin.get(f"/team/people/{analyst}?done=changed").text
    last = admin.post(f"/team/people/{persons['admin']}", data=fields | {"role": "dpo"})
    assert last.status_code == 409
    assert "last active admin" in last.text
    assert "/sign-in/" in admin.post(f"/team/people/{analyst}/link").text
    assert admin.post(f"/team/people/{analyst}/sign-out").status_code == 303
    assert admin.post("/team/teams", data={"team_name": ""}).status_code == 422
    assert admin.post("/team/teams", data={"team_name": "Credit"}).status_code == 303
    assert "Credit" in admin.get("/team").text
    assert "Invite" not in signed("dpo").get("/team").text


def test_links_are_mailed_where_a_server_is_set(
    app: FastAPI, settings: Settings, signed: Callable[[str], TestClient], browser: Callable[[], TestClient], ada: str
) -> None:
    with mail_server() as box:
        url = f"smtp+plain://127.0.0.1:{box.port}"
        app.state.settings = settings.model_copy(update={"smtp_url": url, "mail_from": "cp@example.org"})
        made = (
            signed("admin").post("/api/v1/people", json={"name": "Bo", "email": "bo@example.org", "role": "dpo"}).json()
        )
        assert (made["mailed"], made["link"]) == (True, None)
        mail = box.mails[0]
        assert (mail["To"], mail["From"]) == ("bo@example.org", "cp@example.org")
        path = re.findall(r"http://127.0.0.1:8000(/sign-in/\S+)", str(mail.get_content()))[0]  # type: ignore[attr-defined]
        assert browser().get(path).status_code == 200
        said = {browser().post("/sign-in/forgotten", data={"email": one}).text for one in (EMAIL, "nobody@example.org")}
        assert len(said) == 1
        assert box.came.acquire(timeout=60)
        assert box.came.acquire(timeout=60)
        assert [mail["To"] for mail in box.mails] == ["bo@example.org", EMAIL]
        box.refuses = True
        page = signed("admin").post("/team/invite", data={"name": "Cy", "email": "cy@example.org", "role": "dpo"})
        assert "The mail could not be sent" in page.text
        assert "/sign-in/" in page.text
        codes = [browser().post("/sign-in/forgotten", data={"email": EMAIL}).status_code for _ in range(10)]
        assert codes[-1] == 429


def test_without_a_mail_server_nobody_is_promised_a_mail(browser: Callable[[], TestClient]) -> None:
    assert "No mail is sent from here" in browser().get("/sign-in/forgotten").text
    assert browser().post("/sign-in/forgotten", data={"email": EMAIL}).status_code == 404
    assert "forgot" not in browser().get("/sign-in").text


def test_tokens_hold_no_more_than_their_maker(signed: Callable[[str], TestClient]) -> None:
    dpo = signed("dpo")
    beyond = dpo.post("/api/v1/tokens", json={"name": "x", "scopes": ["run"]})
    assert beyond.status_code == 422
    assert "does not hold run" in beyond.json()["errors"][0]["message"]
    page = dpo.post("/tokens", data={"name": "gate", "scopes": ["read", "decide"], "days": "7"})
    secret = re.findall(r"cp_[\w-]{43}", page.text)
    assert len(secret) == 1
    assert secret[0] not in dpo.get("/tokens").text
    token = dpo.get("/api/v1/tokens").json()["items"][0]
    assert token["scopes"] == ["decide", "read"]
    assert dpo.post("/tokens", data={"name": "", "scopes": ["read"], "days": "7"}).status_code == 422
    assert dpo.post("/tokens", data={"name": "x", "days": "7"}).status_code == 422
    assert dpo.post("/tokens", data={"name": "x", "scopes": ["read"], "days": "9999"}).status_code == 422
    assert signed("analyst").delete(f"/api/v1/tokens/{token['id']}").status_code == 404
    assert signed("admin").delete(f"/api/v1/tokens/{token['id']}").status_code == 204
    assert dpo.get("/api/v1/tokens").json()["items"] == []


def test_a_cookie_without_an_origin_needs_the_csrf_token(signed: Callable[[str], TestClient]) -> None:
    client = signed("analyst")
    token = client.get("/api/v1/me").json()["csrf_token"]
    del client.headers["Sec-Fetch-Site"]
    body = {"name": "x", "scopes": ["read"]}
    assert client.post("/api/v1/tokens", json=body).status_code == 403
    assert client.post("/api/v1/tokens", json=body, headers={"X-CSRF-Token": "x"}).status_code == 403
    assert client.post("/sign-out").status_code == 403
    assert client.post("/api/v1/tokens", json=body, headers={"X-CSRF-Token": token}).status_code == 201
    forged = {"X-CSRF-Token": token, "Origin": "https://evil.example"}
    assert client.post("/api/v1/tokens", json=body, headers=forged).status_code == 403
    with_both = client.post("/api/v1/tokens", json=body, headers={"Authorization": "Bearer nonsense"})
    assert with_both.status_code == 401, "the header counts, the cookie does not"


def test_guessing_is_slowed(app: FastAPI, settings: Settings, database: Database, persons: dict[str, str]) -> None:
    from backend.app import create_app

    slow = create_app(settings.model_copy(update={"guesses_per_minute": 5}))
    slow.state.database.engine.dispose()
    slow.state.database = database
    client = TestClient(slow, headers={"Authorization": "Bearer nonsense"})
    codes = [client.get("/api/v1/me").status_code for _ in range(12)]  # a minute may end among them
    assert codes.count(401) in range(5, 11)
    assert codes[0] == 401
    assert 429 in codes
    answer = client.get("/sign-in/guess")
    assert answer.status_code in (401, 429)
    assert client.get("/health").status_code == 200


def test_secrets_are_kept_as_hashes_alone(
    browser: Callable[[], TestClient], ada: str, database: Database, settings: Settings
) -> None:
    client = browser()
    sign_in(client)
    secret = client.cookies[cookie_name(settings)]
    with database.transaction() as session:
        rows = [
            str(vars(row)) for table in (BrowserSession, SignInLink, Person, Activity) for row in session.query(table)
        ]
    assert not [row for row in rows if secret in row or WORD in row]


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari on iPhone"),
        ("curl/8.5.0", "curl"),
        ("", "Another program"),
    ],
)
def test_browsers_are_named_in_two_words(told: str, name: str) -> None:
    assert browser_name(told) == name


def test_every_page_of_people_keeps_the_laws_of_pages(
    signed: Callable[[str], TestClient], browser: Callable[[], TestClient], persons: dict[str, str], database: Database
) -> None:
    admin, nobody = signed("admin"), browser()
    with database.transaction() as session:
        links = [
            service.make_link(session, persons["dpo"], purpose=kind) for kind in ("invitation", "reset", "sign-in")
        ]
    own = ("/me", "/tokens", "/team", f"/team/people/{persons['dpo']}", "/activity?check=yes", "/activity?since=never")
    for page in [admin.get(path) for path in own]:
        check_page(page.text)
        assert f">{'Fairness admin'}<" in page.text
    open_to_all = (
        "/sign-in",
        "/sign-in/forgotten",
        "/signed-out",
        "/me",
        "/sign-in/wrong",
        *(f"/sign-in/{link}" for link in links),
    )
    for page in [nobody.get(path) for path in open_to_all]:
        check_page(page.text)
    check_page(admin.post("/team/invite", data={}).text)
    check_page(admin.post("/tokens", data={}).text)
    check_page(nobody.post("/sign-in", data={}).text)


def test_an_invitation_opens_from_an_address_that_is_locked(
    signed: Callable[[str], TestClient], browser: Callable[[], TestClient], app: FastAPI
) -> None:
    made = signed("admin").post("/api/v1/people", json={"name": "Ada", "email": EMAIL, "role": "analyst"}).json()
    path = made["link"].removeprefix("http://127.0.0.1:8000")
    app.state.gate.close("testclient", 600)
    assert sign_in(browser()).status_code == 429
    done = browser().post(path, data={"name": "Ada", "password": WORD, "again": WORD})
    assert (done.status_code, done.headers["location"]) == (303, "/")


def test_whoever_says_to_have_forgotten_voids_no_invitation(
    signed: Callable[[str], TestClient],
    browser: Callable[[], TestClient],
    database: Database,
    settings: Settings,
) -> None:
    from backend.people import accounts

    made = signed("admin").post("/api/v1/people", json={"name": "Ada", "email": EMAIL, "role": "analyst"}).json()
    with database.transaction() as session:
        assert accounts.forgotten(session, settings, EMAIL, service.Origin("somewhere")) is not None
    path = made["link"].removeprefix("http://127.0.0.1:8000")
    assert browser().get(path).status_code == 200
    assert signed("admin").get("/api/v1/people").json()["items"][0]["state"] == "invited"


def test_an_admin_sees_and_ends_the_tokens_of_a_person(
    signed: Callable[[str], TestClient], persons: dict[str, str], app: FastAPI
) -> None:
    token = signed("analyst").post("/api/v1/tokens", json={"name": "nightly gate", "scopes": ["read"]}).json()["token"]
    tool = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    assert tool.get("/api/v1/me").status_code == 200
    admin, page = signed("admin"), f"/team/people/{persons['analyst']}"
    text = admin.get(page).text
    assert "nightly gate" in text
    action = re.search(rf"{page}/tokens/[0-9a-f]+/revoke", text)
    assert action is not None
    assert admin.post(action[0]).status_code == 303
    assert tool.get("/api/v1/me").status_code == 401


def test_switching_an_account_off_ends_its_tokens_for_good(
    signed: Callable[[str], TestClient], persons: dict[str, str], app: FastAPI
) -> None:
    token = signed("analyst").post("/api/v1/tokens", json={"name": "gate", "scopes": ["read"]}).json()["token"]
    admin, path = signed("admin"), f"/api/v1/people/{persons['analyst']}"
    for active in (False, True):
        assert admin.patch(path, json={"active": active}).status_code == 200
    assert TestClient(app, headers={"Authorization": f"Bearer {token}"}).get("/api/v1/me").status_code == 401


def test_an_invited_admin_who_never_came_is_not_the_last_admin(
    signed: Callable[[str], TestClient], persons: dict[str, str]
) -> None:
    admin = signed("admin")
    invited = admin.post("/api/v1/people", json={"name": "Ada", "email": EMAIL, "role": "admin"})
    assert invited.status_code == 201
    refused = admin.patch(f"/api/v1/people/{persons['admin']}", json={"role": "auditor"})
    assert refused.status_code == 409
    assert "last active admin who can sign in" in refused.json()["detail"]


def test_a_flood_costs_one_page(
    app: FastAPI, browser: Callable[[], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    app.state.gate.close("testclient", 600)
    first = sign_in(browser())
    assert first.status_code == 429
    assert "Signing in is locked for 10 more minutes" in first.text
    check_page(first.text)

    def made(*_: object) -> None:
        raise AssertionError("a page was made")

    monkeypatch.setattr(app.state, "page_error", made)
    assert sign_in(browser()).text == first.text
