"""The reading part of a recipe: which wishes are understood. Needs no numpy, so that the web can check a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worker.engine.errors import TableProblem
from worker.engine.results import FieldError

DEFAULT_MISSING_CODES = ("", "?")
"""Cells that are missing unless told otherwise. ``NA``, ``None``, ``null`` are names that occur: they stay values."""

_TEXTS = ("format", "encoding", "delimiter", "quote")
_FLAGS = ("header", "trim_spaces")
_KNOWN = (*_TEXTS, *_FLAGS, "missing_codes", "types", "labels", "merges", "notes")


def check_reading(asked: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """Every field of a wished reading that cannot be used, as errors at the field."""
    errors = [FieldError(str(key), "This field of a recipe is not known.") for key in asked if key not in _KNOWN]
    errors += [FieldError(key, "Must be a text.") for key in _TEXTS if not isinstance(asked.get(key, ""), str)]
    errors += [
        FieldError(key, "Must be true or false.") for key in _FLAGS if not isinstance(asked.get(key, True), bool)
    ]
    errors += _check_characters(asked)
    codes = asked.get("missing_codes", [])
    if not isinstance(codes, list | tuple) or not all(isinstance(code, str) for code in codes):
        errors.append(FieldError("missing_codes", "Must be a list of texts."))
    return (*errors, *_check_types(asked.get("types", {})), *_check_merges(asked), *_check_labels(asked))


def _check_characters(asked: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    for key, empty_allowed in (("delimiter", False), ("quote", True)):
        value = asked.get(key)
        if isinstance(value, str) and (len(value) > 1 or value in ("\n", "\r") or not (value or empty_allowed)):
            errors.append(FieldError(key, "Must be one character."))
    encoding = asked.get("encoding")
    if isinstance(encoding, str) and encoding.lower() not in ("utf-8", "utf8"):
        errors.append(
            FieldError("encoding", "Only utf-8 can be read so far. Save the file as UTF-8 and upload it again.")
        )
    return errors


def _check_types(types: Any) -> list[FieldError]:
    if not isinstance(types, Mapping):
        return [FieldError("types", "Must give number or category by column name.")]
    wrong = [name for name, kind in types.items() if kind not in ("number", "category")]
    return [FieldError(f"types.{name}", "Must be number or category.") for name in wrong]


def _check_merges(asked: Mapping[str, Any]) -> list[FieldError]:
    merges = asked.get("merges", {})
    if isinstance(merges, Mapping) and all(_is_text_map(value) for value in merges.values()):
        return []
    return [FieldError("merges", "Must give, by column name, the text that replaces each spelling.")]


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


def _is_text_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


def require_reading(asked: Mapping[str, Any]) -> None:
    """Raise TableProblem if the wished reading cannot be used."""
    errors = check_reading(asked)
    if errors:
        said = " ".join(f"{error.field}: {error.message}" for error in errors)
        raise TableProblem(f"The recipe cannot be used. {said}", next_step="Correct the recipe and read again.")
