"""The activity log by REST: pages, CSV, and whether its chain is whole."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from backend.activity import service
from backend.activity.queries import Filters
from backend.activity.schemas import ActivityList, ChainCheck
from backend.csv_export import csv_response
from backend.edge import Asker, transaction

router = APIRouter(prefix="/api/v1", tags=["activity"])

MOST_CSV_ROWS = 100_000
COLUMNS = [
    "number",
    "at",
    "action",
    "person",
    "person_id",
    "team_id",
    "via",
    "address",
    "object_kind",
    "object_id",
    "details",
    "previous_hash",
    "hash",
]


def _filters(
    person: Annotated[str | None, Query(description="Id of who did it.")] = None,
    action: Annotated[str | None, Query(description="An action, or the begin of several: `sign-in.`")] = None,
    object: Annotated[str | None, Query(description="Id of what it was done to.")] = None,
    since: Annotated[str | None, Query(description="A day or a time, included.")] = None,
    until: Annotated[str | None, Query(description="A day, included, or a time.")] = None,
) -> Filters:
    given = {"person": person, "action": action, "object": object, "since": since, "until": until}
    return service.filters_of(given)


Narrowed = Annotated[Filters, Depends(_filters)]


@router.get("/activity", summary="Activity, newest first", response_model=ActivityList)
def activity(
    request: Request,
    principal: Asker,
    filters: Narrowed,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
) -> dict[str, Any]:
    """Who did what to what, when, from where."""
    with transaction(request) as session:
        return service.list_activity(session, principal, filters, limit=limit, cursor=cursor)


@router.get("/activity.csv", summary="Activity, as CSV", response_class=Response)
def activity_csv(request: Request, principal: Asker, filters: Narrowed) -> Response:
    """The same rows with their hashes, at most 100,000: narrow by time for more."""
    with transaction(request) as session:
        rows = service.list_activity(session, principal, filters, limit=MOST_CSV_ROWS)["items"]
    return csv_response("activity", COLUMNS, [row | {"at": row["at"].isoformat()} for row in rows])


@router.get("/activity/check", summary="Is the log whole", response_model=ChainCheck)
def check(request: Request, principal: Asker) -> dict[str, Any]:
    """Follows the chain from the first row to the newest."""
    with transaction(request) as session:
        return service.check(session, principal)
