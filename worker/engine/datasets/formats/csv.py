"""Text tables: CSV and its relatives with another delimiter, in UTF-8.

What was detected (delimiter, quote, types) is recorded and can be changed. Nothing is repaired silently: a ragged row,
another encoding or a binary file is refused with the place and the next step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.cells import make_column, plain_number
from worker.engine.datasets.formats.csv_text import Dialect, check_text, count_rows, find_dialect, first_record
from worker.engine.datasets.reading import DEFAULT_MISSING_CODES, require_reading
from worker.engine.datasets.table import Column, Table
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    import duckdb

    from worker.engine.datasets.formats.base import ReadLimits

_LONGEST_LINE = 16_000_000


@dataclass(frozen=True)
class Csv:
    """CSV, the format of spreadsheets' text exports."""

    key: str = "csv"
    title: str = "CSV"
    help: str = "Text in UTF-8 with a header row; comma, semicolon, tab or bar between the columns."

    def recognises(self, name: str, first_bytes: bytes) -> bool:
        """Always: this is the last format asked, and what is no text is refused on reading, in words."""
        return bool(name or first_bytes)

    def read(self, path: Path, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
        """The table and the reading: delimiter, quote, header, types, missing codes, notes. Raises TableProblem."""
        require_reading(asked)
        with TemporaryDirectory(dir=path.parent, prefix="reading-") as folder:
            text = check_text(path, Path(folder))
            dialect = find_dialect(text.path, asked)
            names = first_record(text.path, dialect)
            _check_columns(len(names), limits)
            connection = _open(text.path, limits)
            try:
                counted = count_rows(text.path, dialect, len(names), limits.rows + 1)
                _check_rows(max(counted - 1, 1), limits)
                _load(connection, text.path, dialect, len(names), counted)
                table, reading = _build(connection, names, dialect, asked, limits)
            finally:
                connection.close()
        if text.mixed_line_endings:
            reading["notes"].append({"message": "The line endings are mixed; all were read as ends of rows."})
        return table, reading


CSV = Csv()


def _check_columns(count: int, limits: ReadLimits) -> None:
    if count > limits.columns:
        raise TableProblem(
            f"The table has {count} columns, more than the {limits.columns} that can be read.",
            next_step="Keep only the columns that the audit needs and upload again.",
            limit="columns",
        )


def _open(path: Path, limits: ReadLimits) -> duckdb.DuckDBPyConnection:
    """A database in memory that may open this one file and nothing else, neither on disk nor on the network."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": 1})
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


def _load(connection: duckdb.DuckDBPyConnection, path: Path, dialect: Dialect, width: int, counted: int) -> None:
    """Fill the table ``cells`` with as many rows as were counted."""
    import duckdb

    columns = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(width))
    reader = (
        f"read_csv(?, auto_detect = false, header = false, skip = 0, columns = {{{columns}}}, delim = ?, quote = ?, "
        f"escape = ?, strict_mode = true, null_padding = false, parallel = false, max_line_size = {_LONGEST_LINE})"
    )
    values = [str(path), dialect.delimiter, dialect.quote, dialect.quote]
    try:
        connection.execute(f"CREATE TABLE cells AS SELECT * FROM {reader} LIMIT {counted + 1}", values)  # noqa: S608 - see above
    except duckdb.OutOfMemoryException as error:
        raise memory_problem() from error
    except duckdb.Error as error:
        raise _not_readable(dialect) from error
    if _count(connection) != counted:
        raise _not_readable(dialect)


def memory_problem() -> TableProblem:
    """The table does not fit into the memory a reader may use."""
    return TableProblem(
        "The table needs more memory than a reader may use.",
        next_step="Keep only the columns and rows that the audit needs and upload again.",
        limit="memory",
    )


def _not_readable(dialect: Dialect) -> TableProblem:
    return TableProblem(
        f"The file cannot be read as a table with {dialect.delimiter!r} between the columns: two readers do not agree on it.",
        next_step="Check the delimiter, the quotes and blank lines, or save the table as CSV again.",
    )


def _build(
    connection: duckdb.DuckDBPyConnection,
    first: list[str],
    dialect: Dialect,
    asked: Mapping[str, Any],
    limits: ReadLimits,
) -> tuple[Table, dict[str, Any]]:
    header = bool(asked.get("header", True))
    rows = _count(connection) - (1 if header else 0)
    _check_rows(rows, limits)
    names, notes = visible_names(first if header else [""] * len(first), header)
    if header and any(plain_number(text.strip()) is not None for text in first):
        notes.append({"message": "The first row holds numbers. If it is data and not a header, say header: false."})
    unknown = [name for name in asked.get("types", {}) if name not in names]
    if unknown:
        raise TableProblem(
            f"The recipe gives a type for {unknown[0]}, but there is no such column.",
            next_step="Use the column names as shown.",
            column=unknown[0],
        )
    columns = []
    for position, name in enumerate(names):
        column, note = _column(connection, position, name, header, asked)
        columns.append(column)
        notes += note
    table = Table(np.arange(rows, dtype=np.int64), tuple(columns), np.zeros(rows, dtype=np.bool_))
    return table, _reading(table, dialect, asked, header, notes)


def _count(connection: duckdb.DuckDBPyConnection) -> int:
    return int(connection.execute("SELECT count(*) FROM cells").fetchall()[0][0])


def _check_rows(rows: int, limits: ReadLimits) -> None:
    if rows > limits.rows:
        raise TableProblem(
            f"The table has more than {limits.rows} rows.",
            next_step="Upload a part of it.",
            limit="rows",
        )
    if rows < 1:
        raise TableProblem(
            "The file has a header but no rows.", next_step="Upload a table with at least one row below the header."
        )


def visible_names(first: list[str], header: bool) -> tuple[list[str], list[dict[str, Any]]]:
    """Unique, visible names for the columns, and a note for each name that had to be made."""
    names: list[str] = []
    notes = []
    taken = {text.strip() for text in first}
    for position, text in enumerate(first, start=1):
        name = text.strip()
        if not name or name in names:
            new = _free_name(name or "column", position if not name else 2, taken)
            if header:
                cause = "has no name" if not name else f"has the name {name} a second time"
                notes.append({"column": new, "message": f"Column {position} {cause}; it is shown as {new}."})
            name = new
        names.append(name)
        taken.add(name)
    return names, notes


def _free_name(stem: str, number: int, taken: set[str]) -> str:
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def _column(
    connection: duckdb.DuckDBPyConnection, position: int, name: str, header: bool, asked: Mapping[str, Any]
) -> tuple[Column, list[dict[str, Any]]]:
    """One column, typed. The cells leave the database as codes into the different texts, never one by one."""
    query = f"SELECT coalesce(c{position}, '') FROM cells OFFSET {int(header)}"  # noqa: S608 - a column number
    encoded = connection.sql(query).to_arrow_table().column(0).combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    column, offending = make_column(
        name,
        codes,
        encoded.dictionary.to_pylist(),
        trim=bool(asked.get("trim_spaces", True)),
        missing_codes=frozenset(asked.get("missing_codes", DEFAULT_MISSING_CODES)),
        merges=asked.get("merges", {}).get(name, {}),
        asked_kind=asked.get("types", {}).get(name),
    )
    return column, _mostly_numbers(column, offending)


def _mostly_numbers(column: Column, offending: str | None) -> list[dict[str, Any]]:
    """A note where most different texts are numbers and some cell keeps the column from being one."""
    if offending is None or not column.categories:
        return []
    plain = sum(plain_number(text) is not None for text in column.categories)
    if plain < len(column.categories) / 2:
        return []
    others = [text[:40] for text in column.categories if plain_number(text) is None][:5]
    message = f"Read as a category, because some cells are no plain numbers: {', '.join(others)}."
    return [{"column": column.name, "message": message}]


def _reading(
    table: Table, dialect: Dialect, asked: Mapping[str, Any], header: bool, notes: list[dict[str, Any]]
) -> dict[str, Any]:
    reading = {
        "format": "csv",
        "encoding": "utf-8",
        "delimiter": dialect.delimiter,
        "quote": dialect.quote,
        "header": header,
        "trim_spaces": bool(asked.get("trim_spaces", True)),
        "missing_codes": list(asked.get("missing_codes", DEFAULT_MISSING_CODES)),
        "types": {column.name: column.kind for column in table.columns},
        "labels": {
            "columns": dict(asked.get("labels", {}).get("columns", {})),
            "values": {name: dict(values) for name, values in asked.get("labels", {}).get("values", {}).items()},
        },
        "notes": notes,
    }
    if asked.get("merges"):
        reading["merges"] = {name: dict(values) for name, values in asked["merges"].items()}
    return reading
