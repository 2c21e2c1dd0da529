"""What all jobs share: claim the row, keep the lease alive, try again after a failure, give up after enough of them."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from worker.engine.errors import TableProblem
from worker.tasks import claims
from worker.tasks.claims import Claim, ClaimLost, Heartbeat, Interrupted, Row
from worker.tasks.context import Context

logger = logging.getLogger("counterpoise.job")

NUMBERS = {1: "once", 2: "twice", 3: "three times", 4: "four times", 5: "five times"}


@dataclass(frozen=True)
class Job:
    """One kind of job.

    Attributes:
        name: as in ``backend.queue``.
        table: whose row is claimed.
        states: of a row about which there is something to do.
        doing: in words, after "while" ("reading this dataset").
        work: does it; saves in a transaction that begins with ``claims.hold``.
        give_up: marks the row as failed, with a problem in the three sentences of an error.
    """

    name: str
    table: type[Row]
    states: tuple[str, ...]
    doing: str
    work: Callable[[Context, Claim], None]
    give_up: Callable[[Session, Any, dict[str, Any]], None]


def problem(happened: str, where: str, what_next: str) -> dict[str, str]:
    """An error in three sentences, as stored in ``problem`` columns."""
    return {"happened": happened, "where": where, "next": what_next}


def problem_of(error: TableProblem) -> dict[str, Any]:
    """The same of a table that cannot be used, with the row, column and limit that are at fault."""
    places = {"row": error.row, "column": error.column, "limit": error.limit}
    known = {name: value for name, value in places.items() if value is not None}
    where = ", ".join(f"{name} {value}" for name, value in known.items() if name != "limit")
    return problem(error.happened, f"In {where}." if where else "", error.next_step) | known


def perform(context: Context, job: Job, row_id: str) -> None:
    """Do one job, or nothing: a message that comes twice, late or in vain does no harm. Raises nothing.

    Exceptions are logged by type and place only, since their messages may quote cells of a table.
    """
    try:
        held = _take(context, job, row_id)
        if held is not None:
            _work(context, job, held)
    except ClaimLost:
        logger.info("%s %s: somebody else has it.", job.name, row_id)
    except Exception as error:  # a job must never end the worker; the sweeper sends it again
        logger.error("%s %s: %s", job.name, row_id, describe(error))


def _take(context: Context, job: Job, row_id: str) -> Claim | None:
    settings = context.settings
    with context.database.transaction() as session:
        held = claims.claim(
            session, job.table, row_id, *job.states, worker=context.worker, lease_seconds=settings.lease_seconds
        )
        if held is None or held.attempt <= settings.attempts:
            return held
        _give_up(session, job, held, "The worker died", settings.attempts)
    logger.error("%s %s: given up after %d attempts.", job.name, row_id, settings.attempts)
    return None


def _work(context: Context, job: Job, held: Claim) -> None:
    logger.info("%s %s: attempt %d begins.", job.name, held.id, held.attempt)
    try:
        job.work(context, held)
        logger.info("%s %s: done.", job.name, held.id)
    except Interrupted:
        with context.database.transaction() as session:
            claims.hand_back(session, held)
        logger.info("%s %s: handed back, this worker is ending.", job.name, held.id)
    except ClaimLost:
        raise
    except Exception as error:  # whatever it was, the attempt has failed
        logger.error("%s %s: attempt %d failed: %s", job.name, held.id, held.attempt, describe(error))
        with context.database.transaction() as session:
            if held.attempt < context.settings.attempts:
                claims.expire(session, held)
            else:
                _give_up(session, job, held, f"An error ({type(error).__name__}) occurred", held.attempt)


def _give_up(session: Session, job: Job, held: Claim, what: str, attempts: int) -> None:
    claims.hold(session, held)
    row = session.get_one(job.table, held.id, populate_existing=True)
    times = NUMBERS.get(attempts, f"{attempts} times")
    job.give_up(
        session,
        row,
        problem(
            f"{what} {times} while {job.doing}.",
            f"Job {job.name}, {job.table.__tablename__} {held.id}.",
            "Look into the worker's log for the cause, then try again.",
        ),
    )
    claims.release(session, held)


def heartbeat(context: Context, held: Claim) -> Heartbeat:
    """The plain heartbeat of a job that has no progress to tell of."""
    settings = context.settings
    return Heartbeat(context.database, held, settings.lease_seconds, context.shutdown)


def describe(error: BaseException) -> str:
    """Type and innermost places of an error, without its message."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__} at {places or 'an unknown place'}"
