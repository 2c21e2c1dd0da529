"""Between a request and a service: who asks, the parts a service needs, and bodies as plain objects.

Bodies are read only after the sender is known, so that a stranger cannot fill the disk.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import AbstractContextManager
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from sqlalchemy.orm import Session

from backend import permissions
from backend.chain import record
from backend.database import Database
from backend.errors import InputProblem, Malformed, NotAllowed, NotSignedIn, WrongType
from backend.people import service
from backend.people.service import Origin, Principal
from backend.settings import Settings
from backend.storage import Storage
from worker.engine.results import FieldError

BEARER = HTTPBearer(auto_error=False, description="A token from `var/token`, or made under `/api/v1/tokens`.")
BROWSERS = (("Edg/", "Edge"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"), ("curl/", "curl"))
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
KEPT_LONGER_DAYS = 7
"""A browser keeps the cookie of a session that has expired for so long, so that it can be told why it is signed out."""
OUR_ID = re.compile(r"[0-9a-f]{32}")
LONG_NUMBER = 25
"""Characters of a whole number beyond which it is infinite to us; no field takes one as large."""


def settings_of(request: Request) -> Settings:
    """The settings the app was built with."""
    settings: Settings = request.app.state.settings
    return settings


def storage_of(request: Request) -> Storage:
    """The storage of the app."""
    storage: Storage = request.app.state.storage
    return storage


def database_of(request: Request) -> Database:
    """The database of the app."""
    database: Database = request.app.state.database
    return database


def transaction(request: Request) -> AbstractContextManager[Session]:
    """One transaction, committed when the block ends; what it asked for is sent after that."""
    return database_of(request).transaction()


def cookie_name(settings: Settings) -> str:
    """Over https a name that browsers accept from this host alone."""
    return "__Host-counterpoise" if settings.cookie_secure else "counterpoise"


def set_session_cookie(response: Response, settings: Settings, secret: str) -> None:
    """Signs this browser in."""
    response.set_cookie(
        cookie_name(settings),
        secret,
        max_age=round((settings.session_days + KEPT_LONGER_DAYS) * 24 * 3600),
        path="/",
        secure=settings.cookie_secure,
        httponly=True,
        samesite="lax",
    )


def clear_session_cookie(response: Response, settings: Settings) -> None:
    """Forgets the session in this browser."""
    response.delete_cookie(
        cookie_name(settings), path="/", secure=settings.cookie_secure, httponly=True, samesite="lax"
    )


def session_secret(request: Request) -> str | None:
    """The secret of the browser session that the request carries, if any."""
    return request.cookies.get(cookie_name(settings_of(request)))


def origin_of(request: Request) -> Origin:
    """Where a request comes from. Behind a proxy the address is the one the proxy tells, if the server trusts it."""
    address = request.client.host if request.client else ""
    return Origin(address, browser_name(request.headers.get("user-agent", "")))


def browser_name(told: str) -> str:
    """Browser and system in two words, from what a browser says of itself."""
    browser = next((name for mark, name in BROWSERS if mark in told), "Another program")
    system = next((name for mark, name in SYSTEMS if mark in told), "")
    return f"{browser} on {system}" if system else browser


def why_nobody(request: Request) -> str:
    """Why whoever asks is nobody, in words, where their browser was signed in before; else empty."""
    secret = session_secret(request)
    if not secret or request.headers.get("authorization") is not None:
        return ""
    with transaction(request) as session:
        return service.why_nobody(session, secret)


def csrf_token(secret: str) -> str:
    """What a program that signs in by cookie sends as ``X-CSRF-Token``; it follows from the session's secret."""
    return hashlib.sha256(f"csrf {secret}".encode()).hexdigest()


