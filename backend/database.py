"""Engine and sessions. One request or job = one transaction, committed at the edge; messages leave after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session, sessionmaker

from backend.chain import append_pending
from backend.queue import Queue


def make_engine(url: str, *, pool_size: int = 10, idle_seconds: int = 0) -> Engine:
    """A synchronous engine; dead connections are noticed before use, and errors do not repeat stored values.

    After ``idle_seconds`` the database ends a transaction in which nothing happens (0: never), so that a process
    suspended in the middle of one does not keep its row locks from those who take over.
    """
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=pool_size,
        max_overflow=20,
        pool_timeout=10,
        hide_parameters=True,
        connect_args={"options": f"-c idle_in_transaction_session_timeout={1000 * idle_seconds}"},
    )


class Database:
    """Hands out sessions. ``transaction`` commits at its end and then sends what was asked for inside."""

    def __init__(self, engine: Engine, queue: Queue) -> None:
        self.engine = engine
        self.queue = queue
        self._make = sessionmaker(engine, expire_on_commit=False)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A session that commits when the block ends well, its activity written last, and rolls back otherwise."""
        with self._make() as session:
            session.info[ASKED] = []
            with session.begin():
                yield session
                append_pending(session)
            for job, object_id, queue in session.info.pop(ASKED):
                self.queue.send(job, object_id, queue)


ASKED = "asked"


def ask(session: Session, job: str, object_id: str, queue: str | None = None) -> None:
    """Remember to send ``job`` for ``object_id`` once this session's transaction has committed."""
    session.info[ASKED].append((job, object_id, queue))
