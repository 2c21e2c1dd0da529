"""The reading part of a recipe: which wishes are understood. Needs no numpy, so that the web can check a request."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from typing import Any

from worker.engine.datasets.role_set import is_number
from worker.engine.errors import TableProblem
from worker.engine.results import FieldError

DEFAULT_MISSING_CODES = ("", "?")
"""Cells that are missing unless told otherwise. ``NA``, ``None``, ``null`` are names that occur: they stay values."""

_OF_SCHEMA = ("low", "high", "transform", "categories", "other", "source")
PUBLIC, READ_FROM_DATA = "public", "read from the data"
MOST_SKIPPED = 100

_TEXTS = ("format", "encoding", "delimiter", "quote", "decimal", "sheet", "member", "ragged_rows")
_FLAGS = ("header", "trim_spaces")
_COUNTS = {"skip_rows": MOST_SKIPPED, "header_rows": 2, "footer_rows": MOST_SKIPPED}
_MAPS = ("types", "labels", "merges", "missing", "schema", "test_file_ends")
SHOWN_WITH_A_READING = ("notes", "found")
"""What a reading shows besides; sent back, it is not looked at."""
_KNOWN = (*_TEXTS, *_FLAGS, *_COUNTS, "missing_codes", *_MAPS, *SHOWN_WITH_A_READING)


def check_reading(asked: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """Every field of a wished reading that cannot be used, as errors at the field."""
    errors = [FieldError(str(key), "This field of a recipe is not known.") for key in asked if key not in _KNOWN]
    errors += [FieldError(key, "Must be a text.") for key in _TEXTS if not isinstance(asked.get(key, ""), str)]
    for key in _FLAGS:
        allowed = (True, False, None) if key == "trim_spaces" else (True, False)
        if not any(asked.get(key, True) is value for value in allowed):
            errors.append(FieldError(key, "Must be true or false."))
    errors += _check_counts(asked) + _check_characters(asked) + _check_choices(asked)
    if not _is_text_list(asked.get("missing_codes", [])):
        errors.append(FieldError("missing_codes", "Must be a list of texts."))
    for key, fits, message in _BY_COLUMN:
        errors += _check_map(key, asked.get(key, {}), fits, message)
    return (*errors, *_check_labels(asked), *_check_schema(asked.get("schema", {})))


def _check_counts(asked: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    for key, most in _COUNTS.items():
        value = asked.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            errors.append(FieldError(key, f"Must be a whole number from 0 to {most}."))
    return errors


def _check_characters(asked: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    for key, empty_allowed in (("delimiter", False), ("quote", True)):
        value = asked.get(key)
        if isinstance(value, str) and (len(value) > 1 or value in ("\n", "\r") or not (value or empty_allowed)):
            errors.append(FieldError(key, "Must be one character."))
    if not errors and asked.get("delimiter") and asked.get("delimiter") == asked.get("quote"):
        errors.append(FieldError("quote", "Must be another character than the delimiter."))
    encoding = asked.get("encoding")
    if isinstance(encoding, str) and not _is_encoding(encoding):
        errors.append(FieldError("encoding", "This encoding is not known. Use a name such as utf-8, cp1252 or utf-16."))
    return errors


def _is_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name)._is_text_encoding) and "a\n".encode(name) != b""
    except (LookupError, UnicodeError, ValueError):
        return False


def _check_choices(asked: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    if isinstance(asked.get("decimal"), str) and asked["decimal"] not in (".", ","):
        errors.append(FieldError("decimal", "Must be . or , as the sign before the decimals."))
    if isinstance(asked.get("ragged_rows"), str) and asked["ragged_rows"] not in ("refuse", "leave out"):
        errors.append(FieldError("ragged_rows", "Must be refuse or leave out."))
    return errors


def _check_map(key: str, value: Any, fits: Callable[[Any], bool], message: str) -> list[FieldError]:
    if not isinstance(value, Mapping):
        return [FieldError(key, message)]
    return [FieldError(f"{key}.{name}", message) for name, inner in value.items() if not fits(inner)]


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


_BY_COLUMN: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("types", lambda value: value in ("number", "category"), "Must give number or category by column name."),
    ("merges", _is_text_map, "Must give, by column name, the text that replaces each spelling."),
    ("missing", _is_text_list, "Must give, by column name, the list of texts that are missing there."),
    ("test_file_ends", lambda value: isinstance(value, str), "Must give, by column name, the end to take off."),
)


def _check_labels(asked: Mapping[str, Any]) -> list[FieldError]:
    labels = asked.get("labels", {})
    if not isinstance(labels, Mapping) or any(key not in ("columns", "values") for key in labels):
        return [FieldError("labels", "Must hold columns and values.")]
    values = labels.get("values", {})
    errors = []
    if not _is_text_map(labels.get("columns", {})):
        errors.append(FieldError("labels.columns", "Must give a text by column name."))
    if not isinstance(values, Mapping) or not all(_is_text_map(value) for value in values.values()):
        errors.append(FieldError("labels.values", "Must give, by column name, a text by value."))
    return errors


def _check_schema(schema: Any) -> list[FieldError]:
    """Declared bounds and category lists, by column name: ``{low, high}`` or ``{categories, other}``, and ``source``."""
    if not isinstance(schema, Mapping):
        return [FieldError("schema", "Must give bounds or a category list by column name.")]
    errors = []
    for name, entry in schema.items():
        problem = _schema_problem(entry)
        if problem is not None:
            field, message = problem
            errors.append(FieldError(f"schema.{name}{field}", message))
    return errors


def _schema_problem(entry: Any) -> tuple[str, str] | None:
    if not isinstance(entry, Mapping) or any(key not in _OF_SCHEMA for key in entry):
        return "", "Must hold low, high and transform, or categories and other, and source."
    if entry.get("transform", "linear") not in ("linear", "log1p"):
        return ".transform", "Must be linear or log1p."
    if entry.get("source", PUBLIC) not in (PUBLIC, READ_FROM_DATA):
        return ".source", f"Must be {PUBLIC} or {READ_FROM_DATA}."
    low, high = entry.get("low"), entry.get("high")
    if (low is None) != (high is None):
        return ".high" if high is None else ".low", "Give both bounds."
    if low is not None and not (is_number(low) and is_number(high) and low < high):
        return ".high", "Must be a number above the lower bound."
    categories = entry.get("categories")
    if categories is not None and (not _is_text_list(categories) or len({*categories}) < len(categories)):
        return ".categories", "Must be a list of different texts."
    if not isinstance(entry.get("other", True), bool):
        return ".other", "Must be true or false."
    return None


def require_reading(asked: Mapping[str, Any]) -> None:
    """Raise TableProblem if the wished reading cannot be used."""
    errors = check_reading(asked)
    if errors:
        said = " ".join(f"{error.field}: {error.message}" for error in errors)
        raise TableProblem(f"The recipe cannot be used. {said}", next_step="Correct the recipe and read again.")
