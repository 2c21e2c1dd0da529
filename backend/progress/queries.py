"""Events: written in the transaction of what they tell, read by whoever may see their stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from backend.tables import Audit, Dataset, Event


def record_event(session: Session, stream_row: Dataset | Audit, kind: str, payload: dict[str, Any]) -> Event:
    """Adds the next event of a stream.

    Locks the stream's row until the transaction ends, so that numbers become visible in order and without gaps.
    Keep transactions that record events short. The time is the clock's, not the transaction's beginning, so that it
    runs with ``position``.
    """
    table = type(stream_row)
    session.execute(select(table.id).where(table.id == stream_row.id).with_for_update())
    last = session.scalar(select(func.max(Event.number)).where(Event.stream == stream_row.id))
    event = Event(
        stream=stream_row.id,
        number=(last or 0) + 1,
        team_id=stream_row.team_id,
        kind=kind,
        payload=dict(payload),
        created_at=func.clock_timestamp(),
    )
    session.add(event)
    session.flush()
    return event


def last_number(session: Session, stream: str) -> int:
    """Number of the newest event of a stream; 0 where there is none."""
    return session.scalar(select(func.max(Event.number)).where(Event.stream == stream)) or 0


def after_number(session: Session, stream: str, number: int, limit: int) -> Sequence[Event]:
    """The events of one stream after ``number``, in order."""
    found = select(Event).where(Event.stream == stream, Event.number > number).order_by(Event.number)
    return session.scalars(found.limit(limit)).all()


def newest_of_kind(session: Session, stream: str, kind: str) -> Event | None:
    """The last event of one kind."""
    found = select(Event).where(Event.stream == stream, Event.kind == kind).order_by(Event.number.desc())
    return session.scalar(found.limit(1))


def position_before(session: Session, allowed: ColumnElement[bool], overlap: timedelta, event: Event | None) -> int:
    """A position after which lies all that is later than ``event`` (or than now), or at most ``overlap`` earlier."""
    since = (func.now() if event is None else event.created_at) - overlap
    earlier = select(func.max(Event.position)).where(allowed, Event.created_at < since)
    if event is not None:
        earlier = earlier.where(Event.position < event.position)
    return session.scalar(earlier) or 0


def after_position(session: Session, allowed: ColumnElement[bool], position: int, limit: int) -> Sequence[Event]:
    """Events of all streams that may be seen, after ``position``."""
    found = select(Event).where(allowed, Event.position > position).order_by(Event.position)
    return session.scalars(found.limit(limit)).all()


def event_numbered(session: Session, stream: str, number: int, allowed: ColumnElement[bool]) -> Event | None:
    """One event, if it may be seen."""
    return session.scalar(select(Event).where(Event.stream == stream, Event.number == number, allowed))
