"""What a file format owes: recognise a file, and turn it into a table with a record of how it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from worker.engine.datasets.table import Table


@dataclass(frozen=True)
class ReadLimits:
    """Bounds on one upload. ``memory_bytes``, ``seconds`` and ``output_bytes`` hold for the child process that reads it.

    Attributes:
        unpacked_bytes: most bytes that an archive or a workbook may unpack to, counted while unpacking.
        unpack_ratio: most times its own size that a packed file may grow, once it is past 10 MB.
        members: most files in one archive.
        output_bytes: largest file that the child may write.
    """

    rows: int = 5_000_000
    columns: int = 2_000
    memory_bytes: int = 3_000_000_000
    seconds: float = 120.0
    unpacked_bytes: int = 2_000_000_000
    unpack_ratio: int = 200
    members: int = 1_000
    output_bytes: int = 4_000_000_000


@runtime_checkable
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


@runtime_checkable
class TableFormat(Format, Protocol):
    """A kind of file that holds a table."""

    def read(self, path: Path, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
        """Read the file as ``asked``; what was not asked is detected and recorded in the reading.

        Raises TableProblem with row and column where the file cannot be read.
        """
        ...


@runtime_checkable
class Wrapping(Format, Protocol):
    """A kind of file that holds another file: what is inside is recognised anew."""

    def unwrap(
        self, path: Path, folder: Path, asked: Mapping[str, Any], limits: ReadLimits
    ) -> tuple[Path, dict[str, Any]]:
        """The file inside, unpacked into ``folder``, and what to record of it. Raises TableProblem naming the limit hit."""
        ...
