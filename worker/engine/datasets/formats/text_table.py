"""From a text file in UTF-8 to columns: DuckDB reads it, and the bytes are accounted for, so that no row is lost unseen.

DuckDB 2.0.1 drops all that follows a quote that is never closed without a word. So every byte of the file must be found
again in the cells it gave, in the delimiters, line ends and quotes; where one is not, or where DuckDB refuses the file, a
second reader (Python's csv) goes over it row by row, names the row at fault, or writes a tidy copy that DuckDB then reads.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.formats.dialect import LONGEST_CELL, Dialect, records_of
from worker.engine.datasets.formats.encodings import Text
from worker.engine.datasets.formats.frame import Frame
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from worker.engine.datasets.formats.base import ReadLimits

_BATCH_ROWS = 122_880
_SMALL_BYTES = 2_000_000
_MOST_WAITING = 3
_MOST_FOOTER_ROWS = 5
_MOST_RAGGED_SHOWN = 5
_OUT_OF_MEMORY = ("out of memory", "bad_alloc", "cannot allocate", "new thread", "failed to allocate", "malloc of size")
_CLEAN = Dialect(",", '"')


class Unaccounted(Exception):
    """DuckDB refused the file, or not every byte of it was found again in the cells."""


@dataclass
class Rows:
    """Columns of a text table, header rows included, and what was left out on the way."""

    columns: list[pa.ChunkedArray]
    count: int
    ragged_left_out: list[int] = field(default_factory=list)
    footer: list[list[str]] = field(default_factory=list)


def load_rows(
    text: Text, dialect: Dialect, frame: Frame, asked: Mapping[str, Any], limits: ReadLimits, folder: Path
) -> Rows:
    """All rows from the header on. Raises TableProblem with the row at fault."""
    regular = not (frame.skip_lines or frame.extra_cell or len(dialect.delimiter.encode()) > 1)
    if regular and text.path.stat().st_size > _SMALL_BYTES and _full_names(frame):
        with contextlib.suppress(Unaccounted):
            return _load(text.path, dialect, frame.width, limits, text)
    tidy = _Tidy(dialect, frame, bool(asked.get("ragged_rows") == "leave out"), limits)
    copy = tidy.write(text.path, folder / "rows.csv")
    try:
        rows = _load(copy, _CLEAN, frame.width, limits, None)
    except Unaccounted:
        rows = Rows([], -1)
    if rows.count != tidy.written:
        raise TableProblem(
            "The file cannot be read as a table: two readers do not agree on its rows.",
            next_step="Check the delimiter and the quotes, or save the table as CSV again.",
        )
    rows.ragged_left_out, rows.footer = tidy.left_out, tidy.footer
    return rows


def _full_names(frame: Frame) -> bool:
    """Whether the header is as wide as the rows, so that one width holds for the whole file."""
    return frame.header_rows == 0 or bool(frame.names[0]) or frame.width == 1


# -- DuckDB -----------------------------------------------------------------------------------------------------------


def open_database(path: Path, limits: ReadLimits) -> duckdb.DuckDBPyConnection:
    """A database in memory that may open this one file and nothing else, neither on disk nor on the network."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": min(2, os.cpu_count() or 1)})
    quoted = str(path).replace("'", "''")
    for setting in (
        "temp_directory = ''",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"allowed_paths = ['{quoted}']",
        "enable_external_access = false",
        f"memory_limit = '{max(limits.memory_bytes // 3, 64_000_000)}B'",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def _load(path: Path, dialect: Dialect, width: int, limits: ReadLimits, text: Text | None) -> Rows:
    """All rows by DuckDB; with ``text``, every byte of it has to be accounted for. Raises Unaccounted."""
    import duckdb
    import pyarrow as pa

    names = [f"c{place}" for place in range(width)]
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    query = (
        f"SELECT * FROM read_csv(?, auto_detect = false, header = false, skip = 0, columns = {{{columns}}}, "  # noqa: S608 - names are ours
        f"force_not_null = {names}, delim = ?, quote = ?, escape = ?, strict_mode = true, null_padding = false, "
        f"max_line_size = {LONGEST_CELL})"
    )
    connection = open_database(path, limits)
    found, count, waiting = _Account(), 0, deque[Future[list[pa.Array]]]()
    pieces: list[list[pa.Array]] = [[] for _ in range(width)]

    def take() -> None:
        for kept, cells in zip(pieces, waiting.popleft().result(), strict=True):
            kept.append(cells)

    try:
        values = [str(path), dialect.delimiter, dialect.quote, dialect.quote]
        with ThreadPoolExecutor(1) as pool:
            for batch in connection.sql(query, params=values).to_arrow_reader(_BATCH_ROWS):
                count += batch.num_rows
                waiting.append(pool.submit(_compact, batch, found, dialect.quote if text and text.quotes else ""))
                while len(waiting) > _MOST_WAITING or (waiting and waiting[0].done()):
                    take()
                if count > limits.rows + 3:
                    break
            while waiting:
                take()
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # the last two come from the stream of batches
        if isinstance(error, duckdb.OutOfMemoryException) or any(sign in str(error).lower() for sign in _OUT_OF_MEMORY):
            raise MemoryError from error
        raise Unaccounted from error
    finally:
        connection.close()
    if text is not None and count <= limits.rows + 3:
        found.check(text, count, width)
    return Rows([pa.chunked_array(kept, pa.string() if not kept else None) for kept in _alike(pieces)], count)


def _compact(batch: pa.RecordBatch, account: _Account, quote: str) -> list[pa.Array]:
    """Codes into the different texts where these are few, else the texts as they are."""
    found = []
    for cells in batch.columns:
        account.add(cells, quote)
        many = len(cells) > 2_000 and len(cells.slice(0, 2_000).unique()) > 1_000
        encoded = cells if many else cells.dictionary_encode()
        found.append(cells if many or len(encoded.dictionary) * 4 > len(cells) > 2_000 else encoded)
    return found


def _alike(pieces: list[list[pa.Array]]) -> Iterator[list[pa.Array]]:
    """The pieces of each column, all encoded or none."""
    import pyarrow as pa

    while pieces:
        column = pieces.pop(0)
        encoded = [pa.types.is_dictionary(piece.type) for piece in column]
        if any(encoded) and not all(encoded):
            column = [piece.dictionary_decode() if yes else piece for piece, yes in zip(column, encoded, strict=True)]
        yield column


class _Account:
    """Bytes and quotes that were found in cells."""

    def __init__(self) -> None:
        self.bytes = 0
        self.quotes = 0

    def add(self, cells: pa.Array, quote: str) -> None:
        _, starts, letters = cells.buffers()
        ends = np.frombuffer(starts, dtype=np.int32)[cells.offset : cells.offset + len(cells) + 1]
        self.bytes += int(ends[-1]) - int(ends[0])
        if quote and letters is not None:
            self.quotes += int(np.count_nonzero(np.frombuffer(letters, np.uint8)[ends[0] : ends[-1]] == ord(quote)))

    def check(self, text: Text, rows: int, width: int) -> None:
        """Raise Unaccounted unless cells, delimiters, line ends and quotes make up the file."""
        expected = text.mark + self.bytes + rows * (width - 1 + text.line_end) + text.quotes - self.quotes
        if text.path.stat().st_size not in (expected, expected - text.line_end):
            raise Unaccounted


# -- the second reader ------------------------------------------------------------------------------------------------


class _Tidy:
    """Writes the rows of a table, and nothing else, as a regular file; rows are counted from 1 below the header."""

    def __init__(self, dialect: Dialect, frame: Frame, leave_out: bool, limits: ReadLimits) -> None:
        self.dialect, self.frame, self.leave_out, self.limits = dialect, frame, leave_out, limits
        self.written = 0
        self.left_out: list[int] = []
        self.footer: list[list[str]] = []
        self._waiting: list[tuple[int, list[str]]] = []

    def write(self, path: Path, target: Path) -> Path:
        row = -self.frame.header_rows
        with (
            path.open(encoding="utf-8-sig", newline="") as source,
            target.open("w", encoding="utf-8", newline="") as out,
        ):
            writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
            for _ in range(self.frame.skip_lines):
                source.readline()
            try:
                for record in records_of(source, self.dialect):
                    row += 1
                    self._take(row, record.cells, writer)
                    if self.written > self.limits.rows + 3:
                        break
            except csv.Error as error:
                raise _broken_quote(row + 1) from error
        self._settle()
        return target

    def _take(self, row: int, cells: list[str], writer: Any) -> None:
        width = self.frame.width
        if len(cells) == width + 1 and not cells[-1].strip():
            cells = cells[:width]
        if len(cells) == width - 1 and row <= 0:
            cells = ["", *cells] if not self.frame.extra_cell and not self.frame.names[0] else [*cells, ""]
        if len(cells) != width:
            self._waiting.append((row, cells))
            if len(self._waiting) > _MOST_FOOTER_ROWS and not self.leave_out:
                self._settle()
            return
        if self._waiting and not self.leave_out:
            raise _ragged(self._waiting, width)
        self.left_out += [place for place, _ in self._waiting]
        self._waiting.clear()
        writer.writerow(cells)
        self.written += 1

    def _settle(self) -> None:
        """What waits at the end: rows below the table, if they are few and narrow, else broken rows."""
        narrow = all(2 * sum(bool(cell.strip()) for cell in cells) <= self.frame.width for _, cells in self._waiting)
        if (
            self._waiting
            and len(self._waiting) <= _MOST_FOOTER_ROWS
            and narrow
            and self.written > 2
            and self.frame.width > 2
        ):
            self.footer = [cells for _, cells in self._waiting]
        elif self._waiting and self.leave_out:
            self.left_out += [place for place, _ in self._waiting]
        elif self._waiting:
            raise _ragged(self._waiting, self.frame.width)


def _broken_quote(row: int) -> TableProblem:
    return TableProblem(
        f"Row {max(row, 0)} has a quote that is opened and not closed, or one inside a cell.",
        next_step="Correct that row, or say in the recipe which character encloses cells (quote; empty for none).",
        row=max(row, 0),
    )


def _ragged(rows: list[tuple[int, list[str]]], width: int) -> TableProblem:
    row, cells = rows[0]
    return TableProblem(
        f"Row {row} has {len(cells)} cells, but the table has {width} columns.",
        next_step="Correct that row, enclose cells that hold the delimiter in quotes, or leave such rows out "
        "(ragged_rows: leave out in the recipe).",
        row=row,
    )
