"""What is in a table, column by column: kinds, missing cells, values, and a guess of each column's role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from worker.engine.datasets.guess import guess_roles
from worker.engine.datasets.role_set import number_text
from worker.engine.datasets.table import Column, Table

MOST_VALUES = 50
"""Values listed per column, the most frequent first."""


def profile_table(table: Table, reading: Mapping[str, Any]) -> dict[str, Any]:
    """The profile of a table as JSON: ``rows``, ``columns`` and ``notes``.

    Values are the stored texts; ``label`` is what the recipe shows in their place. ``low`` and ``high`` are the range of a
    number, None for a category.
    """
    labels = reading.get("labels", {})
    columns = [_profile_column(table, column, labels) for column in table.columns]
    for column, (role, reason) in zip(columns, guess_roles(columns, len(table)), strict=True):
        column.update(role=role, reason=reason)
        del column["whole"], column["type_is_whole_or_text"]
    notes = [*reading.get("notes", []), *_notes(table, columns)]
    return {"rows": len(table), "columns": columns, "notes": notes}


def _profile_column(table: Table, column: Column, labels: Mapping[str, Any]) -> dict[str, Any]:
    values, counts = _value_counts(column)
    order = np.lexsort((np.arange(len(counts)), -counts))[:MOST_VALUES]
    shown = labels.get("values", {}).get(column.name, {})
    numbers = None if column.numbers is None else column.numbers[~np.isnan(column.numbers)]
    whole = numbers is not None and bool(np.all(numbers == np.floor(numbers)))
    return {
        "name": column.name,
        "label": labels.get("columns", {}).get(column.name, column.name),
        "type": column.kind,
        "missing": int(column.missing().sum()),
        "distinct": len(counts),
        "values": [_value(values[i], int(counts[i]), shown) for i in order],
        "low": float(numbers.min()) if numbers is not None and len(numbers) else None,
        "high": float(numbers.max()) if numbers is not None and len(numbers) else None,
        "only_in_test_file": _only_in_test_file(table, column, len(counts)),
        "whole": whole,
        "type_is_whole_or_text": whole or column.kind == "category",
    }


def _value(text: str | float, count: int, shown: Mapping[str, str]) -> dict[str, Any]:
    value = text if isinstance(text, str) else number_text(text)
    return {"value": value, "label": shown.get(value, value), "count": count}


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


def _notes(table: Table, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    notes = []
    for column in columns:
        if column["distinct"] == 0:
            notes.append({"column": column["name"], "message": "Every cell is missing."})
        elif column["distinct"] == 1:
            notes.append({"column": column["name"], "message": "There is only one value."})
        if column["only_in_test_file"]:
            message = f"Only in the test file: {', '.join(text[:40] for text in column['only_in_test_file'][:5])}."
            notes.append({"column": column["name"], "message": message})
    if len(table) < 100:
        notes.append({"message": f"There are only {len(table)} rows; hardly any group can be judged."})
    return notes
