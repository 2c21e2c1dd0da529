"""The page layer: HTML, fragments and figure JSON over the services. ``install`` adds it all to the app."""

from __future__ import annotations

from fastapi import FastAPI

from frontend.pages import account, activity, audits, charts, datasets, help, sign_in, team
from frontend.pages.errors import page_error
from frontend.pages.rendering import static_router


def install(app: FastAPI) -> None:
    """Adds the pages, their static files and their way of showing errors."""
    for module in (sign_in, account, team, activity, audits, charts, datasets, help):
        app.include_router(module.router)
    app.include_router(static_router)
    app.state.page_error = page_error
