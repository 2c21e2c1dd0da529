"""A table inside a zip archive."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.formats.unpacking import Budget, damage_told, drain, open_archive
from worker.engine.errors import TableProblem

_TABLES = (".csv", ".tsv", ".txt", ".tab", ".data", ".dat", ".xlsx", ".parquet", ".arrow", ".feather", ".gz")


@dataclass(frozen=True)
class Zip:
    """A zip archive with one table in it, or with several of which one is chosen."""

    key: str = "zip"
    title: str = "zip"
    help: str = "Any of the others in a zip archive; of several, the recipe says which (member)."

    def recognises(self, name: str, first_bytes: bytes) -> bool:  # noqa: ARG002 - by content, not by name
        """By the first bytes; workbooks, which are zip archives too, are asked before."""
        return first_bytes.startswith((b"PK\x03\x04", b"PK\x05\x06"))

    def unwrap(
        self, path: Path, folder: Path, asked: Mapping[str, Any], limits: ReadLimits
    ) -> tuple[Path, dict[str, Any]]:
        """The chosen file, or the only one that looks like a table. Raises TableProblem."""
        inside = folder / "unpacked"
        with open_archive(path, limits) as archive:
            entry = _choose(archive, asked.get("member"))
            with damage_told("a zip archive"), archive.open(entry) as source, inside.open("wb") as target:
                drain(source, target, Budget(max(entry.compress_size, 1), limits))
            return inside, {"member": entry.filename}


ZIP = Zip()


def _choose(archive: zipfile.ZipFile, wanted: object) -> zipfile.ZipInfo:
    files = [entry for entry in archive.infolist() if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")]
    if wanted is not None:
        found = next((entry for entry in files if entry.filename == wanted), None)
        if found is None:
            raise TableProblem("The archive holds no file of the name that the recipe gives.", next_step=_offer(files))
        return found
    tables = [entry for entry in files if PurePosixPath(entry.filename).suffix.lower() in _TABLES]
    chosen = tables if tables else files
    if len(chosen) == 1:
        return chosen[0]
    if not files:
        raise TableProblem("The archive is empty.", next_step="Upload an archive with a table in it.")
    raise TableProblem(f"The archive holds {len(chosen)} tables.", next_step=_offer(chosen))


def _offer(files: list[zipfile.ZipInfo]) -> str:
    shown = ", ".join(entry.filename[:80] for entry in files[:5])
    return f"Name one in the recipe as member: {shown}{' and others' if len(files) > 5 else ''}."
