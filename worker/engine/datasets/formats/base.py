"""What a file format owes: recognise a file, and turn it into a table with a record of how it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from worker.engine.datasets.table import Table


@dataclass(frozen=True)
class ReadLimits:
    """Bounds on one upload: ``memory_bytes`` and ``seconds`` hold for the child process that reads it."""

    rows: int = 5_000_000
    columns: int = 2_000
    memory_bytes: int = 3_000_000_000
    seconds: float = 120.0


class Format(Protocol):
    """One kind of file. ``help`` is shown where a file is chosen."""

    @property
    def key(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def help(self) -> str: ...

    def recognises(self, name: str, first_bytes: bytes) -> bool:
        """Whether a file of this name that begins with these bytes is of this kind."""
        ...

    def read(self, path: Path, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
        """Read the file as ``asked``; what was not asked is detected and recorded in the reading.

        Raises TableProblem with row and column where the file cannot be read.
        """
        ...
