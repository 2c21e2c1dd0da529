"""What pages ask about events: where the news that a page has not shown yet begins."""

from __future__ import annotations

from sqlalchemy.orm import Session

from backend.progress import queries


def newest_id(session: Session, stream: str) -> str | None:
    """Id of the newest event of a stream, for ``after=``; read it before what the page shows, so that none is missed."""
    number = queries.last_number(session, stream)
    return f"{stream}:{number}" if number else None
