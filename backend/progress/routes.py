"""Server-sent events from the event table: whoever reconnects with Last-Event-ID misses nothing.

No database session is held while waiting. The stream of one dataset or audit is exact: numbers have no gaps. The
stream of all that one may see goes by position, which may become visible out of order, and therefore looks back over
``OVERLAP``; after a reconnection it may tell something twice, and never leaves anything out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from backend.database import Database
from backend.edge import Asker, database_of, known_principal, transaction
from backend.errors import InputProblem
from backend.people.service import Principal, fetch_owned, visible
from backend.progress import queries
from backend.tables import Audit, Dataset, Event

router = APIRouter(prefix="/api/v1/events", tags=["progress"])

POLL_SECONDS = 0.6
HEARTBEAT_SECONDS = 15.0
OVERLAP = timedelta(seconds=30)
AT_ONCE = 500
EVENT_ID = re.compile(r"([0-9a-f]{32}):([0-9]{1,9})")

Read = Callable[[], Sequence[Event]]


@router.get("", summary="News as server-sent events", response_class=StreamingResponse)
def events(
    request: Request,
    principal: Asker,
    audit: Annotated[str | None, Query(description="News of this audit alone.")] = None,
    dataset: Annotated[str | None, Query(description="News of this dataset alone.")] = None,
    after: Annotated[str | None, Query(description="Start after this event, `stream:number`.")] = None,
    last_event_id: Annotated[str | None, Header(description="Sent by browsers on reconnecting; beats `after`.")] = None,
) -> StreamingResponse:
    """Each message has an id `stream:number` and data `{stream, number, kind, created_at, ...}`.

    With `audit` or `dataset` all of its news from the first (or after the given one), exactly once. Without, all that
    one may see, from 30 seconds before now (or before the given event) on; duplicates are possible, gaps are not.
    """
    if audit is not None and dataset is not None:
        raise InputProblem.at("dataset", "Ask for an audit or for a dataset, not for both.")
    from_id = _event_id("Last-Event-ID", last_event_id) or _event_id("after", after)
    with transaction(request) as session:
        read = _reader(session, database_of(request), principal, audit, dataset, from_id)
    return StreamingResponse(
        _stream(request, principal, read),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def _event_id(field: str, text: str | None) -> tuple[str, int] | None:
    if not text:
        return None
    found = EVENT_ID.fullmatch(text)
    if found is None:
        raise InputProblem.at(field, "This is not the id of an event. Start without one.")
    return found[1], int(found[2])


def _reader(
    session: Session,
    database: Database,
    principal: Principal,
    audit: str | None,
    dataset: str | None,
    from_id: tuple[str, int] | None,
) -> Read:
    if audit is not None:
        stream = fetch_owned(session, principal, Audit, audit).id
    elif dataset is not None:
        stream = fetch_owned(session, principal, Dataset, dataset).id
    else:
        return _everything(session, database, visible(principal, Event), from_id)
    return OneStream(database, stream, from_id[1] if from_id and from_id[0] == stream else 0)


def _everything(
    session: Session, database: Database, allowed: ColumnElement[bool], from_id: tuple[str, int] | None
) -> AllStreams:
    event = from_id and queries.event_numbered(session, *from_id, allowed)
    return AllStreams(database, allowed, queries.position_before(session, allowed, OVERLAP, event or None))


@dataclass
class OneStream:
    """Reads one stream by number: exact."""

    database: Database
    stream: str
    number: int

    def __call__(self) -> Sequence[Event]:
        with self.database.transaction() as session:
            found = queries.after_number(session, self.stream, self.number, AT_ONCE)
        if found:
            self.number = found[-1].number
        return found


@dataclass
class AllStreams:
    """Reads by position, again and again over the last ``OVERLAP``, and remembers what it has told."""

    database: Database
    allowed: ColumnElement[bool]
    position: int
    told: dict[int, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic

    def __call__(self) -> Sequence[Event]:
        fresh: list[Event] = []
        position = self.position
        with self.database.transaction() as session:
            while found := queries.after_position(session, self.allowed, position, AT_ONCE):
                position = found[-1].position
                fresh += [event for event in found if event.position not in self.told]
                if len(found) < AT_ONCE or len(fresh) >= AT_ONCE:
                    break
        self._remember(fresh)
        return fresh

    def _remember(self, fresh: Sequence[Event]) -> None:
        now = self.clock()
        self.told.update((event.position, now) for event in fresh)
        settled = [position for position, told_at in self.told.items() if now - told_at > OVERLAP.total_seconds()]
        if settled:
            self.position = max(self.position, *settled)
            self.told = {position: told_at for position, told_at in self.told.items() if position > self.position}


async def _stream(request: Request, principal: Principal, read: Read) -> AsyncIterator[str]:
    """Messages until the browser leaves, the sender is signed out, or the server closes."""
    yield "retry: 2000\n: hello\n\n"
    quiet_since = checked = time.monotonic()
    while not request.app.state.closing:
        found = await run_in_threadpool(read)
        now = time.monotonic()
        if found:
            quiet_since = now
            yield "".join(message(event) for event in found)
        elif now - quiet_since >= HEARTBEAT_SECONDS:
            quiet_since = now
            yield ": still here\n\n"
        if now - checked >= HEARTBEAT_SECONDS:
            checked = now
            if not _still(principal, await run_in_threadpool(known_principal, request)):
                return
        if len(found) < AT_ONCE:
            await anyio.sleep(POLL_SECONDS)


def _still(before: Principal, now: Principal | None) -> bool:
    """Whether somebody may go on listening: signed in, in the same team, with the same role and permissions."""
    return now is not None and (now.team_id, now.role, now.scopes) == (before.team_id, before.role, before.scopes)


def message(event: Event) -> str:
    """One server-sent message; JSON holds no line breaks."""
    data: dict[str, Any] = event.payload | {
        "stream": event.stream,
        "number": event.number,
        "kind": event.kind,
        "created_at": event.created_at.isoformat(),
    }
    return f"id: {event.stream}:{event.number}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"
