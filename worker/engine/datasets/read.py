"""Read an upload, with its test file if there is one, into one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.table import MISSING, Column, Table
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    from worker.engine.datasets.formats.base import Format, ReadLimits

_FIRST_BYTES = 512
FEWEST_ROWS = 2


def read_table(
    path: Path,
    test_path: Path | None,
    asked: Mapping[str, Any],
    limits: ReadLimits,
    formats: Sequence[Format],
) -> tuple[Table, dict[str, Any]]:
    """The table and its reading. Rows of the test file follow those of the first and are marked as such.

    Raises TableProblem if a file cannot be read or the test file has other columns than the first.
    """
    table, reading = _read_one(path, asked, limits, formats)
    if len(table) < FEWEST_ROWS:
        raise TableProblem(
            f"The table has only {len(table)} row, and at least {FEWEST_ROWS} are needed to compare anything.",
            next_step="Upload a table with a few hundred rows: fewer than 30 test rows of a group cannot be judged.",
        )
    if test_path is None:
        return table, reading
    test, test_reading = _read_one(test_path, asked, limits, formats)
    _check_same_columns(table, test)
    differing = [name for name in table.names if table.column(name).kind != test.column(name).kind]
    if differing:
        as_texts = {**asked, "types": {**asked.get("types", {}), **dict.fromkeys(differing, "category")}}
        table, reading = _read_one(path, as_texts, limits, formats)
        test, test_reading = _read_one(test_path, as_texts, limits, formats)
    message = "Read as a category, because some cells are no plain numbers in one of the two files."
    reading["notes"] += [{"column": name, "message": message} for name in differing]
    reading["notes"] += [note for note in test_reading["notes"] if note not in reading["notes"]]
    if len(table) + len(test) > limits.rows:
        raise TableProblem(
            f"The two files have more than {limits.rows} rows.", next_step="Upload a part of them.", limit="rows"
        )
    return _join(table, test), reading


def _read_one(
    path: Path, asked: Mapping[str, Any], limits: ReadLimits, formats: Sequence[Format]
) -> tuple[Table, dict[str, Any]]:
    with path.open("rb") as file:
        first_bytes = file.read(_FIRST_BYTES)
    wanted = [kind for kind in formats if asked.get("format", kind.key) == kind.key]
    for kind in wanted:
        if kind.recognises(path.name, first_bytes):
            return kind.read(path, asked, limits)
    names = ", ".join(kind.title for kind in formats)
    raise TableProblem("The file is of no kind that can be read.", next_step=f"Upload one of these: {names}.")


def _check_same_columns(table: Table, test: Table) -> None:
    for one, other, where in ((table, test, "the test file"), (test, table, "the first file")):
        for name in one.names:
            if name not in other.names:
                raise TableProblem(
                    f"Column {name} is missing in {where}.",
                    next_step="Give both files the same columns with the same names.",
                    column=name,
                )


def _join(table: Table, test: Table) -> Table:
    columns = tuple(_join_columns(column, test.column(column.name)) for column in table.columns)
    from_test_file = np.concatenate([np.zeros(len(table), dtype=np.bool_), np.ones(len(test), dtype=np.bool_)])
    return Table(np.arange(len(from_test_file), dtype=np.int64), columns, from_test_file)


def _join_columns(first: Column, second: Column) -> Column:
    if first.numbers is not None and second.numbers is not None:
        return Column(first.name, "number", numbers=np.concatenate([first.numbers, second.numbers]))
    categories = tuple(sorted({*first.categories, *second.categories}))
    position = {text: place for place, text in enumerate(categories)}
    parts = []
    for column in (first, second):
        lookup = np.array([position[text] for text in column.categories] + [MISSING], dtype=np.int32)
        parts.append(lookup[column.filled_codes()])
    return Column(first.name, "category", codes=np.concatenate(parts), categories=categories)
