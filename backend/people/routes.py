"""Who am I, and tokens for internal tools."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from backend.edge import Asker, Body, body_schema, transaction
from backend.errors import InputProblem, NotAllowed
from backend.people import service
from backend.people.schemas import Me, TokenAsked, TokenList, TokenMade
from backend.people.service import Principal
from backend.plain import clean_name, refuse_strange

router = APIRouter(prefix="/api/v1", tags=["people"])


@router.get("/me", summary="Who is asking", response_model=Me)
def me(principal: Asker) -> dict[str, Any]:
    """The person behind the token or the browser session, and what they may do."""
    return {
        "id": principal.person_id,
        "name": principal.name,
        "role": principal.role,
        "team": principal.team_id,
        "permissions": sorted(principal.scopes),
        "via": principal.via,
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
    if principal.via != "session":
        raise NotAllowed("A token cannot make tokens. It was asked to. Sign in with the browser and make it there.")
    name, scopes, days = _asked(body)
    with transaction(request) as session:
        return {"token": service.make_token(session, principal.person_id, name=name, scopes=scopes, days=days)}


def _asked(body: dict[str, Any]) -> tuple[str, list[str], float]:
    refuse_strange(body)
    name, scopes, days = body.get("name"), body.get("scopes"), body.get("days", service.TOKEN_DAYS)
    if not isinstance(name, str):
        raise InputProblem.at("name", "A token needs a name.")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise InputProblem.at("scopes", "Scopes are a list of names.")
    if isinstance(days, bool) or not isinstance(days, int | float):
        raise InputProblem.at("days", "Days are a number.")
    return clean_name(name, otherwise=""), scopes, days


@router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a token")
def revoke_token(request: Request, principal: Asker, token_id: str) -> None:
    """Ends a token at once."""
    _session_or_admin(principal)
    with transaction(request) as session:
        service.revoke_token(session, principal, token_id)


def _session_or_admin(principal: Principal) -> None:
    if principal.via != "session":
        raise NotAllowed("A token cannot revoke tokens. It was asked to. Sign in with the browser and do it there.")
