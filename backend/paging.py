"""Lists in pages: newest first, continued after a cursor that holds the last row's time and id."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, tuple_
from sqlalchemy.orm import Session

from backend.errors import InputProblem

Row = TypeVar("Row")


def page(
    session: Session,
    found: Select[Row],
    table: Any,
    limit: int,
    cursor: str | None,
    view: Callable[[Sequence[Row]], list[Any]],
) -> dict[str, Any]:
    """``{items, next}``: at most ``limit`` rows of ``found``; ``next`` is null on the last page."""
    if cursor:
        found = found.where(tuple_(table.created_at, table.id) < tuple_(*_read(cursor)))
    rows: Sequence[Row] = session.scalars(
        found.order_by(table.created_at.desc(), table.id.desc()).limit(limit + 1)
    ).all()
    shown = rows[:limit]
    last: Any = shown[-1] if len(rows) > limit else None
    following = None if last is None else _write(last.created_at, last.id)
    return {"items": view(shown), "next": following}


def _write(time: datetime, row_id: str) -> str:
    return base64.urlsafe_b64encode(f"{time.isoformat()} {row_id}".encode()).decode()


def _read(cursor: str) -> tuple[datetime, str]:
    try:
        time, _, row_id = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii").partition(" ")
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None or not row_id.isalnum():
            raise ValueError
    except (ValueError, binascii.Error):
        raise InputProblem.at("cursor", "This is not a cursor of this list. Start without one.") from None
    return moment, row_id
