"""Ways in and out: password, one-time link, identity provider, a forgotten password, sign-out."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, BackgroundTasks, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from backend.edge import (
    clear_session_cookie,
    known_principal,
    origin_of,
    session_secret,
    set_session_cookie,
    settings_of,
    transaction,
)
from backend.errors import InputProblem, NotFound, ProductError
from backend.people import accounts, letters, passwords, service
from backend.people.limits import AddressClosed
from frontend.pages.rendering import page

router = APIRouter(include_in_schema=False)

MOST_FIELDS = 10
FLOW_COOKIE = "counterpoise-oidc"
FLOW_PATH = "/sign-in/oidc"
INSIDE = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,500}")
WRONG = (
    "The e-mail address or the password is wrong. Nobody was signed in. Try again, or ask an admin for a one-time link."
)
ROLES = {
    "analyst": "fairness analyst",
    "dpo": "data-protection officer",
    "auditor": "auditor",
    "admin": "admin",
}


def inside(address: str | None) -> str:
    """A path of this site, or the list of audits; nobody is sent elsewhere after signing in."""
    fits = address and INSIDE.fullmatch(address) and not address.startswith(("/sign", "/parts/"))
    return address if fits and address else "/"


def sign_in_page(
    request: Request, *, problem: str = "", reason: str = "", next_path: str = "", email: str = "", status: int = 200
) -> Response:
    """The form. ``problem`` is about what was typed, ``reason`` says why it is shown at all."""
    settings = settings_of(request)
    return page(
        request,
        "sign_in",
        None,
        status=status,
        problem=problem,
        reason=reason,
        next_path=inside(next_path),
        email=email,
        oidc_title=settings.oidc_title if settings.oidc_issuer else "",
        mailing=bool(settings.smtp_url),
        demo=settings.mode == "demo",
    )


@router.get("/sign-in")
def sign_in(request: Request) -> Response:
    """The form, or straight on for whoever is signed in."""
    if known_principal(request) is not None:
        return RedirectResponse(inside(request.query_params.get("next")), 303)
    return sign_in_page(request, next_path=request.query_params.get("next", ""))


@router.post("/sign-in")
async def enter(request: Request) -> Response:
    """By e-mail and password. The gate lets few in at a time; hashing has a thread of its own."""
    gate, address = request.app.state.gate, origin_of(request).address
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        email, password, next_path = (str(form.get(name) or "") for name in ("email", "password", "next"))
    try:
        with gate.enter(address):
            cookie = await _by_password(request, email, password)
    except AddressClosed as problem:
        gate.close(address, float(problem.headers["Retry-After"]))
        return _refused(request, problem, next_path, email)
    except ProductError as problem:
        if problem.status != 429:
            raise
        return _refused(request, problem, next_path, email)
    if cookie is None:
        return sign_in_page(request, problem=WRONG, next_path=next_path, email=email[:254], status=422)
    return await run_in_threadpool(_signed_in, request, cookie, inside(next_path))


def _refused(request: Request, problem: ProductError, next_path: str, email: str) -> Response:
    answer = sign_in_page(
        request, problem=problem.detail, next_path=next_path, email=email[:254], status=problem.status
    )
    answer.headers.update(problem.headers)
    return answer


async def _by_password(request: Request, email: str, password: str) -> str | None:
    settings, origin = settings_of(request), origin_of(request)

    def begin() -> accounts.Try:
        with transaction(request) as session:
            return accounts.begin_sign_in(session, settings, email, origin)

    def finish(tried: accounts.Try, right: bool, fresh: str | None) -> str | None:
        with transaction(request) as session:
            return accounts.finish_sign_in(session, settings, tried, right, fresh, origin)

    tried = await run_in_threadpool(begin)
    right, fresh = await passwords.fits(password, tried.stored)
    return await run_in_threadpool(finish, tried, right, fresh)


def _signed_in(request: Request, cookie: str, address: str) -> Response:
    """The new session's cookie; the session that this browser had before ends."""
    before = session_secret(request)
    if before:
        with transaction(request) as session:
            service.sign_out(session, before, origin_of(request))
    answer = RedirectResponse(address, 303)
    set_session_cookie(answer, settings_of(request), cookie)
    return answer


@router.get("/sign-in/forgotten")
def forgotten(request: Request) -> Response:
    """Asks for the e-mail address, where mails can be sent."""
    return page(request, "forgotten", None, mailing=bool(settings_of(request).smtp_url), asked=False, problem="")


@router.post("/sign-in/forgotten")
async def ask_for_link(request: Request, later: BackgroundTasks) -> Response:
    """Says the same whoever asks; the mail is sent afterwards, so that time tells nothing either."""
    settings = settings_of(request)
    if not settings.smtp_url:
        raise NotFound
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        email = str(form.get("email") or "")
    try:
        with request.app.state.gate.enter(origin_of(request).address):
            found = await run_in_threadpool(_forgotten, request, email)
    except ProductError as problem:
        if problem.status != 429:
            raise
        shown = page(request, "forgotten", None, status=429, mailing=True, asked=False, problem=problem.detail)
        shown.headers.update(problem.headers)
        return shown
    if found is not None:
        name, to, secret = found
        later.add_task(letters.deliver, settings, "reset", name, to, secret)
    return page(request, "forgotten", None, mailing=True, asked=True, problem="")


