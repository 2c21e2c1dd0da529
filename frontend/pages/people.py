"""Sign in by a one-time link, sign out, and who one is."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from backend.edge import (
    Asker,
    clear_session_cookie,
    known_principal,
    session_secret,
    set_session_cookie,
    settings_of,
    transaction,
)
from backend.people import service
from frontend.pages.rendering import page

router = APIRouter(include_in_schema=False)

ROLES = {
    "analyst": "fairness analyst",
    "dpo": "data-protection officer",
    "auditor": "auditor",
    "admin": "admin",
}
SCOPES = {
    "read": "See the datasets and audits of your team; a DPO or an auditor sees those of all teams.",
    "run": "Add and erase datasets, start, stop and resume audits.",
    "decide": "Decide on reports and sign them.",
    "admin": "Look after people, tokens and how long things are kept.",
}


@router.get("/sign-in/{secret}")
def sign_in(request: Request, secret: str) -> Response:
    """Shows a button; the link stays unused, so that a preview of it does not burn it."""
    with transaction(request) as session:
        link_person = service.link_person(session, secret)
    if link_person is None:
        return _signed_out(
            request,
            "This link cannot be used",
            "It was used already, or it has expired, or a part of it is missing.",
            401,
        )
    return page(request, "sign_in", known_principal(request), link_person=link_person, roles=ROLES)


@router.post("/sign-in/{secret}")
def redeem(request: Request, secret: str) -> Response:
    """Uses the link up and signs this browser in."""
    with transaction(request) as session:
        cookie = service.redeem_link(session, secret)
    answer = RedirectResponse("/", 303)
    set_session_cookie(answer, settings_of(request), cookie)
    return answer


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """Ends the session here and on the server."""
    secret = session_secret(request)
    if secret:
        with transaction(request) as session:
            service.sign_out(session, secret)
    answer = RedirectResponse("/signed-out", 303)
    clear_session_cookie(answer, settings_of(request))
    return answer


@router.get("/signed-out")
def signed_out(request: Request) -> Response:
    """Says how to come back in."""
    return _signed_out(request, "Signed out", "This browser is signed out, and its session has ended.")


def _signed_out(request: Request, heading: str, words: str, status: int = 200) -> Response:
    return page(request, "signed_out", None, status=status, heading=heading, words=words)


@router.get("/me")
def me(request: Request, principal: Asker) -> Response:
    """The person behind this browser and what they may do."""
    scopes = [(scope, words) for scope, words in SCOPES.items() if scope in principal.scopes]
    return page(request, "me", principal, roles=ROLES, scopes=scopes)
