"""The team: for everybody who is in it; for an admin everybody, invitations, links and teams."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from backend.edge import Asker, settings_of, transaction
from backend.errors import Conflict, InputProblem
from backend.people import accounts, letters, service, teams
from backend.people.letters import Delivery
from backend.people.service import Principal
from frontend.pages.rendering import page
from frontend.pages.sign_in import MOST_FIELDS, ROLES

router = APIRouter(include_in_schema=False)

AT_ONCE = 100
DONE = {
    "changed": "The account was changed.",
    "token": "That token can no longer be used.",
    "out": "All browser sessions of this person have ended.",
    "team": "The team was kept.",
}
NO_VALUES = {"name": "", "email": "", "role": "analyst", "team": "", "team_name": ""}


@router.get("/team")
def team(request: Request, principal: Asker, cursor: str | None = None) -> Response:
    """Who is here, and what they may do."""
    return _team(request, principal, cursor=cursor)


def _team(
    request: Request,
    principal: Principal,
    *,
    cursor: str | None = None,
    values: dict[str, str] | None = None,
    problem: InputProblem | None = None,
    sent: dict[str, Any] | None = None,
) -> Response:
    with transaction(request) as session:
        listed = accounts.list_people(session, principal, limit=AT_ONCE, cursor=cursor)
        all_teams = teams.list_teams(session, principal)
    return page(
        request,
        "team",
        principal,
        "team",
        status=problem.status if problem else 200,
        people=listed["items"],
        more=f"/team?cursor={listed['next']}" if listed["next"] else None,
        teams=all_teams,
        team_names={each["id"]: each["name"] for each in all_teams},
        may_admin="admin" in principal.scopes,
        roles=ROLES,
        mailing=bool(settings_of(request).smtp_url),
        values=NO_VALUES | {"team": principal.team_id} | (values or {}),
        errors={error["field"]: error["message"] for error in problem.errors} if problem else {},
        sent=sent,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


def _sent(name: str, purpose: str, delivery: Delivery) -> dict[str, Any]:
    return {"name": name, "purpose": purpose, "link": delivery.link, "failed": delivery.failed}


@router.post("/team/invite")
async def invite(request: Request, principal: Asker) -> Response:
    """Makes an account and its invitation: mailed, or shown this once."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return await run_in_threadpool(_invite, request, principal, _posted(form, "name", "email", "role", "team"))


def _posted(form: FormData, *names: str) -> dict[str, str]:
    return {name: str(form.get(name) or "").strip()[:500] for name in names}


def _invite(request: Request, principal: Principal, values: dict[str, str]) -> Response:
    try:
        with transaction(request) as session:
            person, secret = accounts.invite(session, principal, {key: value or None for key, value in values.items()})
    except InputProblem as problem:
        return _team(request, principal, values=values, problem=problem)
    delivery = letters.deliver(settings_of(request), "invitation", person["name"], person["email"], secret)
    return _team(request, principal, sent=_sent(person["name"], "invitation", delivery))


@router.post("/team/teams")
async def make_team(request: Request, principal: Asker) -> Response:
    """A team without people yet."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return await run_in_threadpool(_keep_team, request, principal, None, _posted(form, "team_name")["team_name"])


@router.post("/team/teams/{team_id}")
async def rename_team(request: Request, principal: Asker, team_id: str) -> Response:
    """Another name for a team."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return await run_in_threadpool(_keep_team, request, principal, team_id, _posted(form, "team_name")["team_name"])


def _keep_team(request: Request, principal: Principal, team_id: str | None, name: str) -> Response:
    try:
        with transaction(request) as session:
            if team_id is None:
                teams.make_team(session, principal, name)
            else:
                teams.rename_team(session, principal, team_id, name)
    except InputProblem as problem:
        field = "team_name" if team_id is None else f"team_name-{team_id}"
        shown = InputProblem(problem.detail, [{"field": field, "message": each["message"]} for each in problem.errors])
        return _team(request, principal, values={"team_name": name}, problem=shown)
    return RedirectResponse("/team?done=team#teams", 303)


@router.get("/team/people/{person_id}")
def person(request: Request, principal: Asker, person_id: str) -> Response:
    """One account, for an admin."""
    return _person(request, principal, person_id)


def _person(
    request: Request,
    principal: Principal,
    person_id: str,
    *,
    values: dict[str, Any] | None = None,
    problem: InputProblem | Conflict | None = None,
    sent: dict[str, Any] | None = None,
) -> Response:
    with transaction(request) as session:
        found = accounts.get_person(session, person_id)
        all_teams = teams.list_teams(session, principal)
        tokens = service.list_tokens(session, principal, person_id)
    return page(
        request,
        "person",
        principal,
        "team",
        status=problem.status if problem else 200,
        found=found,
        tokens=tokens,
        teams=[(each["id"], each["name"]) for each in all_teams],
        roles=list(ROLES.items()),
        mailing=bool(settings_of(request).smtp_url) and bool(found["email"]),
        values={**found, **(values or {})},
        errors={error["field"]: error["message"] for error in problem.errors} if problem else {},
        refused=problem.detail if isinstance(problem, Conflict) else "",
        sent=sent,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@router.post("/team/people/{person_id}")
async def change(request: Request, principal: Asker, person_id: str) -> Response:
    """Keeps what the form says."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        values = _posted(form, "name", "email", "role", "team", "active")
    return await run_in_threadpool(_change, request, principal, person_id, values)


def _change(request: Request, principal: Principal, person_id: str, values: dict[str, str]) -> Response:
    body = {key: value or None for key, value in values.items()} | {"active": values["active"] == "yes"}
    try:
        with transaction(request) as session:
            accounts.change_person(session, principal, person_id, body)
    except (InputProblem, Conflict) as problem:
        kept = values | {"state": "active" if body["active"] else "off"}
        return _person(request, principal, person_id, values=kept, problem=problem)
    return RedirectResponse(f"/team/people/{person_id}?done=changed", 303)


@router.post("/team/people/{person_id}/link")
def make_link(request: Request, principal: Asker, person_id: str) -> Response:
    """A fresh invitation, or a link for a new password: mailed, or shown this once."""
    try:
        with transaction(request) as session:
            found, secret, purpose = accounts.reset(session, principal, person_id)
    except Conflict as problem:
        return _person(request, principal, person_id, problem=problem)
    delivery = letters.deliver(settings_of(request), purpose, found["name"], found["email"], secret)
    return _person(request, principal, person_id, sent=_sent(found["name"], purpose, delivery))


@router.post("/team/people/{person_id}/tokens/{token_id}/revoke")
def revoke_token(request: Request, principal: Asker, person_id: str, token_id: str) -> Response:
    """Ends a token of a person at once."""
    with transaction(request) as session:
        service.revoke_token(session, principal, token_id)
    return RedirectResponse(f"/team/people/{person_id}?done=token#tokens", 303)


@router.post("/team/people/{person_id}/sign-out")
def sign_out(request: Request, principal: Asker, person_id: str) -> Response:
    """Ends every browser session of a person."""
    with transaction(request) as session:
        accounts.end_sessions_of(session, principal, person_id)
    if person_id == principal.person_id:
        return RedirectResponse("/sign-in", 303)
    return RedirectResponse(f"/team/people/{person_id}?done=out", 303)
