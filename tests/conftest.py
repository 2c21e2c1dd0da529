"""Services for the tests: PostgreSQL and the queue's server as children, once a session; sockets to the world shut."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
import pytest
from pytest_socket import socket_allow_hosts
from sqlalchemy import Engine, text

from backend import migrate
from backend.database import Database, make_engine
from backend.embedded.services import Services, start_services
from backend.settings import Settings
from backend.tables import Base

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in the worker: threads that spin starve other processes

# Examples are the same in every run, and a machine that is busy is no failure.
hypothesis.settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("steady")

SECRET = "a test's own secret, longer than thirty-two characters"  # not used anywhere else


def pytest_runtest_setup() -> None:
    """Unix sockets and this machine only, whatever a test asks for."""
    socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)


@dataclass
class RecordingQueue:
    """Remembers what was sent: (job, id, queue)."""

    sent: list[tuple[str, str, str | None]] = field(default_factory=list)

    def send(self, job: str, object_id: str, queue: str | None = None) -> None:
        self.sent.append((job, object_id, queue))


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """A PostgreSQL and a queue's server of this session's own, thrown away afterwards."""
    with start_services() as running:
        running.postgres.ensure_database()
        migrate.upgrade(running.postgres.url())
        yield running


@pytest.fixture(scope="session")
def engine(services: Services) -> Iterator[Engine]:
    engine = make_engine(services.postgres.url())
    yield engine
    engine.dispose()


@pytest.fixture
def empty_tables(engine: Engine) -> None:
    """The migrated schema, without a row; whoever still holds a connection from an earlier test loses it."""
    with engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in%'"
            )
        )
        connection.execute(text("ALTER TABLE activity DISABLE TRIGGER activity_guard"))
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
        connection.execute(text("ALTER TABLE activity ENABLE TRIGGER activity_guard"))


@pytest.fixture
def queue() -> RecordingQueue:
    return RecordingQueue()


@pytest.fixture
def database(engine: Engine, empty_tables: None, queue: RecordingQueue) -> Database:
    """An empty, migrated database whose queue only remembers."""
    return Database(engine, queue)


@pytest.fixture
def clean_redis(services: Services) -> str:
    """The address of an empty queue's server."""
    services.valkey.flush()
    return services.valkey.url()


@pytest.fixture
def settings(services: Services, empty_tables: None, tmp_path: Path) -> Settings:
    """Settings that point at the session's services and at files of this test's own."""
    for name in ("files", "tmp"):
        (tmp_path / name).mkdir(exist_ok=True)
    return Settings(
        mode="demo",
        database_url=services.postgres.url(),
        redis_url=services.valkey.url(),
        storage_url=f"file://{tmp_path / 'files'}",
        secret_key=SECRET,
        temporary_folder=tmp_path / "tmp",
        guesses_per_minute=1_000_000,
    )


@pytest.fixture
def settings_environment(settings: Settings) -> dict[str, str]:
    """The environment of a child process that shall have these settings."""
    named = {name.upper(): str(getattr(settings, name)) for name in type(settings).model_fields}
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    return kept | named


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser that is there; never skipped: without one the test fails and says what to install."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if Path(path).exists():
        return path
    pytest.fail("There is no Chromium. Journeys need one. Run `make browser`, or install the package `chromium`.")
