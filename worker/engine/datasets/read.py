"""Read an upload, with its test file if there is one, into one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.formats.base import TableFormat, Wrapping
from worker.engine.datasets.spellings import propose_merges, shared_end
from worker.engine.datasets.table import MISSING, Column, Table
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    from worker.engine.datasets.formats.base import Format, ReadLimits

_FIRST_BYTES = 65_536
_DEEPEST = 3
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
    table, reading = read_one(path, asked, limits, formats)
    if len(table) < FEWEST_ROWS:
        raise TableProblem(
            f"The table has only {len(table)} row, and at least {FEWEST_ROWS} are needed to compare anything.",
            next_step="Upload a table with a few hundred rows: fewer than 30 test rows of a group cannot be judged.",
        )
    if test_path is None:
        return table, reading
    test, test_reading = read_one(test_path, asked, limits, formats)
    _check_same_columns(table, test)
    differing = [name for name in table.names if table.column(name).kind != test.column(name).kind]
    if differing:
        as_texts = {**asked, "types": {**asked.get("types", {}), **dict.fromkeys(differing, "category")}}
        table, reading = read_one(path, as_texts, limits, formats)
        test, test_reading = read_one(test_path, as_texts, limits, formats)
    message = "Read as a category, because some cells are no plain numbers in one of the two files."
    reading["notes"] += [{"column": name, "message": message} for name in differing]
    reading["notes"] += [note for note in test_reading["notes"] if note not in reading["notes"]]
    if len(table) + len(test) > limits.rows:
        raise TableProblem(
            f"The two files have more than {limits.rows} rows.", next_step="Upload a part of them.", limit="rows"
        )
    test, ends = _take_off_ends(table, test, asked)
    reading["test_file_ends"] = ends
    if "test_file_ends" not in asked:
        reading["notes"] += [_end_note(name, end) for name, end in ends.items()]
    joined = _join(table, test)
    found = {
        name: _both(reading["found"][name], test_reading["found"][name], joined.column(name)) for name in joined.names
    }
    return joined, reading | {"found": found}


def _both(first: Mapping[str, Any], second: Mapping[str, Any], joined: Column) -> dict[str, Any]:
    """What is proposed for a column of two files: counts added, spellings looked at over both."""
    added = {key: _add(first[key], second[key]) for key in ("missing_codes", "suspects")}
    codes = joined.codes if joined.codes is not None else np.zeros(0, dtype=np.int32)
    counts = np.bincount(codes[codes >= 0], minlength=len(joined.categories))
    sizes = {text: int(count) for text, count in zip(joined.categories, counts, strict=True) if count}
    return {**first, **added, "merges": propose_merges(sizes)}


def _add(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    for entry in (*first, *second):
        counts[entry["value"]] = counts.get(entry["value"], 0) + entry["count"]
    return [{"value": value, "count": count} for value, count in counts.items()]


def read_one(
    path: Path, asked: Mapping[str, Any], limits: ReadLimits, formats: Sequence[Format]
) -> tuple[Table, dict[str, Any]]:
    """The table of one file, unwrapped as often as needed. Raises TableProblem."""
    with TemporaryDirectory(dir=path.parent, prefix="unpacked-") as folder:
        wrappings: list[str] = []
        inside: dict[str, Any] = {}
        while True:
            kind = _recognise(path, formats)
            if isinstance(kind, TableFormat):
                table, reading = kind.read(path, {**asked, "format": kind.key}, limits)
                packed = [{"message": f"The file was packed with {', in '.join(wrappings)}."}] if wrappings else []
                return table, reading | inside | {"notes": packed + reading["notes"]}
            if not isinstance(kind, Wrapping) or len(wrappings) == _DEEPEST:
                raise TableProblem("The file is packed too deeply.", next_step="Unpack it and upload the table inside.")
            deeper = Path(folder) / str(len(wrappings))
            deeper.mkdir()
            path, found = kind.unwrap(path, deeper, asked, limits)
            wrappings.append(kind.title)
            inside |= found


def _recognise(path: Path, formats: Sequence[Format]) -> Format:
    with path.open("rb") as file:
        first_bytes = file.read(_FIRST_BYTES)
    for kind in formats:
        if kind.recognises(path.name, first_bytes):
            return kind
    if not first_bytes:
        raise TableProblem("The file is empty.", next_step="Upload a table with a header and at least one row.")
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


def _take_off_ends(table: Table, test: Table, asked: Mapping[str, Any]) -> tuple[Table, dict[str, str]]:
    """The test file without a mark that ends every one of its values of a column and none of the first file's."""
    columns, ends = [], {}
    for column in test.columns:
        first = table.column(column.name)
        end = asked.get("test_file_ends", {}).get(column.name, "")
        if "test_file_ends" not in asked and column.categories and len(column.categories) <= len(first.categories):
            end = shared_end({*first.categories}, {*column.categories})
        if end and column.categories:
            column, ends[column.name] = _without_end(column, end), end
        columns.append(column)
    return Table(test.row_ids, tuple(columns), test.from_test_file), ends


def _without_end(column: Column, end: str) -> Column:
    shorter = [text.removesuffix(end).rstrip() for text in column.categories]
    categories = tuple(sorted(set(shorter)))
    lookup = np.array([categories.index(text) for text in shorter] + [MISSING], dtype=np.int32)
    return Column(column.name, "category", codes=lookup[column.filled_codes()], categories=categories)


def _end_note(name: str, end: str) -> dict[str, Any]:
    message = (
        f"In the test file every value ends in {end!r} and in the first file none does; the mark was taken off, so that "
        "both files have the same values."
    )
    return {"column": name, "field": "test_file_ends", "message": message}


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
