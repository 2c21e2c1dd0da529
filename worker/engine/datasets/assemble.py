"""From the columns that a format hands over to the table and its reading: the one place where recipes meet columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.columns import Judged, Wishes, judge_arrow, judge_numbers
from worker.engine.datasets.reading import DEFAULT_MISSING_CODES
from worker.engine.datasets.table import Column, Table
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    import pyarrow as pa

    from worker.engine.datasets.formats.base import ReadLimits

_THREADS = 2
LONGEST_NAME = 200
_BY_NAME = (("types", "a type"), ("missing", "missing codes"), ("merges", "merges"), ("schema", "bounds or a list"))


@dataclass
class RawTable:
    """What a format read: names as they stand in the file, and one Arrow column each, of texts or of float64.

    ``columns`` is emptied while the table is built, so that no column lies in memory twice.
    """

    names: list[str]
    columns: list[pa.ChunkedArray]
    rows: int
    reading: dict[str, Any]
    decimal: str = "."
    named: bool = True
    notes: list[dict[str, Any]] = field(default_factory=list)


def assemble(raw: RawTable, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
    """The table and its reading; ``reading["found"]`` holds by column name what the profile proposes.

    Raises TableProblem where there are no rows, too many, or a wish does not fit.
    """
    check_size(raw.rows, len(raw.columns), limits)
    names, notes = visible_names(raw.names, raw.named)
    notes = raw.notes + notes
    _check_names(names, asked)
    columns, found, types = [], {}, {}
    for name, judged in zip(names, _judge_all(names, raw, asked), strict=True):
        _refuse_zeros(judged.column)
        columns.append(judged.column)
        notes += judged.notes
        found[name], types[name] = judged.proposals(), judged.column.kind
    notes += _spoiled_names(names, columns)
    _check_schema(asked.get("schema", {}), types)
    table = Table(np.arange(raw.rows, dtype=np.int64), tuple(columns), np.zeros(raw.rows, dtype=np.bool_))
    return table, _reading(raw, asked, types, notes) | {"found": found}


def check_size(rows: int, columns: int, limits: ReadLimits) -> None:
    """Raise TableProblem naming the limit, or the lack of rows."""
    if columns > limits.columns:
        raise TableProblem(
            f"The table has {columns} columns, more than the {limits.columns} that can be read.",
            next_step="Keep only the columns that the audit needs and upload again.",
            limit="columns",
        )
    if rows > limits.rows:
        raise TableProblem(
            f"The table has more than {limits.rows} rows.", next_step="Upload a part of it.", limit="rows"
        )
    if rows < 1:
        raise TableProblem(
            "The file has a header but no rows.", next_step="Upload a table with at least two rows below the header."
        )


def _judge_all(names: list[str], raw: RawTable, asked: Mapping[str, Any]) -> Iterator[Judged]:
    """The columns judged two at a time, each let go of when it is done."""
    with ThreadPoolExecutor(_THREADS) as pool:
        columns, raw.columns = deque(raw.columns), []
        waiting: deque[Future[Judged]] = deque()
        for name in names:
            waiting.append(pool.submit(_judge, name, columns.popleft(), _wishes(name, raw.decimal, asked)))
            if len(waiting) > _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _judge(name: str, cells: pa.ChunkedArray, wishes: Wishes) -> Judged:
    import pyarrow as pa

    if pa.types.is_floating(cells.type):
        return judge_numbers(name, np.array(cells.fill_null(float("nan")).to_numpy()), wishes)
    return judge_arrow(name, cells, wishes)


def _wishes(name: str, decimal: str, asked: Mapping[str, Any]) -> Wishes:
    own = asked.get("missing", {}).get(name)
    return Wishes(
        decimal=decimal,
        trim=asked.get("trim_spaces"),
        missing_codes=frozenset(code.strip() for code in asked.get("missing_codes", DEFAULT_MISSING_CODES)),
        missing=None if own is None else frozenset(code.strip() for code in own),
        kind=asked.get("types", {}).get(name),
        merges=asked.get("merges", {}).get(name, {}),
    )


def _check_names(names: list[str], asked: Mapping[str, Any]) -> None:
    for key, what in _BY_NAME:
        unknown = [name for name in asked.get(key, {}) if name not in names]
        if unknown:
            raise TableProblem(
                f"The recipe gives {what} for {unknown[0]}, but there is no such column.",
                next_step="Use the column names as shown.",
                column=unknown[0],
            )


def _refuse_zeros(column: Column) -> None:
    if any("\0" in text for text in column.categories):
        raise TableProblem(
            f"Column {column.name} holds zero characters, which are no text.",
            next_step="Take them out, or save the table as CSV (UTF-8), and upload it again.",
            column=column.name,
        )


def _check_schema(schema: Mapping[str, Any], types: Mapping[str, str]) -> None:
    for name, entry in schema.items():
        for key, kind, what in (("low", "number", "bounds"), ("categories", "category", "a list of categories")):
            if entry.get(key) is not None and types[name] != kind:
                raise TableProblem(
                    f"The recipe declares {what} for {name}, which is a {types[name]}.",
                    next_step="Declare bounds for numbers and lists for categories, or change its type.",
                    column=name,
                )


def visible_names(first: list[str], header: bool) -> tuple[list[str], list[dict[str, Any]]]:
    """Unique, visible names for the columns, and a note for each name that had to be made."""
    names: list[str] = []
    notes = []
    taken = {text.strip() for text in first}
    used: set[str] = set()
    for position, text in enumerate(first, start=1):
        name = "".join(letter if letter.isprintable() else " " for letter in text).strip()
        if len(name) > LONGEST_NAME:
            notes.append({"message": f"The name of column {position} was cut to {LONGEST_NAME} characters."})
            name = name[:LONGEST_NAME].strip()
        if not name or name in used:
            new = _free_name(name or "column", position if not name else 2, taken)
            if header:
                cause = "has no name" if not name else f"has the name {name} a second time"
                notes.append({"column": new, "message": f"Column {position} {cause}; it is shown as {new}."})
            name = new
        names.append(name)
        taken.add(name)
        used.add(name)
    return names, notes


def _free_name(stem: str, number: int, taken: set[str]) -> str:
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def _spoiled_names(names: list[str], columns: list[Column]) -> list[dict[str, Any]]:
    """A header whose names are all values of their columns is likely no header."""
    inside = [name for name, column in zip(names, columns, strict=True) if name in column.categories]
    if len(inside) * 2 <= len(names):
        return []
    message = "Most names are also values below them. If the first row is data, say so in the recipe (header: false)."
    return [{"field": "header", "message": message}]


def _reading(
    raw: RawTable, asked: Mapping[str, Any], types: Mapping[str, str], notes: list[dict[str, Any]]
) -> dict[str, Any]:
    labels = asked.get("labels", {})
    reading = raw.reading | {
        "decimal": raw.decimal,
        "trim_spaces": asked.get("trim_spaces"),
        "missing_codes": list(asked.get("missing_codes", DEFAULT_MISSING_CODES)),
        "types": dict(types),
        "labels": {
            "columns": dict(labels.get("columns", {})),
            "values": {name: dict(values) for name, values in labels.get("values", {}).items()},
        },
        "notes": notes,
    }
    for key in ("merges", "missing", "schema"):
        if asked.get(key):
            reading[key] = {name: _plain(value) for name, value in asked[key].items()}
    return reading


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)
