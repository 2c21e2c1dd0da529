"""The activity log, read: in pages, narrowed by filters, with the names that people have now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from backend import chain
from backend.activity import queries
from backend.activity.queries import Filters
from backend.errors import InputProblem
from backend.people.service import Principal, names_of, require
from backend.tables import Activity
from worker.engine.results import FieldError

ACTIONS: Mapping[str, str] = {
    "sign-in.done": "signed in",
    "sign-in.failed": "failed to sign in",
    "sign-in.locked": "failed to sign in; locked for a while",
    "sign-out.done": "signed out",
    "sign-out.everywhere": "ended all sessions",
    "person.invited": "invited somebody",
    "person.came": "came by the identity provider",
    "person.changed": "changed an account",
    "provider.linked": "linked an account of the identity provider",
    "invitation.accepted": "accepted an invitation",
    "reset.accepted": "set a new password by a link",
    "password.changed": "changed the password",
    "link.made": "made a sign-in link",
    "link.asked": "asked for a new password",
    "team.made": "made a team",
    "team.renamed": "renamed a team",
    "token.made": "made a token",
    "token.revoked": "revoked a token",
    "dataset.added": "added a dataset",
    "dataset.recipe": "changed how a dataset is read",
    "dataset.roles": "gave columns their roles",
    "dataset.erased": "erased a dataset",
    "audit.started": "started an audit",
    "audit.stopped": "stopped an audit",
    "audit.resumed": "resumed an audit",
    "audit.erased": "erased an audit",
    "table.asked": "asked for a table as CSV",
}
"""Every action that is written down, in words; a test compares it with the calls."""

VIA = {
    "session": "browser",
    "token": "token",
    "command": "command line",
    "program": "the program",
    "visitor": "not signed in",
    "link": "one-time link",
    "provider": "identity provider",
}


def filters_of(given: Mapping[str, str | None]) -> Filters:
    """Filters from text; a day stands for its beginning in UTC, as ``until`` for its end.

    Raises:
        InputProblem: at each that cannot be used.
    """
    errors = []
    times: dict[str, datetime | None] = {}
    for name in ("since", "until"):
        times[name], problem = _time(given.get(name), end=name == "until")
        if problem:
            errors.append(FieldError(name, problem))
    action = given.get("action") or None
    if action is not None and not any(
        known == action or (action.endswith(".") and known.startswith(action)) for known in ACTIONS
    ):
        errors.append(FieldError("action", f"There is no such action. There are: {', '.join(ACTIONS)}."))
    ids = {name: given.get(name) or None for name in ("person", "object")}
    errors += [
        FieldError(name, "This is not an id: 32 letters and digits.")
        for name, value in ids.items()
        if value is not None and not (value.isascii() and value.isalnum() and len(value) <= 32)
    ]
    if errors:
        raise InputProblem.of(errors)
    return Filters(ids["person"], action, ids["object"], times["since"], times["until"])


def _time(text: str | None, *, end: bool) -> tuple[datetime | None, str]:
    if not text:
        return None, ""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None, "This is not a day or a time. Write it like 2026-01-31, or 2026-01-31T09:00:00Z."
    if end and len(text) == 10:
        found = found.replace(hour=23, minute=59, second=59, microsecond=999_999)
    return found if found.tzinfo else found.replace(tzinfo=UTC), ""


def list_activity(
    session: Session, principal: Principal, filters: Filters, *, limit: int = 50, cursor: str | None = None
) -> dict[str, Any]:
    """A page of the log, newest first; ``next`` is null on the last.

    Raises:
        InputProblem: a cursor that is none.
    """
    require(principal, "oversee")
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 18):
        raise InputProblem.at("cursor", "This is not a cursor of this list. Start without one.")
    rows = queries.page_before(session, filters, int(cursor) if cursor else None, limit + 1)
    shown = rows[:limit]
    return {"items": views(session, shown), "next": str(shown[-1].number) if len(rows) > limit else None}


def views(session: Session, rows: Sequence[Activity]) -> list[dict[str, Any]]:
    """Rows as REST, CSV and page show them; the name is not part of the chain."""
    ids = {value for row in rows for value in (row.person_id, row.object_id) if value}
    names = names_of(session, ids)
    same = ("number", "at", "action", "person_id", "team_id", "via", "address", "object_kind", "object_id", "details")
    return [
        {name: getattr(row, name) for name in (*same, "previous_hash", "hash")}
        | {
            "person": names.get(row.person_id or ""),
            "object": names.get(row.object_id or "") if row.object_kind == "person" else None,
        }
        for row in rows
    ]


def check(session: Session, principal: Principal) -> dict[str, Any]:
    """Whether every hash still fits the one before; reads the whole log."""
    require(principal, "oversee")
    found = chain.check(session)
    return {
        "whole": found.reason is None,
        "rows": found.rows,
        "broken_at": found.broken_at,
        "reason": found.reason,
        "newest_number": found.number,
        "newest_hash": found.hash,
    }
