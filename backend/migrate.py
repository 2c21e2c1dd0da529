"""Brings a database to the newest schema. Configuration is built here: it works from any folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
LOCK = 4_812_207
"""Any number: two starting at the same time take turns on it."""


def alembic_config() -> Config:
    """Alembic's configuration, without any file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("file_template", "%%(year)d_%%(month).2d_%%(day).2d_%%(slug)s")
    return config


def newest_revision() -> str | None:
    """The one head of the migrations."""
    return ScriptDirectory.from_config(alembic_config()).get_current_head()


def current_revision(connection: Connection) -> str | None:
    """Where this database stands; None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database at ``url`` to ``revision``, in one transaction; several may call it at once."""
    _run(url, lambda config: command.upgrade(config, revision))


def downgrade(url: str, revision: str) -> None:
    """Take the database back to ``revision``; ``base`` is the empty one."""
    _run(url, lambda config: command.downgrade(config, revision))


def _run(url: str, action: Callable[[Config], None]) -> None:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            config = alembic_config()
            config.attributes["connection"] = connection
            action(config)
    finally:
        engine.dispose()