def known_principal(request: Request) -> Principal | None:
    """Whoever asks, by token or else by session; None for nobody. Its own short transaction."""
    header, secret = request.headers.get("authorization"), session_secret(request)
    if header is None and secret is None:
        return None
    with transaction(request) as session:
        if header is not None:
            scheme, _, token = header.partition(" ")
            bearer = scheme.lower() == "bearer"
            return service.principal_of_token(session, token.strip(), origin_of(request)) if bearer else None
        return service.principal_of_session(session, secret or "", origin_of(request))


def current_principal(request: Request, _: Annotated[Any, Depends(BEARER)] = None) -> Principal:
    """Whoever asks.

    Raises:
        NotSignedIn: nobody, or a token or session that is unknown, expired or revoked.
        InputProblem: a query parameter that the route does not know.
    """
    principal = known_principal(request)
    if principal is None:
        why = why_nobody(request)
        lost = "" if request.method in ("GET", "HEAD") or not why else " What you sent was not kept."
        raise NotSignedIn(why + lost)
    _check_permission(request, principal)
    if request.url.path.endswith(".csv"):
        with transaction(request) as session:
            record(session, principal, "table.asked", *_object(request))
    _refuse_unknown_query(request)
    return principal


def _check_permission(request: Request, principal: Principal) -> None:
    """What the table of permissions asks of this route; a route that is not in it opens to nobody."""
    route = request.scope.get("route")
    path = getattr(route, "path_format", None) or getattr(route, "path", "")
    access = permissions.ACCESS.get(f"{request.method} {path}")
    if access is None:
        raise NotAllowed("This address is in no table of permissions. It opens to nobody. Tell the operator.")
    if access.session_only and principal.via != "session":
        raise NotAllowed(
            "A token cannot do this. It needs somebody signed in with a browser. Sign in there and do it on the page."
        )
    if access.needs:
        service.require(principal, *access.needs)


def _refuse_unknown_query(request: Request) -> None:
    """A filter that is not known is an error: to leave it out would answer another question than the one asked."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not request.url.path.startswith("/api/"):
        return
    known = _query_names(route.dependant)
    strange = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if strange:
        there_are = f"There are: {', '.join(known)}." if known else "This address takes none."
        raise InputProblem.of([FieldError(name, f"This parameter is not known. {there_are}") for name in strange])


def _object(request: Request) -> tuple[str | None, str | None]:
    """Kind and id of what the address is about: `audit_id` is the id of an audit."""
    for name, value in request.path_params.items():
        if name.endswith("_id"):
            return name.removesuffix("_id"), str(value) if OUR_ID.fullmatch(str(value)) else None
    return None, None


def _query_names(dependant: Dependant) -> list[str]:
    own = [param.alias for param in dependant.query_params]
    return own + [name for inner in dependant.dependencies for name in _query_names(inner)]


Asker = Annotated[Principal, Depends(current_principal)]


async def json_object(request: Request, _: Asker) -> dict[str, Any]:
    """The body as a JSON object, read after the sender is known."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise WrongType("This address reads application/json. The body says it is something else. Send JSON.")
    return parse_object(await request.body())


Body = Annotated[dict[str, Any], Depends(json_object)]


def parse_object(body: bytes | str) -> dict[str, Any]:
    """A JSON object from text; NaN and infinite numbers come through and are refused at their field later."""
    try:
        text = body.decode("utf-8") if isinstance(body, bytes) else body
        found = json.loads(text, parse_int=_whole_number)
    except (ValueError, RecursionError):
        raise Malformed("The body is not JSON in UTF-8. Nothing was stored. Check it with a JSON validator.") from None
    if not isinstance(found, dict):
        raise Malformed("The body must be a JSON object. It is something else. Put the fields between braces.")
    return found


def _whole_number(text: str) -> int | float:
    return int(text) if len(text) <= LONG_NUMBER else float("-inf" if text.startswith("-") else "inf")


def body_schema(model: Any) -> dict[str, Any]:
    """For OpenAPI: the body of a route that reads it by ``json_object``."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": model.model_json_schema()}}}}
