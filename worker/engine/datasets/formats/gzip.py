"""A table packed with gzip."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.formats.unpacking import Budget, damage_told, drain


@dataclass(frozen=True)
class Gzip:
    """gzip around a table, recognised by its first bytes, whatever its name."""

    key: str = "gzip"
    title: str = "gzip"
    help: str = "Any of the others packed with gzip (.csv.gz); unpacked with a limit on what comes out."

    def recognises(self, name: str, first_bytes: bytes) -> bool:  # noqa: ARG002 - by content, not by name
        """By the two bytes that every gzip file begins with."""
        return first_bytes.startswith(b"\x1f\x8b")

    def unwrap(
        self,
        path: Path,
        folder: Path,
        asked: Mapping[str, Any],  # noqa: ARG002 - there is nothing to choose
        limits: ReadLimits,
    ) -> tuple[Path, dict[str, Any]]:
        """The file inside. Raises TableProblem."""
        inside = folder / "unpacked"
        with damage_told("a gzip file"), gzip.open(path) as source, inside.open("wb") as target:
            drain(source, target, Budget(path.stat().st_size, limits))
        return inside, {}


GZIP = Gzip()
