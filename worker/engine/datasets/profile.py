"""What is in a table, column by column: kinds, missing cells, values, what is proposed, and a guess of each column's role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from worker.engine.datasets.duplicates import count_repeats
from worker.engine.datasets.encode import MOST_CATEGORIES
from worker.engine.datasets.guess import guess_roles
from worker.engine.datasets.role_set import number_text
from worker.engine.datasets.table import Column, Table

MOST_VALUES = 50
"""Values listed per column, the most frequent first."""
PREVIEW_ROWS = 8
LONGEST_SHOWN = 80
LONGEST_VALUE = 1_000
"""Longer values are cut in the profile: they are free text, and nothing can be asked about them."""
MOST_NOTES_ALIKE = 5
_PROPOSALS: Mapping[str, Any] = {"missing_codes": [], "suspects": [], "merges": [], "offending": [], "as_number": None}


def profile_table(table: Table, reading: Mapping[str, Any]) -> dict[str, Any]:
    """The profile of a table as JSON: ``rows``, ``columns``, ``notes``, ``repeats`` and ``preview`` (first rows, as texts).

    Values are the stored texts; ``label`` is what the recipe shows in their place. ``low`` and ``high`` are the range of a
    number, None for a category. What ``reading["found"]`` proposes stands with its column.
    """
    labels, found = reading.get("labels", {}), reading.get("found", {})
    columns = [_profile_column(table, column, labels) for column in table.columns]
    for column, (role, reason) in zip(columns, guess_roles(columns, len(table)), strict=True):
        column.update(role=role, reason=reason, **(_PROPOSALS | found.get(column["name"], {})))
        del column["whole"], column["type_is_whole_or_text"]
    repeats = count_repeats(table, {column["name"] for column in columns if column["distinct"] == len(table)})
    notes = [*reading.get("notes", []), *_notes(table, columns, repeats)]
    return {"rows": len(table), "columns": columns, "notes": notes, "repeats": repeats, "preview": _preview(table)}


def _profile_column(table: Table, column: Column, labels: Mapping[str, Any]) -> dict[str, Any]:
    values, counts = _value_counts(column)
    shown = labels.get("values", {}).get(column.name, {})
    numbers = None if column.numbers is None else column.numbers[~np.isnan(column.numbers)]
    whole = numbers is not None and bool(np.all(numbers == np.floor(numbers)))
    return {
        "name": column.name,
        "label": labels.get("columns", {}).get(column.name, column.name),
        "type": column.kind,
        "missing": int(column.missing().sum()),
        "distinct": len(counts),
        "values": [_value(values[i], int(counts[i]), shown) for i in _most_frequent(counts)],
        "low": float(numbers.min()) if numbers is not None and len(numbers) else None,
        "high": float(numbers.max()) if numbers is not None and len(numbers) else None,
        "longest": max((len(text) for text in column.categories), default=0),
        "only_in_test_file": _only_in_test_file(table, column, len(counts)),
        "whole": whole,
        "type_is_whole_or_text": whole or column.kind == "category",
    }


def _value(text: str | float, count: int, shown: Mapping[str, str]) -> dict[str, Any]:
    value = text[:LONGEST_VALUE] if isinstance(text, str) else number_text(text)
    return {"value": value, "label": shown.get(value, value), "count": count}


def _most_frequent(counts: np.ndarray[Any, np.dtype[np.int64]]) -> list[int]:
    """Positions of the highest counts, highest first, of equals the first."""
    places = np.arange(len(counts))
    if len(counts) > MOST_VALUES:
        least = np.partition(counts, -MOST_VALUES)[-MOST_VALUES]
        above, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
        places = np.sort(np.concatenate([above, equal[: MOST_VALUES - len(above)]]))
    order = np.lexsort((places, -counts[places]))
    return [int(place) for place in places[order]]


def _value_counts(column: Column) -> tuple[Any, np.ndarray[Any, np.dtype[np.int64]]]:
    """The different values that occur, in sorted order, and how often each does."""
    if column.numbers is not None:
        values, counts = np.unique(column.numbers[~np.isnan(column.numbers)], return_counts=True)
        return values, counts
    codes = column.filled_codes()
    counts = np.bincount(codes[codes >= 0], minlength=len(column.categories))
    occurring = np.flatnonzero(counts)
    return [column.categories[i] for i in occurring.tolist()], counts[occurring]


def _only_in_test_file(table: Table, column: Column, distinct: int) -> list[str]:
    """Values of a column with few values that occur in the test file and never in the first, as other spellings do."""
    if not table.from_test_file.any() or distinct > MOST_VALUES:
        return []
    texts = column.as_category()
    codes = texts.filled_codes()
    first, second = codes[~table.from_test_file], codes[table.from_test_file]
    return [texts.categories[code] for code in sorted({*second.tolist()} - {*first.tolist(), -1})]


def _preview(table: Table) -> list[list[str | None]]:
    """The first rows as they were understood, long cells shortened; None where a cell is missing."""
    first = table.take(np.arange(min(PREVIEW_ROWS, len(table))))
    columns = [column.values_as_text() for column in first.columns]
    return [[None if cell is None else cell[:LONGEST_SHOWN] for cell in row] for row in zip(*columns, strict=True)]


def _notes(table: Table, columns: list[dict[str, Any]], repeats: int) -> list[dict[str, Any]]:
    notes: list[dict[str, Any]] = []
    for column in columns:
        notes += [{"column": column["name"], "message": message} for message in _remarks(column, len(table))]
    notes += _alike(columns, 1, "There is only one value; it can be neither target nor protected.")
    notes += _alike(columns, 0, "Every cell is missing; it is left out of the features.")
    if repeats:
        notes.append(
            {
                "message": f"Rows that repeat an earlier row: {repeats:,}. Each is a row of its own here; an attack that asks who "
                "was in the training part takes a twin for a member."
            }
        )
    if len(table) < 100:
        notes.append({"message": f"There are only {len(table)} rows; hardly any group can be judged."})
    return notes


def _alike(columns: list[dict[str, Any]], distinct: int, message: str) -> list[dict[str, Any]]:
    """The same remark on columns of so many values: each by itself, or all in one where there are many."""
    names = [column["name"] for column in columns if column["distinct"] == distinct]
    if len(names) <= MOST_NOTES_ALIKE:
        return [{"column": name, "message": message} for name in names]
    shown = ", ".join(name[:40] for name in names[:MOST_NOTES_ALIKE])
    return [{"message": f"So it is in {len(names)} columns ({shown} and others): {message}"}]


def _remarks(column: Mapping[str, Any], rows: int) -> list[str]:
    found = []
    if column["type"] == "category" and MOST_CATEGORIES < column["distinct"] < rows:
        found.append(
            f"It has {column['distinct']:,} values. As a feature the {MOST_CATEGORIES} most frequent get a column each and the "
            "others share one (other); merge them into fewer in the recipe, or declare the list."
        )
    if column["only_in_test_file"]:
        shown = ", ".join(text[:40] for text in column["only_in_test_file"][:5])
        found.append(f"Only in the test file: {shown}. Merge them in the recipe if they are other spellings.")
    return found
