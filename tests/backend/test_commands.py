"""``counterpoise migrate``, ``doctor`` and ``link`` on a server, where settings come from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from backend.__main__ import main
from backend.database import Database
from backend.people import service
from backend.settings import Settings
from backend.tables import Activity, Person, SignInLink

pytestmark = pytest.mark.services


@pytest.fixture
def server(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in type(settings).model_fields:
        monkeypatch.setenv(name.upper(), str(getattr(settings, name)))
    monkeypatch.setenv("MODE", "production")
    monkeypatch.setenv("COUNTERPOISE_VAR", str(tmp_path / "none"))
    return settings


def test_migrate_says_where_the_database_stands(server: Settings, capsys: pytest.CaptureFixture[str]):
    assert main(["migrate"]) == 0
    assert capsys.readouterr().out.startswith("The database stands at ")


def test_migrate_without_an_address_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert main(["migrate"]) == 2
    assert "DATABASE_URL is not set." in capsys.readouterr().err


def test_the_doctor_finds_all_well(server: Settings, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "database: PostgreSQL" in said
    assert "queue: up; waiting: light 0" in said
    assert server.secret_key not in said


def test_the_doctor_names_what_is_away(
    server: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("REDIS_URL", "redis+socket:///nowhere/queue.sock")
    assert main(["doctor"]) == 1
    assert "queue: does not answer" in capsys.readouterr().out


def test_the_first_link_of_a_server_makes_the_administrator_and_nobody_else(
    server: Settings, database: Database, capsys: pytest.CaptureFixture[str]
):
    for _ in range(2):  # asked again before the first was used: the same person, and only the newer link works
        assert main(["link"]) == 0
        said = capsys.readouterr().out.strip()
        assert said.startswith(f"{server.base_url}/sign-in/")
    with database.transaction() as session:
        assert [(person.role, person.email) for person in session.query(Person)] == [("admin", None)]
        found = service.link_person(session, said.rpartition("/")[2])
        assert found is not None
        assert found["purpose"] == "invitation"
        assert session.query(SignInLink).filter(SignInLink.used_at.is_(None)).count() == 1
        assert [row.action for row in session.query(Activity).order_by(Activity.number)] == ["link.made"] * 2


def test_a_link_for_whoever_was_invited_and_for_nobody_else(
    server: Settings, database: Database, persons: dict[str, str], capsys: pytest.CaptureFixture[str]
):
    with database.transaction() as session:
        session.get_one(Person, persons["dpo"]).email = "dora@example.org"
    for who in ("dora@example.org", "auditor", "admin"):
        assert main(["link", who]) == 0
        found = capsys.readouterr().out.strip()
        assert found.startswith(f"{server.base_url}/sign-in/")
    for who, said in (("nobody@example.org", "There is nobody active"), ("king", "neither a role nor an e-mail")):
        assert main(["link", who]) == 1
        assert said in capsys.readouterr().err


def test_the_doctor_speaks_of_people_and_of_the_log(
    server: Settings, database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert main(["doctor"]) == 0
    assert (
        "no admin yet; `counterpoise link` lets one in; activity log: its newest 0 rows fit" in capsys.readouterr().out
    )
    main(["link"])
    monkeypatch.setenv("OIDC_ISSUER", "https://127.0.0.1:9")
    monkeypatch.setenv("OIDC_CLIENT_ID", "x")
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "1 active admin; activity log: its newest 1 rows fit, newest number 1" in said
    assert "identity provider: https://127.0.0.1:9 DOES NOT ANSWER" in said
    with database.transaction() as session:
        session.execute(text("ALTER TABLE activity DISABLE TRIGGER activity_guard"))
        session.execute(text("UPDATE activity SET action = 'token.made'"))
        session.execute(text("ALTER TABLE activity ENABLE TRIGGER activity_guard"))
    assert main(["doctor"]) == 1
    assert "activity log BROKEN at number 1: the row was changed" in capsys.readouterr().out


def test_the_table_of_permissions_is_printed(capsys: pytest.CaptureFixture[str]):
    assert main(["permissions"]) == 0
    assert "| `GET /api/v1/activity` |" in capsys.readouterr().out


def test_nothing_running_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert main(["link", "--var", str(tmp_path)]) == 1
    assert "Nothing is running from there." in capsys.readouterr().err


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["demo", "--port", port])
    assert "is not a port" in capsys.readouterr().err
