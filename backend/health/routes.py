"""Is the process up, and is everything it needs? No token, no details that help a stranger."""

from __future__ import annotations

import logging
from collections.abc import Callable

from fastapi import APIRouter, Request
from sqlalchemy import text

from backend.edge import database_of, storage_of
from backend.errors import NotReady

log = logging.getLogger("counterpoise.web")

router = APIRouter(tags=["health"])


@router.get("/health", summary="The process is up")
def health() -> dict[str, str]:
    """Answers as long as this process does."""
    return {"status": "up"}


@router.get("/ready", summary="Database, queue and storage answer")
def ready(request: Request) -> dict[str, str]:
    """200 when all parts answer, else 503 that names those that do not."""
    away = [name for name, check in _checks(request).items() if not _works(name, check)]
    if away:
        raise NotReady(
            f"A part is away: {', '.join(away)}. This process itself is up. Wait, or look into that part's log.",
            [{"field": name, "message": "It does not answer."} for name in away],
        )
    return {"status": "ready"}


def _checks(request: Request) -> dict[str, Callable[[], object]]:
    def database() -> None:
        with database_of(request).engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    return {"database": database, "queue": request.app.state.queue.ping, "storage": storage_of(request).ready}


def _works(name: str, check: Callable[[], object]) -> bool:
    try:
        check()
    except Exception as error:  # whatever a driver raises, the answer is the same
        log.warning("Not ready: %s (%s).", name, type(error).__name__)
        return False
    return True
