"""Plotly's browser bundle, served from the installed wheel under a versioned, cache-for-ever address."""

from __future__ import annotations

import gzip
import threading
from importlib.metadata import distribution, version
from pathlib import Path

from fastapi import APIRouter, Request, Response

PLOTLY_PATH = f"/assets/plotly-{version('plotly')}.min.js"
"""Address of the bundle; it changes with the version, so that browsers may keep it for ever."""

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


BUNDLE = Bundle()


@router.get(PLOTLY_PATH)
def plotly(request: Request) -> Response:
    """The bundle, compressed where the browser takes it."""
    headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(BUNDLE.packed(), headers=headers | {"Content-Encoding": "gzip"}, media_type="text/javascript")
    return Response(BUNDLE.path.read_bytes(), headers=headers, media_type="text/javascript")
