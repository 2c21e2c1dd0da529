"""The activity log: who did what to what, when, from where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.activity import service
from backend.edge import Asker, transaction
from backend.errors import InputProblem
from backend.people import accounts
from backend.people.service import Principal
from frontend.pages.rendering import page

router = APIRouter(include_in_schema=False)

FILTERS = ("person", "action", "object", "since", "until")
KINDS = ("sign-in.", "sign-out.", "person.", "token.", "team.", "dataset.", "audit.")
GROUPS = dict(zip(KINDS, ("signing in", "signing out", "people", "tokens", "teams", "datasets", "audits"), strict=True))
LINKS = {"dataset": "/datasets/", "audit": "/audits/"}


@router.get("/activity")
def activity(request: Request, principal: Asker) -> Response:
    """The log for the filters in the URL, and whether its chain is whole."""
    given = {name: request.query_params.get(name, "").strip()[:200] for name in FILTERS}
    cursor = request.query_params.get("cursor") or None
    problem: InputProblem | None = None
    with transaction(request) as session:
        try:
            found = service.list_activity(session, principal, service.filters_of(given), cursor=cursor)
        except InputProblem as caught:
            problem, found = caught, {"items": [], "next": None}
        people = accounts.names(session)
        chain = service.check(session, principal) if request.query_params.get("check") else None
    query = {name: value for name, value in given.items() if value}
    return page(
        request,
        "activity",
        principal,
        "activity",
        status=problem.status if problem else 200,
        lines=[_line(principal, row) for row in found["items"]],
        filters=given,
        people=[("", "everybody"), *people],
        actions=[("", "everything"), *GROUPS.items(), *service.ACTIONS.items()],
        more=f"/activity?{urlencode(query | {'cursor': found['next']})}" if found["next"] else None,
        csv=f"/api/v1/activity.csv?{urlencode(query)}" if query else "/api/v1/activity.csv",
        check_address=f"/activity?{urlencode(query | {'check': 'yes'})}#chain",
        chain=chain,
        filtered=bool(query),
        errors={error["field"]: error["message"] for error in problem.errors} if problem else {},
    )


def _line(principal: Principal, row: Mapping[str, Any]) -> dict[str, Any]:
    kind, object_id = row["object_kind"], row["object_id"]
    link = LINKS.get(kind or "", "")
    own = principal.reads_all_teams or row["team_id"] == principal.team_id
    return {
        **row,
        "who_link": f"/activity?person={row['person_id']}" if row.get("person_id") else "",
        "who": row["person"] or {"command": "command line", "program": "the program"}.get(row["via"], "nobody known"),
        "words": service.ACTIONS.get(row["action"], row["action"]),
        "way": service.VIA.get(row["via"], row["via"]),
        "object_words": row["object"] or (f"{kind} {object_id[:8]}…" if object_id else "—"),
        "link": f"{link}{object_id}" if link and own else "",
        "more": "; ".join(f"{key.replace('_', ' ')}: {_said(value)}" for key, value in row["details"].items()),
    }


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
