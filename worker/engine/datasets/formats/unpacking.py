"""Unpacking with every limit counted while it happens: what a header says about sizes is never believed."""

from __future__ import annotations

import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.errors import TableProblem

_CHUNK = 1 << 20
_ALWAYS_ALLOWED = 10_000_000
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, IndexError, KeyError, OverflowError, NotImplementedError, RuntimeError),
)
"""What libraries raise on damaged files; those of Arrow are kinds of these."""
_SMALLER = "Unpack it yourself, keep only the rows and columns that the audit needs, and upload that."


class Budget:
    """Bytes that may still come out of a file of ``packed`` bytes."""

    def __init__(self, packed: int, limits: ReadLimits) -> None:
        self._limits = limits
        self._ratio_allows = max(_ALWAYS_ALLOWED, packed * limits.unpack_ratio)
        self._seen = 0

    def take(self, count: int) -> None:
        """Count more bytes. Raises TableProblem with ``limit`` "unpacked" or "ratio"."""
        self._seen += count
        if self._seen > self._limits.unpacked_bytes:
            raise TableProblem(
                f"Unpacking was stopped: there are more than the {self._limits.unpacked_bytes // 1_000_000} MB that may come out.",
                next_step=_SMALLER,
                limit="unpacked",
            )
        if self._seen > self._ratio_allows:
            raise TableProblem(
                f"Unpacking was stopped at {self._ratio_allows // 1_000_000} MB: the file grows to more than "
                f"{self._limits.unpack_ratio} times its size, which no real table does.",
                next_step=_SMALLER,
                limit="ratio",
            )


class Source(Protocol):
    """Anything with ``read(n)``."""

    def read(self, size: int, /) -> bytes: ...


def drain(source: Source, target: IO[bytes] | None, budget: Budget) -> None:
    """Read ``source`` to its end under the budget, into ``target`` if there is one."""
    while chunk := source.read(_CHUNK):
        budget.take(len(chunk))
        if target is not None:
            target.write(chunk)


def open_archive(path: Path, limits: ReadLimits) -> zipfile.ZipFile:
    """A zip file whose list of members is within the limits and names no place outside. Raises TableProblem."""
    with damage_told("a zip archive"):
        archive = zipfile.ZipFile(path)
    entries = archive.infolist()
    if len(entries) > limits.members:
        raise TableProblem(
            f"The archive holds {len(entries)} files, more than the {limits.members} that are looked at.",
            next_step="Upload the table alone.",
            limit="members",
        )
    for entry in entries:
        parts = entry.filename.replace("\\", "/").split("/")
        if ".." in parts or entry.filename.startswith(("/", "\\")) or ":" in parts[0]:
            raise TableProblem(
                "The archive holds a file whose name leads to a place outside of it.",
                next_step="Do not trust this archive. Upload the table alone.",
                limit="member names",
            )
        if entry.flag_bits & 1:
            raise TableProblem(
                "The archive is protected by a password.", next_step="Unpack it and upload the table inside."
            )
    return archive


@contextmanager
def damage_told(kind: str) -> Iterator[None]:
    """Whatever a library finds wrong with a file of this kind, as a TableProblem; the limits of the reader pass through."""
    try:
        yield
    except _DAMAGE as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) in (errno.ENOMEM, errno.EFBIG, errno.ENOSPC):
            raise
        raise TableProblem(
            f"The file begins like {kind}, but it is cut off or damaged.",
            next_step="Send it again from where it is whole, or upload the table as plain CSV.",
        ) from error
