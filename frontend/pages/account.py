"""Oneself: name, password, browsers that are signed in, and tokens for internal tools."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from backend.edge import Asker, origin_of, settings_of, transaction
from backend.errors import InputProblem
from backend.people import accounts, passwords, service
from backend.people.service import Origin, Principal
from backend.permissions import MEANINGS
from backend.plain import clean_name
from frontend.pages.rendering import page
from frontend.pages.sign_in import MOST_FIELDS, ROLES, to_signed_out

router = APIRouter(include_in_schema=False)

DONE = {
    "name": "The name was changed.",
    "password": "The password was changed; your other sessions ended.",
    "session": "That session has ended.",
}
DAYS = ("7", "30", "90", "365")


@router.get("/me")
def me(request: Request, principal: Asker) -> Response:
    """The person behind this browser, what they may do, and where they are signed in."""
    return _me(request, principal)


def _me(request: Request, principal: Principal, problem: InputProblem | None = None) -> Response:
    with transaction(request) as session:
        sessions = service.sessions_of(session, principal)
        email, stored = accounts.stored_password(session, principal)
        team = service.team_name(session, principal)
    return page(
        request,
        "me",
        principal,
        "me",
        status=problem.status if problem else 200,
        roles=ROLES,
        scopes=[(scope, words) for scope, words in MEANINGS.items() if scope in principal.scopes],
        sessions=sessions,
        team=team,
        email=email,
        has_password=stored is not None,
        done=DONE.get(request.query_params.get("done", ""), ""),
        errors={error["field"]: error["message"] for error in problem.errors} if problem else {},
    )


@router.post("/me/name")
async def rename(request: Request, principal: Asker) -> Response:
    """Another name for oneself."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        name = str(form.get("name") or "")

    def keep() -> None:
        with transaction(request) as session:
            accounts.rename_oneself(session, principal, name)

    try:
        await run_in_threadpool(keep)
    except InputProblem as problem:
        return await run_in_threadpool(_me, request, principal, problem)
    return RedirectResponse("/me?done=name", 303)


@router.post("/me/password")
async def change_password(request: Request, principal: Asker) -> Response:
    """A new password; the present one is asked for, and wrong ones are counted like failed sign-ins."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        present, new, again = (str(form.get(name) or "")[:1000] for name in ("present", "password", "again"))
    try:
        with request.app.state.gate.enter(origin_of(request).address, guesses=False):
            await _change_password(request, principal, present, new, again)
    except InputProblem as problem:
        return await run_in_threadpool(_me, request, principal, problem)
    return RedirectResponse("/me?done=password", 303)


async def _change_password(request: Request, principal: Principal, present: str, new: str, again: str) -> None:
    settings, oneself = settings_of(request), Origin(f"within {principal.person_id}")

    def known() -> tuple[str, str | None]:
        with transaction(request) as session:
            email, stored = accounts.stored_password(session, principal)
            return email or "", stored

    def begin(email: str) -> accounts.Try:
        with transaction(request) as session:
            return accounts.begin_sign_in(session, settings, email, oneself)

    def wrong(counted: accounts.Try) -> None:
        with transaction(request) as session:
            accounts.note_wrong_password(session, principal, counted)

    def keep(stored: str, counted: accounts.Try | None) -> None:
        with transaction(request) as session:
            accounts.set_password(session, principal, stored, counted)

    email, stored = await run_in_threadpool(known)
    if not email:
        raise InputProblem.at(
            "password", "An admin has to enter your e-mail address first: it is what one signs in with."
        )
    passwords.check_new(new, again, email)
    counted = await run_in_threadpool(begin, email) if stored is not None else None
    if stored is not None and counted is not None and not (await passwords.fits(present, stored))[0]:
        await run_in_threadpool(wrong, counted)
        raise InputProblem.at("present", "This is not your present password.")
    await run_in_threadpool(keep, await passwords.hash_new(new), counted)


@router.post("/me/sessions/{session_id}/end")
def end_session(request: Request, principal: Asker, session_id: str) -> Response:
    """Signs another browser out."""
    with transaction(request) as session:
        service.end_session(session, principal, session_id)
    return RedirectResponse("/me?done=session#sessions", 303)


@router.post("/me/sign-out-everywhere")
def sign_out_everywhere(request: Request, principal: Asker) -> Response:
    """Ends every session, this one too."""
    with transaction(request) as session:
        service.end_all_sessions(session, principal)
    return to_signed_out(request)


@router.get("/tokens")
def tokens(request: Request, principal: Asker) -> Response:
    """Tokens for internal tools."""
    return _tokens(request, principal, {})


def _tokens(
    request: Request,
    principal: Principal,
    values: dict[str, Any],
    problem: InputProblem | None = None,
    made: str = "",
) -> Response:
    with transaction(request) as session:
        listed = service.list_tokens(session, principal)
    return page(
        request,
        "tokens",
        principal,
        "me",
        status=problem.status if problem else 200,
        tokens=listed,
        made=made,
        scopes=[(scope, MEANINGS[scope]) for scope in service.TOKEN_SCOPES if scope in principal.scopes],  # type: ignore[index]  # scopes are permissions
        values={"name": "", "scopes": ["read"], "days": "90"} | values,
        days=[(day, f"{day} days") for day in DAYS],
        revoked=request.query_params.get("done") == "revoked",
        errors={error["field"]: error["message"] for error in problem.errors} if problem else {},
    )


@router.post("/tokens")
async def make_token(request: Request, principal: Asker) -> Response:
    """Makes a token and shows it this once."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        values = {"name": str(form.get("name") or ""), "days": str(form.get("days") or "90")}
        scopes = [str(scope) for scope in form.getlist("scopes")]
    return await run_in_threadpool(_make_token, request, principal, values, scopes)


def _make_token(request: Request, principal: Principal, values: dict[str, str], scopes: list[str]) -> Response:
    try:
        name = clean_name(values["name"].replace("\0", ""), otherwise="")
        held = [scope for scope in scopes if scope in principal.scopes]
        days = float(values["days"]) if values["days"] in DAYS else 0.0
        with transaction(request) as session:
            secret = service.make_token(session, principal.person_id, name=name, scopes=held, days=days, by=principal)
    except InputProblem as problem:
        return _tokens(request, principal, values | {"scopes": scopes}, problem)
    return _tokens(request, principal, {}, made=secret)


@router.post("/tokens/{token_id}/revoke")
def revoke_token(request: Request, principal: Asker, token_id: str) -> Response:
    """Ends a token at once."""
    with transaction(request) as session:
        service.revoke_token(session, principal, token_id)
    return RedirectResponse("/tokens?done=revoked", 303)
