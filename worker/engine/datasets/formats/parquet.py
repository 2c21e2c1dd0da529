"""Parquet files: column by column, after a look at the sizes they declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker.engine.datasets.assemble import assemble, check_size
from worker.engine.datasets.formats.arrow_table import raw_table
from worker.engine.datasets.formats.unpacking import damage_told
from worker.engine.datasets.reading import require_reading
from worker.engine.datasets.table import Table
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    from worker.engine.datasets.formats.base import ReadLimits


@dataclass(frozen=True)
class Parquet:
    """Apache Parquet, with the types that stand in the file."""

    key: str = "parquet"
    title: str = "Parquet"
    help: str = "A table with types of its own; columns whose cells hold several values are set aside and named."

    def recognises(self, name: str, first_bytes: bytes) -> bool:  # noqa: ARG002 - by content, not by name
        """By the four bytes that every Parquet file begins with."""
        return first_bytes.startswith(b"PAR1")

    def read(self, path: Path, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
        """The table and the reading. Raises TableProblem."""
        import pyarrow.parquet as pq

        require_reading(asked)
        with damage_told("a Parquet file"), pq.ParquetFile(path, pre_buffer=False) as file:
            _check_declared(file, limits)
            names = file.schema_arrow.names
            whole = None if len(set(names)) == len(names) else file.read(use_threads=False)

            def column(place: int) -> pa.ChunkedArray:
                if whole is not None:
                    return whole.column(place)
                return file.read(columns=[names[place]], use_threads=False).column(0)

            raw = raw_table(names, column, file.metadata.num_rows, {"format": self.key})
        return assemble(raw, asked, limits)


PARQUET = Parquet()


def _check_declared(file: ParquetFile, limits: ReadLimits) -> None:
    """Sizes as the file declares them; what it does not declare, the memory limit of the reader catches."""
    about = file.metadata
    check_size(max(about.num_rows, 1), max(len(file.schema_arrow.names), 1), limits)
    if about.num_rows < 1:
        raise TableProblem("The file has no rows.", next_step="Upload a table with at least two rows.")
    unpacked = sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))
    if unpacked > limits.unpacked_bytes:
        raise TableProblem(
            f"The file says that it unpacks to more than the {limits.unpacked_bytes // 1_000_000} MB that may come out.",
            next_step="Keep only the columns and rows that the audit needs and upload again.",
            limit="unpacked",
        )
