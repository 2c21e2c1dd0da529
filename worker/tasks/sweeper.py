"""Heals what was lost: sends a job again when its message got lost or its worker died.

A thread in every worker; an advisory lock lets one sweep at a time in the whole installation. A job is sent again only
while its queue holds fewer messages than there are rows waiting for one: then some row surely has none. So a long
queue, or a queue that nobody serves, never grows by sweeping.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.orm import Session

from backend.database import Database, ask, make_engine
from backend.datasets.service import erase_expired
from backend.queue import COUNT_GROUPS, MEASURE_AUDIT, PLAN_AUDIT, QUEUE_OF, READ_DATASET, TRAIN_STACK
from backend.tables import Audit, Dataset, Recipe, Stack
from worker.tasks.context import Context
from worker.tasks.job import describe
from worker.tasks.outcome import ACTIVE, CUDA_KERNEL, queue_of
from worker.tasks.temporary import sweep_folders

logger = logging.getLogger("counterpoise.sweeper")

ADVISORY_LOCK = 0x434F554E54  # "COUNT"; any number that nobody else in this database uses
AT_ONCE = 200

Lengths = Callable[[str], int]
"""Messages waiting in a queue."""


@dataclass(frozen=True)
class Lost:
    """A row that nobody works on and whose job was asked for long enough ago."""

    job: str
    table: type[Any]
    id: str
    queue: str
    asked_at: datetime | None


def _wanted() -> tuple[tuple[str, type[Any], str, ColumnElement[bool]], ...]:
    """Job, table, queue, and which rows want that job."""
    stacks = select(func.count()).select_from(Stack).where(Stack.audit_id == Audit.id)
    finished = stacks.where(Stack.state == "finished").scalar_subquery()
    open_stacks = stacks.where(Stack.state.in_(("waiting", "training"))).scalar_subquery()
    to_measure = Audit.state.in_(ACTIVE) & or_(finished > Audit.measured_stacks, open_stacks == 0)
    active, planned = (select(Audit.id).where(which) for which in (Audit.state.in_(ACTIVE), Audit.state != "planning"))
    begun = (Stack.state == "training") & Stack.audit_id.in_(planned)  # to be ended if the audit has ended
    to_train = ((Stack.state == "waiting") & Stack.audit_id.in_(active)) | begun
    light, train = QUEUE_OF[READ_DATASET], QUEUE_OF[TRAIN_STACK]
    return (
        (READ_DATASET, Dataset, light, Dataset.state == "received"),
        (COUNT_GROUPS, Recipe, light, Recipe.state == "counting"),
        (PLAN_AUDIT, Audit, light, Audit.state == "planning"),
        (MEASURE_AUDIT, Audit, light, to_measure),
        (TRAIN_STACK, Stack, train, to_train & (Stack.kernel != CUDA_KERNEL)),
        (TRAIN_STACK, Stack, queue_of(CUDA_KERNEL) or train, to_train & (Stack.kernel == CUDA_KERNEL)),
    )


def sweep(session: Session, lengths: Lengths, resend_seconds: float) -> int:
    """Ask again for what was lost; returns how many jobs were asked for. Does nothing if somebody else sweeps now."""
    if not session.scalar(select(func.pg_try_advisory_xact_lock(ADVISORY_LOCK))):
        return 0
    unclaimed: Counter[str] = Counter()
    lost: list[Lost] = []
    for job, table, queue, wants in _wanted():
        free = wants & or_(table.lease_until.is_(None), table.lease_until < func.clock_timestamp())
        unclaimed[queue] += session.scalar(select(func.count()).select_from(table).where(free)) or 0
        overdue = or_(table.asked_at.is_(None), table.asked_at < func.now() - timedelta(seconds=resend_seconds))
        rows = select(table.id, table.asked_at).where(free, overdue).order_by(table.asked_at.nulls_first())
        lost += [Lost(job, table, row.id, queue, row.asked_at) for row in session.execute(rows.limit(AT_ONCE))]
    sent = 0
    for queue in {one.queue for one in lost}:
        room = unclaimed[queue] - lengths(queue)
        sent += _ask_again(session, [one for one in lost if one.queue == queue], room)
    return sent


def _ask_again(session: Session, lost: list[Lost], room: int) -> int:
    oldest_first = sorted(lost, key=lambda one: (one.asked_at is not None, one.asked_at))
    chosen = oldest_first[: max(room, 0)]
    for one in chosen:
        session.execute(update(one.table).where(one.table.id == one.id).values(asked_at=func.now()))
        ask(session, one.job, one.id, one.queue)
        logger.info("%s %s: sent again.", one.job, one.id)
    return len(chosen)


def queue_lengths(redis_url: str) -> Lengths:
    """Reads lengths from the broker. Celery writes a socket as ``redis+socket://`` and redis-py as ``unix://``.

    Raises, when called: redis.RedisError while the broker is away.
    """
    import redis

    if redis_url.startswith("redis+socket://"):
        redis_url = redis_url.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db=")
    client = redis.Redis.from_url(redis_url, socket_timeout=3)
    return lambda queue: int(client.llen(queue))


def start(context: Context) -> None:
    """Begin to sweep in this process; a child that is forked starts its own."""
    threading.Thread(target=Sweeper(context).run, name="sweeper", daemon=True).start()


class Sweeper:
    """The thread's loop. It has its own connection, and outlives restarts of the database and the broker."""

    def __init__(self, context: Context) -> None:
        self._settings = context.settings
        self._database = Database(make_engine(self._settings.database_url, pool_size=1), context.database.queue)
        self._storage = context.storage
        self._lengths = queue_lengths(self._settings.redis_url)
        self._complaint = ""

    def run(self) -> None:
        """Until the process ends."""
        while True:
            time.sleep(self._settings.sweep_seconds)
            try:
                self.sweep_once()
                self._complaint = ""
            except Exception as error:  # the sweeper is what heals; nothing may end it
                self._complain(describe(error))

    def close(self) -> None:
        """Give its connection back."""
        self._database.engine.dispose()

    def sweep_once(self) -> int:
        """Leftover files of this host, lost jobs of all, datasets whose time is over; returns how many jobs were sent."""
        sweep_folders(self._settings.temporary_folder)
        with self._database.transaction() as session:
            sent = sweep(session, self._lengths, self._settings.resend_seconds)
        with self._database.transaction() as session:
            if session.scalar(select(func.pg_try_advisory_xact_lock(ADVISORY_LOCK))):
                gone = erase_expired(session, self._storage, self._settings.withheld_below)
                if gone:
                    logger.info("%d datasets erased: their time was over.", gone)
        return sent

    def _complain(self, complaint: str) -> None:
        """The same complaint is logged once, not every few seconds."""
        if complaint != self._complaint:
            logger.warning("Not swept: %s", complaint)
        self._complaint = complaint
