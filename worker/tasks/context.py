"""What every job needs: settings, database, storage, and this worker's name. Built once in each process."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from dataclasses import dataclass

from backend.celery_queue import CeleryQueue
from backend.database import Database, make_engine
from backend.settings import Settings
from backend.storage import Storage

SUSPENDED_SECONDS = 20
"""A transaction of a job in which nothing happens for so long belongs to a process that was suspended."""


@dataclass(frozen=True)
class Context:
    """Handed to every job. ``worker`` names this process and no other, not even an earlier one with the same pid."""

    settings: Settings
    database: Database
    storage: Storage
    worker: str
    shutdown: threading.Event


def make_context(settings: Settings, shutdown: threading.Event) -> Context:
    """A context of one's own; connections are opened when first needed."""
    queue = CeleryQueue(settings.redis_url)
    engine = make_engine(settings.database_url, pool_size=4, idle_seconds=SUSPENDED_SECONDS)
    worker = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    return Context(settings, Database(engine, queue), Storage(settings), worker[-200:], shutdown)


class ContextOfProcess:
    """The one context of the current process. After a fork the child builds its own: sockets must not be shared."""

    def __init__(self, shutdown: threading.Event) -> None:
        self._shutdown = shutdown
        self._lock = threading.Lock()
        self._made: tuple[int, Context] | None = None

    def get(self) -> Context:
        with self._lock:
            if self._made is None or self._made[0] != os.getpid():
                settings = Settings()  # type: ignore[call-arg]  # filled from the environment
                self._made = (os.getpid(), make_context(settings, self._shutdown))
            return self._made[1]
