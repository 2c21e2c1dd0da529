"""How stacks and audits end: one place for what follows from what."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from backend.database import ask
from backend.progress.queries import record_event
from backend.queue import MEASURE_AUDIT, TRAIN_GPU, TRAIN_STACK
from backend.tables import Audit, Run, Stack

ACTIVE = ("queued", "running")
CUDA_KERNEL = "eager-cuda"
STOPPED = "The audit was stopped."


def queue_of(kernel: str) -> str | None:
    """Queue of a stack with this kernel; None is the usual one."""
    return TRAIN_GPU if kernel == CUDA_KERNEL else None


def ask_for_stack(session: Session, stack: Stack) -> None:
    """Send a stack to be trained once the transaction has committed."""
    stack.asked_at = func.now()
    ask(session, TRAIN_STACK, stack.id, queue_of(stack.kernel))


def lock_audit(session: Session, audit_id: str) -> Audit:
    """The audit as it is now, locked until the end of the transaction. Lock it before any of its stacks."""
    return session.get_one(Audit, audit_id, with_for_update=True, populate_existing=True)


def end_stack(session: Session, stack: Stack, state: str, reason: str | None = None) -> None:
    """A stack ends without results, and its runs with it."""
    stack.state, stack.reason, stack.step = state, reason, 0
    open_runs = (Run.stack_id == stack.id) & Run.state.in_(("waiting", "training"))
    session.execute(update(Run).where(open_runs).values(state=state, reason=reason))


def count_stacks(session: Session, audit_id: str) -> dict[str, int]:
    """Stacks of an audit by state."""
    rows = session.execute(
        select(Stack.state, func.count().label("stacks")).where(Stack.audit_id == audit_id).group_by(Stack.state)
    ).all()
    return {row.state: row.stacks for row in rows}


def ask_to_measure(session: Session, audit: Audit) -> None:
    """Send the audit to be measured, and to be ended if nothing else is left to do."""
    audit.asked_at = func.now()
    ask(session, MEASURE_AUDIT, audit.id)


def settle_audit(session: Session, audit: Audit) -> None:
    """End an audit if no stack of it is left to train and all finished ones are measured."""
    counts = count_stacks(session, audit.id)
    if audit.state not in ACTIVE or counts.get("waiting") or counts.get("training"):
        return
    if counts.get("finished", 0) > audit.measured_stacks:
        return
    if counts.get("stopped"):
        _end(session, audit, "stopped")
    elif counts.get("failed"):
        _end(session, audit, "failed")
    else:
        _end(session, audit, "finished")


def fail_audit(session: Session, audit: Audit, problem: dict[str, Any]) -> None:
    """An audit that cannot go on: waiting stacks fail with it, those in training notice and stop."""
    audit.problem = problem
    waiting = select(Stack).where(Stack.audit_id == audit.id, Stack.state == "waiting").with_for_update()
    for stack in session.scalars(waiting):
        end_stack(session, stack, "failed", problem["happened"][:500])
    _end(session, audit, "failed")


def _end(session: Session, audit: Audit, state: str) -> None:
    audit.state = state
    audit.finished_at = func.now()
    payload = {} if audit.problem is None else {"problem": audit.problem}
    record_event(session, audit, f"audit.{state}", payload)
