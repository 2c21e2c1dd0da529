"""Claims: who works on a row, for how long, and how a result is refused when the row has changed hands.

The database is the truth. A row belongs to ``(attempt, worker)`` while its lease, by the database's clock, lies ahead;
an expired lease may be taken by anybody. Whoever saves a result calls ``hold`` first, inside the same transaction: it
locks the row and raises ``ClaimLost`` when somebody else has claimed it meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from backend.database import Database
from backend.tables import Audit, Dataset, Recipe, Stack

logger = logging.getLogger("counterpoise.claims")

Row = Dataset | Recipe | Audit | Stack


class ClaimLost(Exception):
    """Somebody else has the row now; whatever was computed is discarded."""


class Interrupted(Exception):
    """This worker was told to end; the row goes back, and the attempt does not count."""


@dataclass(frozen=True)
class Claim:
    """The right to work on one row: attempt number ``attempt`` of ``worker``."""

    table: type[Row]
    id: str
    attempt: int
    worker: str

    def matches(self) -> ColumnElement[bool]:
        """SQL: the row is still ours. True also after the lease ran out, as long as nobody took the row."""
        table = self.table
        return (table.id == self.id) & (table.attempt == self.attempt) & (table.worker == self.worker)


def _lease(seconds: float) -> ColumnElement[Any]:
    return func.clock_timestamp() + timedelta(seconds=seconds)


def claim(
    session: Session, table: type[Row], row_id: str, *states: str, worker: str, lease_seconds: float
) -> Claim | None:
    """Take a row that is in one of ``states`` and belongs to nobody; None if it cannot be had.

    One conditional update: of two workers that race, the second waits for the first's commit, sees the new lease and
    gets nothing.
    """
    free = or_(table.lease_until.is_(None), table.lease_until < func.clock_timestamp())
    attempt = session.scalar(
        update(table)
        .where(table.id == row_id, table.state.in_(states), free)
        .values(attempt=table.attempt + 1, worker=worker, lease_until=_lease(lease_seconds))
        .returning(table.attempt)
        .execution_options(synchronize_session=False)
    )
    return None if attempt is None else Claim(table, row_id, attempt, worker)


def renew(session: Session, held: Claim, lease_seconds: float) -> bool:
    """Prolong the lease; False when the row is no longer ours."""
    return _change(session, held, lease_until=_lease(lease_seconds))


def hold(session: Session, held: Claim) -> None:
    """Lock the row until the end of the transaction, if it is still ours.

    Raises:
        ClaimLost: somebody else has it, or it was erased.
    """
    found = session.scalar(select(held.table.id).where(held.matches()).with_for_update())
    if found is None:
        raise ClaimLost(held.id)


def release(session: Session, held: Claim) -> None:
    """The job is done: the row belongs to nobody, and a later job on it starts counting attempts anew."""
    _change(session, held, lease_until=None, worker=None, attempt=0)


def settle(session: Session, held: Claim) -> None:
    """The job is done for good; the row remembers how many attempts it took and who did it."""
    _change(session, held, lease_until=None)


def hand_back(session: Session, held: Claim) -> None:
    """The job was not done through no fault of its own; the attempt does not count."""
    _change(session, held, lease_until=None, worker=None, attempt=held.attempt - 1)


def expire(session: Session, held: Claim) -> None:
    """The job failed; somebody may try again at once, and the attempt counts."""
    _change(session, held, lease_until=func.clock_timestamp())


def _change(session: Session, held: Claim, **values: Any) -> bool:
    statement = update(held.table).where(held.matches()).values(**values).returning(held.table.id)
    return session.scalar(statement.execution_options(synchronize_session=False)) is not None


class Heartbeat:
    """Renews a lease from a thread while a job computes, and notices when the job should end.

    ``news`` is called after each renewal. Database outages are waited out: the job goes on, and the guarded save
    decides whether its result still counts.
    """

    def __init__(
        self,
        database: Database,
        held: Claim,
        lease_seconds: float,
        shutdown: threading.Event,
        *,
        every_seconds: float | None = None,
        news: Callable[[], None] | None = None,
    ) -> None:
        self._database = database
        self._held = held
        self._lease_seconds = lease_seconds
        self._shutdown = shutdown
        self._every = min(lease_seconds / 4, every_seconds or lease_seconds)
        self._news = news
        self._lost = threading.Event()
        self._done = threading.Event()

    def check(self) -> None:
        """Raise if the job should end now. Cheap; to be called often.

        Raises:
            ClaimLost: somebody else has the row.
            Interrupted: this worker is shutting down.
        """
        if self._lost.is_set():
            raise ClaimLost(self._held.id)
        if self._shutdown.is_set():
            raise Interrupted(self._held.id)

    @contextmanager
    def beating(self) -> Iterator[Heartbeat]:
        """Beat until the block ends."""
        thread = threading.Thread(target=self._run, name=f"heartbeat-{self._held.id}", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._done.set()
            thread.join(timeout=self._every + 5)

    def _run(self) -> None:
        while not self._done.wait(self._every) and not self._lost.is_set():
            try:
                self._beat()
            except SQLAlchemyError as error:
                logger.warning("No lease renewed for %s: %s.", self._held.id, type(error).__name__)
            except Exception as error:  # the lease matters more than whatever went wrong beside it
                logger.error("Heartbeat of %s: %s.", self._held.id, type(error).__name__)

    def _beat(self) -> None:
        with self._database.transaction() as session:
            ours = renew(session, self._held, self._lease_seconds)
        if not ours:
            self._lost.set()
        elif self._news is not None:
            self._news()
