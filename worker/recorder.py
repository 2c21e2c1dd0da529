"""The engine's Observer in the world: tells the database how far a stack is, and the engine when to stop.

Training only leaves a number behind (``step``); a thread renews the lease, writes the news about once a second and
reads whether somebody asked to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import case, func, select, update
from sqlalchemy.orm import Session

from backend.progress.queries import record_event
from backend.tables import Audit, Run, Stack
from worker.engine.errors import Stopped
from worker.tasks.claims import Claim, Heartbeat
from worker.tasks.context import Context

NEWS_SECONDS = 1.0
SURE_SECONDS = 2.0
"""Before this much training no time left is told: the first steps are slower than the rest."""


@dataclass
class Pace:
    """Seconds per step, measured from the second report on, so that loading and warming up do not count."""

    clock: Callable[[], float] = time.monotonic
    began: tuple[float, int] | None = None
    latest: tuple[float, int] | None = None

    def report(self, step: int) -> None:
        now = self.clock()
        self.began = self.began or (now, step)
        self.latest = (now, step)

    def seconds_per_step(self) -> float | None:
        """None while it is too early to say."""
        if self.began is None or self.latest is None:
            return None
        seconds, steps = self.latest[0] - self.began[0], self.latest[1] - self.began[1]
        return seconds / steps if seconds >= SURE_SECONDS and steps > 0 else None


class Recorder:
    """Observer of one stack. ``step`` touches no database and costs well under a microsecond's worth of training."""

    def __init__(self, context: Context, held: Claim, audit_id: str, number: int, steps: int) -> None:
        self._database = context.database
        self._held = held
        self._audit_id = audit_id
        self._number = number
        self._steps = steps
        self._step = 0
        self._told = -1
        self._stop = False
        self._pace = Pace()
        self.heartbeat = Heartbeat(
            context.database,
            held,
            context.settings.lease_seconds,
            context.shutdown,
            every_seconds=NEWS_SECONDS,
            news=self._tell,
        )

    def step(self, step: int, steps: int) -> None:  # noqa: ARG002 - as the engine calls it; the plan knows the steps
        """Note how far training is.

        Raises:
            Stopped: somebody asked to stop the audit.
            ClaimLost: somebody else trains this stack now.
            Interrupted: this worker is ending.
        """
        self._step = step
        self._pace.report(step)
        self.heartbeat.check()
        if self._stop:
            raise Stopped

    def _tell(self) -> None:
        """Two short transactions, so that the stack's row is let go before the audit's is locked."""
        step = self._step
        with self._database.transaction() as session:
            audit = session.get_one(Audit, self._audit_id)
            self._stop = audit.stop_requested or audit.state not in ("queued", "running")
            if self._stop or step == self._told:
                return
            session.execute(update(Stack).where(self._held.matches()).values(step=step))
        with self._database.transaction() as session:
            record_event(session, session.get_one(Audit, self._audit_id), "audit.progress", self._news(session, step))
        self._told = step

    def _news(self, session: Session, step: int) -> dict[str, object]:
        done = select(func.count()).where(Run.audit_id == self._audit_id, Run.state.in_(("finished", "diverged")))
        return {
            "stack": self._number,
            "step": step,
            "steps": self._steps,
            "seconds_left": self._seconds_left(session),
            "done_runs": session.scalar(done),
        }

    def _seconds_left(self, session: Session) -> float | None:
        """Of the whole audit: all steps still to do, at the pace measured here, by as many as train now."""
        pace = self._pace.seconds_per_step()
        if pace is None:
            return None
        to_do = case((Stack.state == "waiting", Stack.steps), else_=Stack.steps - Stack.step)
        left, training = session.execute(
            select(func.sum(to_do), func.count().filter(Stack.state == "training")).where(
                Stack.audit_id == self._audit_id, Stack.state.in_(("waiting", "training"))
            )
        ).one()
        seconds: float = float(left or 0) * pace / max(training, 1)
        return round(seconds, 1)
