"""What every request passes on its way in and out, outermost first: SecurityHeaders, Guard, BodyLimit, SameSite.

Plain ASGI, so that a stream of events passes through untouched.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import NotAllowed, TooLarge, answer, internal, log_fault
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

    Browsers say where a request comes from in Sec-Fetch-Site, older ones in Origin; a request with neither does not
    come from a page. Requests with their own Authorization header cannot be forged this way.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._own_host = urlsplit(settings.base_url).netloc.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_ours(scope["method"], Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        refusal = NotAllowed(
            "This change was asked for by a page of another site. It was not made. Open this site and do it there."
        )
        await answer(Request(scope), refusal)(scope, receive, send)

    def _is_ours(self, method: str, headers: Headers) -> bool:
        if method in SAFE_METHODS or headers.get("authorization"):
            return True
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            return site in ("same-origin", "none")
        return origin is None or self._same_host(origin, headers.get("host", ""))

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
