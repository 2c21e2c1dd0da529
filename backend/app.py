"""The web process, put together: settings, services, what every request passes, routers, pages."""

from __future__ import annotations

import logging
import re
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from backend import api_docs, assets, errors
from backend.activity.routes import router as activity
from backend.audits.number_routes import router as numbers
from backend.audits.routes import router as audits
from backend.catalogue.routes import router as catalogue
from backend.celery_queue import CeleryQueue
from backend.database import Database, make_engine
from backend.datasets.routes import router as datasets
from backend.health.routes import router as health
from backend.middleware import BodyLimit, Flood, Guard, Guesses, SameSite, SecurityHeaders
from backend.people.limits import Gate
from backend.people.oidc import Provider
from backend.people.routes import router as people
from backend.progress.routes import router as progress
from backend.settings import Settings
from backend.storage import Storage
from frontend import pages

SECRET = re.compile(r"(/sign-in/)[^/?\s]+(\?\S*)?")

Handler = Callable[[int, FrameType | None], object]

DESCRIPTION = (
    "What differential privacy costs each group. Send a bearer token. Creating POSTs take an Idempotency-Key. "
    "Undefined numbers are null with a reason."
)


def create_app(settings: Settings | None = None) -> FastAPI:
    """The whole web process; settings come from the environment unless given."""
    settings = settings or Settings()  # type: ignore[call-arg]  # pydantic reads the rest from the environment
    app = FastAPI(
        title="Counterpoise",
        version="1",
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.storage = Storage(settings)
    app.state.queue = CeleryQueue(settings.redis_url)
    app.state.database = Database(make_engine(settings.database_url), app.state.queue)
    app.state.gate = Gate()
    app.state.provider = Provider(settings) if settings.oidc_issuer else None
    app.state.closing = False
    errors.install(app)
    logging.getLogger("uvicorn.access").addFilter(HideSecrets())
    _pass_through(app, settings)
    for router in (
        health,
        catalogue,
        datasets,
        audits,
        numbers,
        progress,
        people,
        activity,
        api_docs.router,
        assets.router,
    ):
        app.include_router(router)
    pages.install(app)
    return app


class HideSecrets(logging.Filter):
    """Keeps the secrets of sign-in links out of the server's log of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(SECRET.sub(r"\1…", value) if isinstance(value, str) else value for value in record.args)
        return True


def _pass_through(app: FastAPI, settings: Settings) -> None:
    """What every request passes; the last added is the outermost."""
    app.add_middleware(SameSite, settings=settings)
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(Guesses, settings=settings)
    app.add_middleware(Flood)
    app.add_middleware(Guard)
    app.add_middleware(SecurityHeaders, settings=settings)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Tells open event streams when the server is asked to end: it waits for them before it shuts the app down."""
    _note_signals(app)
    yield
    app.state.closing = True
    app.state.queue.close()
    app.state.database.engine.dispose()


def _note_signals(app: FastAPI) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        earlier = signal.getsignal(number)
        if callable(earlier):
            signal.signal(number, _noting(app, earlier))


def _noting(app: FastAPI, earlier: Handler) -> Handler:
    def noted(number: int, frame: FrameType | None) -> None:
        app.state.closing = True
        earlier(number, frame)

    return noted
