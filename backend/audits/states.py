"""Stopping, resuming and erasing an audit. The audit's row is locked before its stacks', as the workers do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from backend.audits import queries
from backend.database import ask
from backend.errors import Conflict
from backend.progress.queries import newest_of_kind, record_event
from backend.queue import MEASURE_AUDIT, PLAN_AUDIT, TRAIN_GPU, TRAIN_STACK
from backend.storage import Storage
from backend.tables import Audit, Dataset, Stack

STATES = ("planning", "queued", "running", "finished", "stopped", "failed", "erased")
ENDED = ("finished", "stopped", "failed", "erased")
STOPPED = "The audit was stopped."


def stop(session: Session, audit: Audit) -> None:
    """Waiting stacks end at once, those in training as soon as their worker looks; stopping twice does no harm.

    Raises:
        Conflict: it has ended otherwise.
    """
    if audit.state == "stopped":
        return
    if audit.state in ENDED:
        raise Conflict(f"The audit is {audit.state}. There is nothing to stop. See its results.")
    audit.stop_requested = True
    _end_waiting(session, audit)
    session.flush()
    if queries.count_stacks(session, audit.id, "training"):
        return
    if audit.state != "planning" and queries.count_stacks(session, audit.id, "finished") > audit.measured_stacks:
        _ask(session, audit, MEASURE_AUDIT)
    else:
        _ended(session, audit)


def _end_waiting(session: Session, audit: Audit) -> None:
    waiting = queries.stacks_in(session, audit.id, "waiting")
    for stack in waiting:
        stack.state, stack.reason, stack.lease_until, stack.worker = "stopped", STOPPED, None, None
    queries.set_runs(session, [stack.id for stack in waiting], ("waiting", "training"), "stopped", STOPPED)


def _ended(session: Session, audit: Audit) -> None:
    audit.state, audit.finished_at = "stopped", datetime.now(UTC)
    audit.lease_until = audit.worker = None
    record_event(session, audit, "audit.stopped", {})


def resume(session: Session, audit: Audit, dataset: Dataset) -> None:
    """Stacks that were stopped or failed wait again; they train from the start and give the same numbers.

    Raises:
        Conflict: it is not stopped or failed, or its dataset was erased.
    """
    if audit.state not in ("stopped", "failed"):
        raise Conflict(f"The audit is {audit.state}. Only a stopped or failed one can go on. Wait, or stop it first.")
    if dataset.state == "erased":
        raise Conflict("The dataset of this audit was erased. It cannot go on. Its finished results stay.")
    audit.stop_requested, audit.problem, audit.finished_at = False, None, None
    audit.attempt, audit.lease_until, audit.worker = 0, None, None
    stacks = queries.stacks_in(session, audit.id, "stopped", "failed")
    queries.set_runs(session, [stack.id for stack in stacks], ("stopped", "failed"), "waiting", None)
    planned = audit.claim is not None
    for stack in stacks:
        _wait_again(session, stack, send=planned)
    audit.state = "queued" if planned else "planning"
    if not planned:
        _ask(session, audit, PLAN_AUDIT)
    elif not stacks:
        _ask(session, audit, MEASURE_AUDIT)
    record_event(session, audit, "audit.resumed", {"stacks": len(stacks)})


def _wait_again(session: Session, stack: Stack, *, send: bool) -> None:
    stack.state, stack.reason, stack.step = "waiting", None, 0
    stack.attempt, stack.lease_until, stack.worker = 0, None, None
    if send:
        stack.asked_at = datetime.now(UTC)
        ask(session, TRAIN_STACK, stack.id, TRAIN_GPU if stack.kernel == queries.CUDA_KERNEL else None)


def _ask(session: Session, audit: Audit, job: str) -> None:
    audit.asked_at = datetime.now(UTC)
    ask(session, job, audit.id)


def erase(session: Session, storage: Storage, audit: Audit, erased_by: str) -> dict[str, Any]:
    """Removes every number and the logits, returns the receipt; the runs stay as the record of the privacy spent."""
    if audit.state == "erased":
        return receipt(session, audit) or {}
    _take_away(session, audit)
    stacks = queries.stacks_in(session, audit.id, "finished", "stopped", "failed")
    keys = [stack.logits_key for stack in stacks if stack.logits_key]
    for stack in stacks:
        stack.logits_key = None
    statistics, measurements = queries.remove_numbers(session, audit.id)
    audit.state, audit.stop_requested = "erased", True
    audit.finished_at = audit.finished_at or datetime.now(UTC)
    audit.lease_until = audit.worker = None
    payload = {
        "erased_at": datetime.now(UTC).isoformat(),
        "erased_by": erased_by,
        "audit": audit.id,
        "files_deleted": len(keys),
        "statistics_removed": statistics,
        "measurements_removed": measurements,
    }
    record_event(session, audit, "audit.erased", payload)
    event.listen(session, "after_commit", lambda _: [storage.delete(key) for key in keys], once=True)
    return payload


def _take_away(session: Session, audit: Audit) -> None:
    """Ends what still waits or trains; a worker finds its row taken and discards what it has."""
    reason = "The audit was erased."
    stacks = queries.stacks_in(session, audit.id, "waiting", "training")
    for stack in stacks:
        stack.state, stack.reason, stack.lease_until, stack.worker = "stopped", reason, None, None
        stack.attempt += 1
    queries.set_runs(session, [stack.id for stack in stacks], ("waiting", "training"), "stopped", reason)
    session.flush()


def receipt(session: Session, audit: Audit) -> dict[str, Any] | None:
    """The receipt of an erased audit: its own last event."""
    found = newest_of_kind(session, audit.id, "audit.erased") if audit.state == "erased" else None
    return None if found is None else found.payload
