"""Plotly's browser bundle, served from the installed wheel under a versioned, cache-for-ever address."""

from __future__ import annotations

import gzip
import re
import threading
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path

from fastapi import APIRouter, Request, Response

PLOTLY_PATH = f"/assets/plotly-{version('plotly')}.min.js"
"""Address of the bundle; it changes with the version, so that browsers may keep it for ever."""

PLOTLY_STYLE_PATH = f"/assets/plotly-{version('plotly')}.css"
"""Address of the bundle's own style rules as a file, since the pages allow no inline style."""

FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


class Bundle:
    """The file, read and compressed once, at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._packed: bytes | None = None

    @property
    def path(self) -> Path:
        """Where the wheel put it; the package is not imported."""
        return Path(str(distribution("plotly").locate_file("plotly/package_data/plotly.min.js")))

    def packed(self) -> bytes:
        with self._lock:
            if self._packed is None:
                self._packed = gzip.compress(self.path.read_bytes(), compresslevel=9, mtime=0)
            return self._packed

    def style(self) -> str:
        """The rules that the bundle would write into the page, read out of it: ``"X a":"color:red;"``, latest first."""
        source = self.path.read_text("utf-8")
        start = source.index('"X,X div":')
        rules = _RULE.findall(source[start : source.index("};", start)])
        return "\n".join(
            f"{(first or second).replace('X', '.js-plotly-plot .plotly').replace('Y', '.plotly-notifier')} {{{one or two}}}"
            for first, second, one, two in reversed(rules)
        )

    def style_ids(self) -> list[str]:
        """Ids of further style elements (of the map traces) that the bundle adds unless an element has the id already."""
        return re.findall(r'getElementById\("([0-9a-f]{64})"\)', self.path.read_text("utf-8"))


_TEXT = r"""(?:"([^"]*)"|'([^']*)')"""
_RULE = re.compile(f"{_TEXT}:{_TEXT}")

BUNDLE = Bundle()


@cache
def plotly_style_ids() -> list[str]:
    """See ``Bundle.style_ids``; read once."""
    return BUNDLE.style_ids()


@cache
def _style() -> str:
    return BUNDLE.style()


@router.get(PLOTLY_STYLE_PATH)
def plotly_style() -> Response:
    """The bundle's style rules as a file."""
    return Response(_style(), headers={"Cache-Control": FOR_EVER}, media_type="text/css")


@router.get(PLOTLY_PATH)
def plotly(request: Request) -> Response:
    """The bundle, compressed where the browser takes it."""
    headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(BUNDLE.packed(), headers=headers | {"Content-Encoding": "gzip"}, media_type="text/javascript")
    return Response(BUNDLE.path.read_bytes(), headers=headers, media_type="text/javascript")
