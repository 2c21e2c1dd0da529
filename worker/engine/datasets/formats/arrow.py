"""Arrow IPC files and streams, also known as Feather version 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker.engine.datasets.assemble import assemble, check_size
from worker.engine.datasets.formats.arrow_table import raw_table
from worker.engine.datasets.formats.unpacking import Budget, damage_told
from worker.engine.datasets.reading import require_reading
from worker.engine.datasets.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from worker.engine.datasets.formats.base import ReadLimits

_FILE = b"ARROW1\x00\x00"
_STREAM = b"\xff\xff\xff\xff"


@dataclass(frozen=True)
class Arrow:
    """Arrow IPC, with the types that stand in the file."""

    key: str = "arrow"
    title: str = "Arrow"
    help: str = "An Arrow IPC file or stream (.arrow, .feather); columns whose cells hold several values are set aside."

    def recognises(self, name: str, first_bytes: bytes) -> bool:  # noqa: ARG002 - by content, not by name
        """By the first bytes of a file, or of a stream that begins with its schema."""
        return first_bytes.startswith(_FILE) or (first_bytes.startswith(_STREAM) and first_bytes[6:8] == b"\x00\x00")

    def read(self, path: Path, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
        """The table and the reading. Raises TableProblem."""
        require_reading(asked)
        with damage_told("an Arrow file"):
            table = _batches(path, limits)
        check_size(table.num_rows, max(table.num_columns, 1), limits)
        with damage_told("an Arrow file"):
            raw = raw_table(table.schema.names, table.column, table.num_rows, {"format": self.key})
        return assemble(raw, asked, limits)


ARROW = Arrow()


def _batches(path: Path, limits: ReadLimits) -> pa.Table:
    """All batches, each checked in full before anything looks at its values, and counted while they come."""
    import pyarrow as pa

    with path.open("rb") as start:
        is_file = start.read(len(_FILE)) == _FILE
    budget, rows, found = Budget(path.stat().st_size, limits), 0, []
    with pa.OSFile(str(path)) as source:
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        check_size(1, max(len(reader.schema.names), 1), limits)
        batches = (reader.get_batch(place) for place in range(reader.num_record_batches)) if is_file else reader
        for batch in batches:
            batch.validate(full=True)
            budget.take(batch.nbytes)
            rows += batch.num_rows
            check_size(max(rows, 1), 1, limits)
            found.append(batch)
        return pa.Table.from_batches(found, reader.schema)
