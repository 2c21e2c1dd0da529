"""The activity log, written: entries gather in a transaction and are chained at its end, after all other locks.

Each row's hash is the SHA-256 of its content and the hash before it, in one canonical spelling, so that anybody can check
an export: change or remove a row, and every hash after it is wrong. Beside the log stand its newest number and hash, so that
a cut end shows. Whoever can rewrite all of this can only be caught by a hash that was noted elsewhere; ``counterpoise
doctor`` and the page show the newest one for that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from backend.tables import Activity, ActivityEnd

PENDING = "activity"
START = "0" * 64
"""What stands before the first row."""


class Actor(Protocol):
    """Whoever acts: a person through a session or token, or the program itself."""

    @property
    def person_id(self) -> str | None: ...
    @property
    def team_id(self) -> str | None: ...
    @property
    def via(self) -> str: ...
    @property
    def address(self) -> str: ...


@dataclass(frozen=True)
class Somebody:
    """An actor who is no signed-in person: a visitor, the command line, the program."""

    via: str
    address: str = ""
    person_id: str | None = None
    team_id: str | None = None


COMMAND = Somebody("command")
PROGRAM = Somebody("program")


@dataclass(frozen=True)
class Entry:
    """One thing done. ``details`` hold words of the program and counts, never what a person wrote."""

    actor: Actor
    action: str
    object_kind: str | None = None
    object_id: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """What reading the chain found. ``broken_at`` is the first number that does not fit, with the reason."""

    rows: int
    number: int
    hash: str
    broken_at: int | None = None
    reason: str | None = None


def record(
    session: Session,
    actor: Actor,
    action: str,
    object_kind: str | None = None,
    object_id: str | None = None,
    **details: Any,
) -> None:
    """Remembers an entry; it is written when the transaction ends well, and forgotten when it does not.

    What a token did names the token.
    """
    if actor.via == "token":
        details["token"] = getattr(actor, "way_id", "")
    session.info.setdefault(PENDING, []).append(Entry(actor, action, object_kind, object_id, details))


def append_pending(session: Session) -> None:
    """Writes what was recorded. The lock of the chain is the last that a transaction takes, so none waits in a ring."""
    entries: list[Entry] = session.info.pop(PENDING, [])
    if not entries:
        return
    session.flush()
    session.execute(text("SELECT pg_advisory_xact_lock(hashtext('counterpoise activity'))"))
    end = session.get(ActivityEnd, 1, populate_existing=True)
    if end is None:
        end = ActivityEnd(id=1, number=0, hash=START)
        session.add(end)
    number, before = end.number, end.hash
    for entry in entries:
        number += 1
        row = _row(number, session.execute(select(func.clock_timestamp())).scalar_one(), entry, before)
        session.add(row)
        before = row.hash
    end.number, end.hash = number, before
    session.flush()


def _row(number: int, at: datetime, entry: Entry, before: str) -> Activity:
    row = Activity(
        number=number,
        at=at,
        action=entry.action,
        person_id=entry.actor.person_id,
        team_id=entry.actor.team_id,
        via=entry.actor.via,
        address=entry.actor.address[:45],
        object_kind=entry.object_kind,
        object_id=entry.object_id,
        details=entry.details,
        previous_hash=before,
    )
    row.hash = hash_of(row)
    return row


def hash_of(row: Activity) -> str:
    """SHA-256 of a JSON list: number, time in UTC, action, person, team, via, address, object, details, hash before."""
    content = [
        row.number,
        row.at.astimezone(UTC).isoformat(timespec="microseconds"),
        row.action,
        row.person_id,
        row.team_id,
        row.via,
        row.address,
        row.object_kind,
        row.object_id,
        row.details,
        row.previous_hash,
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check(session: Session, newest: int | None = None) -> Check:
    """Reads the chain, or its ``newest`` rows, and says where it breaks first."""
    found = select(Activity).order_by(Activity.number)
    if newest is not None:
        last = session.scalar(select(func.max(Activity.number))) or 0
        found = found.where(Activity.number > last - newest)
    end = session.get(ActivityEnd, 1, populate_existing=True)
    rows = session.scalars(found.execution_options(yield_per=1000))
    try:
        followed = _follow(rows, whole=newest is None)
    finally:
        rows.close()
    if followed.reason is None and end is not None and followed.number < end.number:
        return replace(followed, broken_at=followed.number + 1, reason="the log was cut at its end")
    return followed


def _follow(rows: Iterable[Activity], *, whole: bool) -> Check:
    before = Check(0, 0, START)
    for count, row in enumerate(rows):
        known = whole or count > 0
        reason = _fault(row, before, known=known)
        if reason is not None:
            return Check(count, row.number, row.hash, before.number + 1 if known else row.number, reason)
        before = Check(count + 1, row.number, row.hash)
    return before


def _fault(row: Activity, before: Check, *, known: bool) -> str | None:
    if known and row.number != before.number + 1:
        return "a row is missing"
    if known and row.previous_hash != before.hash:
        return "the row before it was replaced"
    return None if row.hash == hash_of(row) else "the row was changed"
