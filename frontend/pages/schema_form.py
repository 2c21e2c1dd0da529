"""The fields that declare how features are encoded: bounds of a number, the list of a category, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from worker.engine.datasets.reading import PUBLIC, READ_FROM_DATA

SOURCES = ((READ_FROM_DATA, READ_FROM_DATA), (PUBLIC, PUBLIC))
TRANSFORMS = (("linear", "linear"), ("log1p", "log(1 + x)"))


def schema_fields(
    columns: Sequence[tuple[int, Mapping[str, Any]]],
    encoding: Sequence[Mapping[str, Any]],
    declared: Mapping[str, Any],
    form: Any,
) -> list[dict[str, Any]]:
    """One entry a feature: what is in force, what is shown in the form, and what fell outside."""
    position = {column["name"]: at for at, column in columns}
    return [
        _field(position[entry["column"]], entry, declared.get(entry["column"]), form)
        for entry in encoding
        if entry["column"] in position
    ]


def _field(at: int, entry: Mapping[str, Any], declared: Mapping[str, Any] | None, form: Any) -> dict[str, Any]:
    shown = {
        "low": _number(entry["low"]),
        "high": _number(entry["high"]),
        "transform": entry["transform"],
        "list": "\n".join(entry["categories"]),
        "source": entry["source"],
    }
    posted = {key: _posted(form, f"{key}.{at}", value) for key, value in shown.items()}
    return {
        "at": at,
        "column": entry["column"],
        "kind": entry["kind"],
        "clamped": entry.get("clamped", 0),
        "in_other": entry.get("in_other", 0),
        "values": len(entry["categories"]),
        "declared": declared,
        "shown": shown,
        **posted,
    }


def _posted(form: Any, name: str, otherwise: str) -> str:
    return otherwise if form is None or form.get(name) is None else str(form.get(name)).replace("\r\n", "\n")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if float(f"{value:g}") == value else repr(value)


def schema_of(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The declarations that the fields ask for, by column name; None for a feature that is left to the data."""
    return {field["column"]: _declaration(field) for field in fields}


def _declaration(field: Mapping[str, Any]) -> dict[str, Any] | None:
    keys = ("low", "high", "transform") if field["kind"] == "number" else ("list",)
    same = all(field[key].strip() == field["shown"][key].strip() for key in (*keys, "source"))
    if same:
        return None if field["declared"] is None else dict(field["declared"])
    if field["kind"] == "number":
        if not field["low"].strip() and not field["high"].strip():
            return None
        bounds = {"low": _read(field["low"]), "high": _read(field["high"])}
        return bounds | {"transform": field["transform"], "source": field["source"]}
    listed = list(dict.fromkeys(line for line in field["list"].split("\n") if line.strip()))
    return {"categories": listed, "other": True, "source": field["source"]} if listed else None


def _read(text: str) -> Any:
    """The number, or the text itself, which the check will refuse at its field."""
    try:
        return float(text.strip().replace("\u2212", "-"))
    except ValueError:
        return text
