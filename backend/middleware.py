"""What every request passes on its way in and out, outermost first: SecurityHeaders, Guard, Flood, Guesses,
BodyLimit, SameSite.

Plain ASGI, so that a stream of events passes through untouched.
"""

from __future__ import annotations

import hmac
import time
from collections import Counter
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.edge import cookie_name, csrf_token
from backend.errors import NotAllowed, TooLarge, TooMany, answer, internal, log_fault
from backend.people.limits import Gate
from backend.settings import Settings

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "base-uri 'none'",
    )
)
NEVER_GUESSED = ("/static/", "/assets/", "/health", "/ready", "/signed-out")
MOST_PAGES = 100
TOO_MANY_GUESSES = (
    "Too many requests from this address found nothing, or nobody. Nothing more is looked up for it in this minute. "
    "Wait until the minute is over, and check the address or the token."
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with it browsers send "Origin: null" from our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SMALL_BODY_BYTES = 1 << 20
UPLOAD_PATHS = ("/api/v1/datasets", "/datasets")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """The last net: a fault of ours becomes a plain 500, and the log gets its place but not its message."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except Exception as error:  # anything at all: nobody outside may see its inside
            log_fault(error)
            if not started:
                await answer(Request(scope), internal())(scope, receive, send)


class SecurityHeaders:
    """Sets the headers that keep a browser from doing what our pages never ask of it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._headers = dict(SECURITY_HEADERS)
        if settings.cookie_secure:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith(("/static/", "/assets/")):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, with_headers)


class Guesses:
    """Makes guessing slow: an address that finds nothing or nobody too often in a minute has to wait for the next.

    Counted in each web process on its own, on the event loop, without the database.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._most = settings.guesses_per_minute
        self._minute, self._misses = 0, Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(NEVER_GUESSED):
            await self.app(scope, receive, send)
            return
        address = scope["client"][0] if scope.get("client") else ""
        now = time.time()
        if self._minute != int(now // 60):
            self._minute, self._misses = int(now // 60), Counter()
        if self._misses[address] >= self._most:
            await answer(Request(scope), TooMany(TOO_MANY_GUESSES, 60 - now % 60))(scope, receive, send)
            return

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (401, 404):
                self._misses[address] += 1
            await send(message)

        await self.app(scope, receive, noted)


class Flood:
    """Turns sign-ins away that the gate has no room for, before they cost anything: the page is made once a wording."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._pages: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send)
            return
        if refusal.detail not in self._pages:
            if len(self._pages) >= MOST_PAGES:
                self._pages.clear()
            self._pages[refusal.detail] = bytes(answer(Request(scope), refusal).body)
        page = Response(self._pages[refusal.detail], refusal.status, refusal.headers, "text/html")
        await page(scope, receive, send)

    @staticmethod
    def _refusal(scope: Scope) -> TooMany | None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != "/sign-in":
            return None
        gate: Gate = scope["app"].state.gate
        return gate.refusal(scope["client"][0] if scope.get("client") else "")


class BodyLimit:
    """Counts the bytes of every body as they come, whatever Content-Length says, and stops at the limit."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._upload_bytes = 2 * settings.upload_limit_bytes + SMALL_BODY_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, seen = Headers(scope=scope), 0
        limit = self._limit(scope, headers)
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared[:20]) > limit:
            await answer(Request(scope), _too_large(limit))(scope, receive, send)
            return

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise HTTPException(413)
            return message

        await self.app(scope, counted, send)

    def _limit(self, scope: Scope, headers: Headers) -> int:
        multipart = headers.get("content-type", "").lower().startswith("multipart/form-data")
        return self._upload_bytes if multipart and scope["path"].startswith(UPLOAD_PATHS) else SMALL_BODY_BYTES


class SameSite:
    """Refuses changes that another site asks a signed-in browser to make.

    Browsers say where a request comes from in Sec-Fetch-Site, older ones in Origin. A request with neither, but with the
    session's cookie, needs the token that only its holder can know (``csrf_token`` of ``GET /api/v1/me``). Requests with
    their own Authorization header cannot be forged this way: with it, the cookie counts for nothing.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._cookie = cookie_name(settings)
        self._own_host = urlsplit(settings.base_url).netloc.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_ours(scope["method"], Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        refusal = NotAllowed(
            "This change was asked for by a page of another site, or by a browser that does not say from where. "
            "It was not made. Open this site and do it there; a program sends X-CSRF-Token."
        )
        await answer(Request(scope), refusal)(scope, receive, send)

    def _is_ours(self, method: str, headers: Headers) -> bool:
        if method in SAFE_METHODS or headers.get("authorization"):
            return True
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            return site in ("same-origin", "none")
        if origin is not None:
            return self._same_host(origin, headers.get("host", ""))
        secret = cookie_parser(headers.get("cookie", "")).get(self._cookie)
        return secret is None or self._knows(headers.get("x-csrf-token", ""), secret)

    @staticmethod
    def _knows(given: str, secret: str) -> bool:
        return hmac.compare_digest(given.encode(), csrf_token(secret).encode())

    def _same_host(self, origin: str, host: str) -> bool:
        try:
            asked = urlsplit(origin).netloc.lower()
        except ValueError:
            return False
        return asked != "" and asked in (host.lower(), self._own_host)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The body is larger than the {limit:,} bytes that this address accepts. Nothing was stored. Send less."
    )