def _forgotten(request: Request, email: str) -> tuple[str, str, str] | None:
    with transaction(request) as session:
        return accounts.forgotten(session, settings_of(request), email, origin_of(request))


@router.get("/sign-in/oidc")
def to_provider(request: Request) -> Response:
    """Sends the browser to the identity provider."""
    if request.app.state.provider is None:
        raise NotFound
    settings = settings_of(request)
    address, sealed = request.app.state.provider.begin(inside(request.query_params.get("next")))
    answer = RedirectResponse(address, 303)
    answer.set_cookie(
        FLOW_COOKIE, sealed, max_age=600, path=FLOW_PATH, secure=settings.cookie_secure, httponly=True, samesite="lax"
    )
    return answer


@router.get("/sign-in/oidc/callback")
def from_provider(request: Request) -> Response:
    """Back from the identity provider: signs in whoever it vouches for."""
    if request.app.state.provider is None:
        raise NotFound
    settings = settings_of(request)
    try:
        claims, next_path = request.app.state.provider.finish(request.cookies.get(FLOW_COOKIE), request.query_params)
        with transaction(request) as session:
            cookie = accounts.enter_by_provider(session, settings, claims, origin_of(request))
    except ProductError as problem:
        answer = sign_in_page(request, problem=problem.detail, status=problem.status)
    else:
        answer = _signed_in(request, cookie, inside(next_path))
    answer.delete_cookie(FLOW_COOKIE, path=FLOW_PATH, secure=settings.cookie_secure, httponly=True, samesite="lax")
    return answer


@router.get("/sign-in/{secret}")
def link(request: Request, secret: str) -> Response:
    """Shows a button or a form; the link stays unused, so that a preview of it does not burn it."""
    found = _link(request, secret)
    if found is None:
        return _unusable(request)
    return _link_page(request, found, {})


def _link(request: Request, secret: str) -> dict[str, Any] | None:
    with transaction(request) as session:
        return service.link_person(session, secret)


def _unusable(request: Request) -> Response:
    words = "It was used already, or replaced by a newer one, or it has expired, or a part of it is missing."
    return _signed_out(request, "This link cannot be used", words, 401)


def _link_page(request: Request, found: dict[str, Any], values: dict[str, str], problem: Any = None) -> Response:
    errors = {error["field"]: error["message"] for error in problem.errors} if problem else {}
    return page(
        request,
        "sign_in_link" if found["purpose"] == "sign-in" else "choose_password",
        known_principal(request),
        status=problem.status if problem else 200,
        link_person=found,
        roles=ROLES,
        values=values,
        errors=errors,
    )


@router.post("/sign-in/{secret}")
async def redeem(request: Request, secret: str) -> Response:
    """Uses the link up and signs this browser in; an invitation or reset also keeps the new password."""
    found = await run_in_threadpool(_link, request, secret)
    if found is None:
        return _unusable(request)
    if found["purpose"] == "sign-in":
        cookie = await run_in_threadpool(_redeem, request, secret)
        return await run_in_threadpool(_signed_in, request, cookie, "/")
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        values = {name: _typed(form, name) for name in ("name", "email", "password", "again")}
    try:
        passwords.check_new(values["password"], values["again"], found["email"] or values["email"])
        with request.app.state.gate.enter(origin_of(request).address, guesses=False):
            stored = await passwords.hash_new(values["password"])
        cookie = await run_in_threadpool(_accept, request, secret, values, stored)
    except InputProblem as problem:
        return await run_in_threadpool(_link_page, request, found, values, problem)
    return await run_in_threadpool(_signed_in, request, cookie, "/")


def _typed(form: FormData, name: str) -> str:
    return str(form.get(name) or "")[:1000]


def _redeem(request: Request, secret: str) -> str:
    with transaction(request) as session:
        return service.redeem_link(session, secret, origin_of(request), days=settings_of(request).session_days)


def _accept(request: Request, secret: str, values: dict[str, str], stored: str) -> str:
    with transaction(request) as session:
        return accounts.accept(session, settings_of(request), secret, values, stored, origin_of(request))


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """Ends the session here and on the server."""
    secret = session_secret(request)
    if secret:
        with transaction(request) as session:
            service.sign_out(session, secret, origin_of(request))
    return to_signed_out(request)


def to_signed_out(request: Request) -> Response:
    """Forgets the cookie, and whatever the browser kept of this site."""
    answer = RedirectResponse("/signed-out", 303)
    clear_session_cookie(answer, settings_of(request))
    return answer


@router.get("/signed-out")
def signed_out(request: Request) -> Response:
    """Says how to come back in."""
    return _signed_out(request, "Signed out", "This browser is signed out, and its session has ended.")


def _signed_out(request: Request, heading: str, words: str, status: int = 200) -> Response:
    return page(
        request,
        "signed_out",
        None,
        status=status,
        heading=heading,
        words=words,
        demo=settings_of(request).mode == "demo",
    )


def next_of(request: Request) -> str:
    """Where whoever has to sign in wanted to go; nowhere after a change that was refused."""
    if request.method != "GET":
        return ""
    return quote(request.url.path, safe="/") + (f"?{request.url.query}" if request.url.query else "")
