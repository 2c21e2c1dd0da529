"""Who am I, my sessions and tokens; for admins people and teams."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from backend.edge import Asker, Body, body_schema, csrf_token, session_secret, settings_of, transaction
from backend.errors import InputProblem
from backend.people import accounts, letters, service, teams
from backend.people.schemas import (
    Ended,
    Invitation,
    Me,
    PersonChange,
    PersonList,
    PersonView,
    PersonWithLink,
    SessionList,
    TeamAsked,
    TeamList,
    TeamView,
    TokenAsked,
    TokenList,
    TokenMade,
)
from backend.people.service import Principal
from backend.plain import clean_name, refuse_strange

router = APIRouter(prefix="/api/v1", tags=["people"])


@router.get("/me", summary="Who is asking", response_model=Me)
def me(request: Request, principal: Asker) -> dict[str, Any]:
    """The person behind the token or the browser session, and what they may do."""
    return {
        "id": principal.person_id,
        "name": principal.name,
        "role": principal.role,
        "team": principal.team_id,
        "permissions": sorted(principal.scopes),
        "via": principal.via,
        "csrf_token": csrf_token(session_secret(request) or "") if principal.via == "session" else None,
    }


@router.get("/tokens", summary="One's own tokens", response_model=TokenList)
def tokens(request: Request, principal: Asker) -> dict[str, Any]:
    """Tokens that were not revoked, without their secrets."""
    with transaction(request) as session:
        return {"items": service.list_tokens(session, principal), "next": None}


@router.post(
    "/tokens",
    status_code=201,
    summary="Make a token",
    response_model=TokenMade,
    openapi_extra=body_schema(TokenAsked),
)
def make_token(request: Request, principal: Asker, body: Body) -> dict[str, str]:
    """A token for oneself; the secret is in this answer and nowhere else. Only a browser session can make one."""
    name, scopes, days = _asked(principal, body)
    with transaction(request) as session:
        secret = service.make_token(session, principal.person_id, name=name, scopes=scopes, days=days, by=principal)
    return {"token": secret}


def _asked(principal: Principal, body: dict[str, Any]) -> tuple[str, list[str], float]:
    refuse_strange(body)
    name, scopes, days = body.get("name"), body.get("scopes"), body.get("days", service.TOKEN_DAYS)
    if not isinstance(name, str):
        raise InputProblem.at("name", "A token needs a name.")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise InputProblem.at("scopes", "Scopes are a list of names.")
    beyond = sorted(set(scopes) - principal.scopes)
    if beyond and set(scopes) <= set(service.TOKEN_SCOPES):
        raise InputProblem.at(
            "scopes", f"Your role does not hold {', '.join(beyond)}. A token cannot hold more than you."
        )
    if isinstance(days, bool) or not isinstance(days, int | float):
        raise InputProblem.at("days", "Days are a number.")
    return clean_name(name, otherwise=""), scopes, days


@router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a token")
def revoke_token(request: Request, principal: Asker, token_id: str) -> None:
    """Ends a token at once; an admin ends anybody's."""
    with transaction(request) as session:
        service.revoke_token(session, principal, token_id)


@router.get("/sessions", summary="One's own browser sessions", response_model=SessionList)
def sessions(request: Request, principal: Asker) -> dict[str, Any]:
    """Every browser in which one is signed in now."""
    with transaction(request) as session:
        return {"items": service.sessions_of(session, principal), "next": None}


@router.delete("/sessions", summary="Sign out everywhere", response_model=Ended)
def end_sessions(request: Request, principal: Asker) -> dict[str, int]:
    """Ends every session of one's own, this one too. Tokens go on."""
    with transaction(request) as session:
        return {"ended": service.end_all_sessions(session, principal)}


@router.delete("/sessions/{session_id}", status_code=204, summary="End a session")
def end_session(request: Request, principal: Asker, session_id: str) -> None:
    """Signs one of one's own browsers out."""
    with transaction(request) as session:
        service.end_session(session, principal, session_id)


@router.get("/people", summary="People, newest first", response_model=PersonList)
def people(
    request: Request,
    principal: Asker,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
    team: Annotated[str | None, Query(description="People of this team alone; for admins.")] = None,
) -> dict[str, Any]:
    """An admin sees everybody; anybody else their own team."""
    with transaction(request) as session:
        return accounts.list_people(session, principal, limit=limit, cursor=cursor, team=team)


@router.post(
    "/people",
    status_code=201,
    summary="Invite somebody",
    response_model=PersonWithLink,
    openapi_extra=body_schema(Invitation),
)
def invite(request: Request, principal: Asker, body: Body) -> dict[str, Any]:
    """Makes the account; the invitation is mailed, or its link is in this answer and nowhere else."""
    with transaction(request) as session:
        person, secret = accounts.invite(session, principal, body)
    return _with_link(request, person, "invitation", secret)


@router.patch(
    "/people/{person_id}",
    summary="Change an account",
    response_model=PersonView,
    openapi_extra=body_schema(PersonChange),
)
def change_person(request: Request, principal: Asker, person_id: str, body: Body) -> dict[str, Any]:
    """Name, e-mail, role, team, or switched off."""
    with transaction(request) as session:
        return accounts.change_person(session, principal, person_id, body)


@router.post("/people/{person_id}/link", status_code=201, summary="A fresh link", response_model=PersonWithLink)
def person_link(request: Request, principal: Asker, person_id: str) -> dict[str, Any]:
    """Resets the password, or renews the invitation of somebody who has not accepted it; replaces earlier links."""
    with transaction(request) as session:
        person, secret, purpose = accounts.reset(session, principal, person_id)
    return _with_link(request, person, purpose, secret)


def _with_link(request: Request, person: dict[str, Any], purpose: service.Purpose, secret: str) -> dict[str, Any]:
    sent = letters.deliver(settings_of(request), purpose, person["name"], person["email"], secret)
    return person | {"mailed": sent.mailed, "link": sent.link}


@router.delete("/people/{person_id}/sessions", summary="Sign somebody out", response_model=Ended)
def end_sessions_of(request: Request, principal: Asker, person_id: str) -> dict[str, int]:
    """Ends every browser session of a person."""
    with transaction(request) as session:
        return {"ended": accounts.end_sessions_of(session, principal, person_id)}


@router.get("/teams", summary="Teams", response_model=TeamList)
def list_teams(request: Request, principal: Asker) -> dict[str, Any]:
    """All teams for an admin, one's own for anybody else."""
    with transaction(request) as session:
        return {"items": teams.list_teams(session, principal), "next": None}


@router.post(
    "/teams", status_code=201, summary="Make a team", response_model=TeamView, openapi_extra=body_schema(TeamAsked)
)
def make_team(request: Request, principal: Asker, body: Body) -> dict[str, Any]:
    """A team without people yet."""
    with transaction(request) as session:
        return teams.make_team(session, principal, body.get("name"))


@router.patch(
    "/teams/{team_id}", summary="Rename a team", response_model=TeamView, openapi_extra=body_schema(TeamAsked)
)
def rename_team(request: Request, principal: Asker, team_id: str, body: Body) -> dict[str, Any]:
    """Another name; ids stay."""
    with transaction(request) as session:
        return teams.rename_team(session, principal, team_id, body.get("name"))
