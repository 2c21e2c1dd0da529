"""The page layer: HTML, fragments and figure JSON over the services. ``install`` adds it all to the app."""

from __future__ import annotations

from fastapi import FastAPI

from frontend.pages import audits, charts, datasets, help, people
from frontend.pages.errors import page_error
from frontend.pages.rendering import static_router


def install(app: FastAPI) -> None:
    """Adds the pages, their static files and their way of showing errors."""
    for router in (people.router, audits.router, charts.router, datasets.router, help.router, static_router):
        app.include_router(router)
    app.state.page_error = page_error
