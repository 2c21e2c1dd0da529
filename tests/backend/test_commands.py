"""``counterpoise migrate``, ``doctor`` and ``link`` on a server, where settings come from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.__main__ import main
from backend.settings import Settings

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


def test_a_link_is_printed_for_each_role(server: Settings, capsys: pytest.CaptureFixture[str]):
    for role in ("analyst", "dpo", "admin"):
        assert main(["link", role]) == 0
        assert capsys.readouterr().out.startswith(f"{server.base_url}/sign-in/")


def test_nothing_running_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert main(["link", "--var", str(tmp_path)]) == 1
    assert "Nothing is running from there." in capsys.readouterr().err


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["demo", "--port", port])
    assert "is not a port" in capsys.readouterr().err
