"""Waiting out a database that restarts: a minute of training must not be lost to a second of outage."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

logger = logging.getLogger("counterpoise.patience")

Result = TypeVar("Result")


def patiently(save: Callable[[], Result], *, seconds: float = 60.0, pause_seconds: float = 1.0) -> Result:
    """Call ``save``, one whole transaction, again while the database is away, deadlocked or restarting.

    Only connection errors and operational errors count; a save that is wrong fails at once.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return save()
        except DBAPIError as error:
            if not _passing(error) or time.monotonic() > until:
                raise
            logger.warning("Saving waits for the database: %s.", type(error.orig).__name__)
            time.sleep(pause_seconds)


def _passing(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed a moment later."""
    from psycopg import InterfaceError, OperationalError

    return error.connection_invalidated or isinstance(error.orig, OperationalError | InterfaceError)
