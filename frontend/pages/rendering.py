"""Templates to HTML, and the files that pages link to under an address that changes with their content."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from backend.people.service import Principal
from frontend.charts.theme import stylesheet
from frontend.pages.words import FILTERS

FOLDER = Path(__file__).parent.parent
FOR_EVER = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

static_router = APIRouter(include_in_schema=False)


def _load() -> dict[str, bytes]:
    folder = FOLDER / "static"
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return files | {"theme.css": stylesheet().encode()}


FILES = _load()
VERSION = hashlib.blake2b(b"".join(name.encode() + body for name, body in FILES.items()), digest_size=6).hexdigest()


def static(name: str) -> str:
    """Address of a file of ours; it may be kept for ever, since a change gives another address."""
    if name not in FILES:
        raise KeyError(name)
    return f"/static/{VERSION}/{name}"


@static_router.get("/static/{version}/{name:path}")
def static_file(version: str, name: str) -> Response:
    """A script, a style sheet or a picture."""
    if name not in FILES:
        raise HTTPException(404)
    kind = TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    keep = FOR_EVER if version == VERSION else "no-cache"
    return Response(FILES[name], headers={"Cache-Control": keep}, media_type=kind)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals["static"] = static
    return environment


ENVIRONMENT = _environment()


def page(
    request: Request,
    template: str,
    person: Principal | None,
    section: str = "",
    *,
    stream: dict[str, str] | None = None,
    status: int = 200,
    **context: Any,
) -> HTMLResponse:
    """A whole page. ``section`` is the place in the navigation; ``stream`` names the events that the page follows."""
    frame = {"request": request, "person": person, "section": section, "stream": stream}
    return HTMLResponse(ENVIRONMENT.get_template(f"pages/{template}.html").render(frame | context), status)


def stream_of(kind: str, stream: str, newest: str | None) -> dict[str, str]:
    """The events that a page of one dataset or audit follows: those after what it shows."""
    return {"id": stream, "source": f"/api/v1/events?{kind}={stream}" + (f"&after={newest}" if newest else "")}


def part(template: str, **context: Any) -> HTMLResponse:
    """A fragment, made by the same template that its page includes."""
    return HTMLResponse(ENVIRONMENT.get_template(f"parts/{template}.html").render(context))
