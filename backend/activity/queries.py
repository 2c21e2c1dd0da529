"""All SQL about the activity log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from backend.tables import Activity


@dataclass(frozen=True)
class Filters:
    """What a list is narrowed to; None is everything. ``since`` is included, ``until`` is not."""

    person: str | None = None
    action: str | None = None
    object: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def matching(filters: Filters) -> Select[Activity]:
    """Rows that match, newest first. An action ending in a dot stands for all that begin with it."""
    found = select(Activity).order_by(Activity.number.desc())
    if filters.person is not None:
        found = found.where(Activity.person_id == filters.person)
    if filters.action is not None:
        begins = filters.action.endswith(".")
        match = (
            Activity.action.startswith(filters.action, autoescape=True) if begins else Activity.action == filters.action
        )
        found = found.where(match)
    if filters.object is not None:
        found = found.where(Activity.object_id == filters.object)
    if filters.since is not None:
        found = found.where(Activity.at >= filters.since)
    return found if filters.until is None else found.where(Activity.at < filters.until)


def page_before(session: Session, filters: Filters, before: int | None, limit: int) -> Sequence[Activity]:
    """At most ``limit`` rows with numbers below ``before``."""
    found = matching(filters)
    if before is not None:
        found = found.where(Activity.number < before)
    return session.scalars(found.limit(limit)).all()
