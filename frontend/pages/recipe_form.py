"""The form that changes how a table is read: a reading to fields, fields to the body of ``PUT recipe``, errors to fields.

A field left as it was asks for nothing: what was found out stays found out. Columns and values come from the upload and may hold
anything, so fields are named by their positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frontend.pages.schema_form import schema_fields, schema_of

MOST_COLUMNS = 120
MOST_VALUES = 12
FOUND = ""
_NONE = "none"

ENCODINGS = (
    "utf-8",
    "utf-16",
    "cp1252",
    "latin-1",
    "cp1250",
    "cp1251",
    "mac_roman",
    "shift_jis",
    "gb18030",
    "big5",
    "euc_kr",
)
DELIMITERS = (
    (",", "comma"),
    (";", "semicolon"),
    ("\t", "tab"),
    ("|", "bar"),
    (" ", "space"),
    (":", "colon"),
    ("^", "caret"),
)
QUOTES = (('"', 'double quote "'), ("'", "single quote '"), (_NONE, "nothing"))
DECIMALS = ((".", "point"), (",", "comma"))
HEADERS = (("0", "no header row"), ("1", "one header row"), ("2", "two header rows"))
TRIMS = (("yes", "always take them off"), ("no", "keep them"))
RAGGED = (("refuse", "refuse the table"), ("leave out", "leave the row out, counted"))
TYPES = (("number", "number"), ("category", "category"))

Dataset = Mapping[str, Any]


def fields(dataset: Dataset, form: Any = None) -> dict[str, Any]:
    """What the form shows: as posted, else as asked, else as found."""
    recipe, asked = dataset.get("recipe") or {}, dataset.get("asked_recipe") or {}
    columns = list(enumerate(dataset.get("columns") or []))[:MOST_COLUMNS]
    return {
        "file_fields": _file_fields(recipe, asked, form),
        "missing_codes": _posted(form, "missing_codes", "\n".join(code for code in _codes(recipe, asked) if code)),
        "column_fields": [_column_field(at, column, asked, form) for at, column in columns],
        "schema_fields": schema_fields(columns, dataset.get("encoding") or [], asked.get("schema", {}), form),
        "columns_left_out": max(0, len(dataset.get("columns") or []) - MOST_COLUMNS),
    }


def _posted(form: Any, name: str, otherwise: str) -> str:
    return otherwise if form is None or form.get(name) is None else str(form.get(name))


def _codes(recipe: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    return [str(code) for code in asked.get("missing_codes", recipe.get("missing_codes", ["", "?"]))]


def _file_fields(recipe: Mapping[str, Any], asked: Mapping[str, Any], form: Any) -> list[dict[str, Any]]:
    """One entry a field: ``name label hint options value``; without options it is a text field."""
    kind = str(recipe.get("format") or "")
    text = kind in ("", "csv")
    found = [
        _choice("encoding", "Encoding", [(one, one) for one in ENCODINGS], recipe, asked) if text else None,
        _choice("delimiter", "Between the columns", DELIMITERS, recipe, asked) if text else None,
        _choice("quote", "Around cells", QUOTES, recipe, asked) if text else None,
        _choice("decimal", "Before the decimals", DECIMALS, recipe, asked) if text else None,
        _choice("header_rows", "Header", HEADERS, recipe, asked) if text or kind == "xlsx" else None,
        _text("skip_rows", "Rows above the table", recipe, asked) if text or kind == "xlsx" else None,
        _text("footer_rows", "Rows below the table", recipe, asked) if text or kind == "xlsx" else None,
        _choice("ragged_rows", "A row of another width", RAGGED, {"ragged_rows": "refuse", **recipe}, asked)
        if text
        else None,
        _choice("trim_spaces", "Spaces around values", TRIMS, recipe, asked),
        _text("sheet", "Sheet", recipe, asked) if kind in ("", "xlsx") else None,
        _text("member", "File in the archive", recipe, asked) if not kind or recipe.get("member") else None,
    ]
    shown = [field for field in found if field is not None]
    return [field | {"value": _posted(form, field["name"], field["value"])} for field in shown]


def _choice(name: str, label: str, options: Any, recipe: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    words = dict(options)
    value = _as_option(name, asked.get(name)) if name in asked else FOUND
    known = _as_option(name, recipe.get(name))
    found = f"as found: {words.get(known, known)}" if known else "to be found out"
    found = "taken off where harmless" if name == "trim_spaces" else found
    extra = [(value, value)] if value and value not in words else []
    return {"name": name, "label": label, "value": value, "options": [(FOUND, found), *options, *extra]}


def _text(name: str, label: str, recipe: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    value = asked.get(name)
    found = recipe.get(name)
    hint = "Empty: to be found out." if found is None else f"Empty: as found, {str(found)[:60]}."
    return {"name": name, "label": label, "value": "" if value is None else str(value), "options": [], "hint": hint}


def _as_option(name: str, value: Any) -> str:
    if name == "trim_spaces":
        return {True: "yes", False: "no"}.get(value, FOUND)
    if name == "quote" and value == "":
        return _NONE
    return FOUND if value is None else str(value)


def _column_field(at: int, column: Mapping[str, Any], asked: Mapping[str, Any], form: Any) -> dict[str, Any]:
    name = column["name"]
    taken = [entry["value"] for entry in column.get("missing_codes") or [] if entry["value"] not in _everywhere(asked)]
    codes = [entry for entry in column.get("missing_codes") or [] if entry["value"] in taken] + list(
        column.get("suspects") or []
    )
    ticked = None if form is None else {str(value) for value in form.getlist(f"missing.{at}")}
    values = [entry for entry in column.get("values") or [] if column["distinct"] <= MOST_VALUES]
    labels = asked.get("labels", {})
    shown_values = labels.get("values", {}).get(name, {})
    return {
        "at": at,
        "name": name,
        "type": column["type"],
        "chosen_type": _posted(form, f"type.{at}", asked.get("types", {}).get(name, FOUND)),
        "as_number": column.get("as_number"),
        "offending": column.get("offending") or [],
        "codes": [
            entry
            | {
                "place": place,
                "found": entry["value"] in taken,
                "ticked": entry["value"] in taken if ticked is None else str(place) in ticked,
            }
            for place, entry in enumerate(codes)
        ],
        "merges": _merge_choices(at, column, asked.get("merges", {}).get(name, {}), form),
        "label": _posted(form, f"label.{at}", labels.get("columns", {}).get(name, "")),
        "values": [
            entry
            | {"place": place, "given": _posted(form, f"value.{at}.{place}", shown_values.get(entry["value"], ""))}
            for place, entry in enumerate(values)
        ],
    }


def _everywhere(asked: Mapping[str, Any]) -> list[str]:
    return [str(code).strip() for code in asked.get("missing_codes", ["", "?"])]


def _merge_choices(at: int, column: Mapping[str, Any], merged: Mapping[str, str], form: Any) -> list[dict[str, Any]]:
    """The merges in force and those proposed, each with what it would join: ``into spellings place ticked``."""
    ticked = None if form is None else {str(value) for value in form.getlist(f"merge.{at}")}
    in_force: dict[str, list[str]] = {}
    for spelling, into in merged.items():
        in_force.setdefault(into, []).append(spelling)
    choices = [
        {"into": into, "spellings": [{"value": value, "count": None} for value in values], "count": None, "force": True}
        for into, values in in_force.items()
    ]
    choices += [dict(merge) | {"force": False} for merge in column.get("merges") or []]
    return [
        choice | {"place": place, "ticked": choice["force"] if ticked is None else str(place) in ticked}
        for place, choice in enumerate(choices)
    ]


# -- back to a body ---------------------------------------------------------------------------------------------------


def body_of(form: Any, dataset: Dataset) -> dict[str, Any]:
    """The body of ``PUT recipe`` that a filled form asks for; null takes an earlier wish back."""
    asked = dataset.get("asked_recipe") or {}
    shown = fields(dataset, form)
    body: dict[str, Any] = {field["name"]: _value(field["name"], field["value"]) for field in shown["file_fields"]}
    if "header_rows" in body:
        body["header"] = None if body["header_rows"] is None else body["header_rows"] != 0
    codes = ["", *dict.fromkeys(line.strip() for line in shown["missing_codes"].splitlines() if line.strip())]
    body["missing_codes"] = codes if sorted(codes) != sorted(["", "?"]) or "missing_codes" in asked else None
    columns = shown["column_fields"]
    body["types"] = _with(asked, "types", {c["name"]: c["chosen_type"] or None for c in columns})
    body["missing"] = _with(asked, "missing", {c["name"]: _ticked_codes(c, asked) for c in columns})
    body["merges"] = _with(asked, "merges", {c["name"]: _ticked_merges(c) or None for c in columns})
    body["labels"] = _labels(columns, asked.get("labels", {}))
    body["schema"] = _with(asked, "schema", schema_of(shown["schema_fields"]))
    return body


def _value(name: str, text: str) -> Any:
    text = text if name == "delimiter" else text.strip()
    if text == FOUND:
        return None
    if name in ("header_rows", "skip_rows", "footer_rows"):
        return int(text) if text.isdecimal() and len(text) < 6 else text
    if name == "trim_spaces":
        return text == "yes"
    return "" if name == "quote" and text == _NONE else text


def _with(asked: Mapping[str, Any], key: str, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The wishes about columns that the form does not show, and those that it gives."""
    merged = {**asked.get(key, {}), **changes}
    return {name: value for name, value in merged.items() if value is not None} or None


def _ticked_codes(column: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str] | None:
    """The codes of a column if they differ from what was found, or were asked for before."""
    chosen = [code["value"] for code in column["codes"] if code["ticked"]]
    before = asked.get("missing", {}).get(column["name"])
    taken = set(before) if before is not None else None
    if before is None and not column["codes"]:
        return None
    if taken is not None:  # codes that no cell holds any more were asked for all the same
        listed = {code["value"] for code in column["codes"]}
        wanted = [*dict.fromkeys([*chosen, *(code for code in before if code not in listed)])]
        return list(before) if set(wanted) == set(before) else wanted
    found = {code["value"] for code in column["codes"] if code["found"]}
    return None if set(chosen) == found else chosen


def _ticked_merges(column: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for merge in column["merges"]:
        if merge["ticked"]:
            found |= {entry["value"]: merge["into"] for entry in merge["spellings"] if entry["value"] != merge["into"]}
    return {spelling: found.get(into, into) for spelling, into in found.items()}


def _labels(columns: list[dict[str, Any]], before: Mapping[str, Any]) -> dict[str, Any] | None:
    names = {**before.get("columns", {}), **{column["name"]: column["label"].strip() for column in columns}}
    values = {name: dict(given) for name, given in before.get("values", {}).items()}
    for column in columns:
        for entry in column["values"]:
            values.setdefault(column["name"], {})[entry["value"]] = entry["given"].strip()
    kept = {name: {value: label for value, label in given.items() if label} for name, given in values.items()}
    found = {
        "columns": {name: label for name, label in names.items() if label},
        "values": {name: given for name, given in kept.items() if given},
    }
    return found if found["columns"] or found["values"] or before else None


def field_errors(errors: Any, dataset: Dataset) -> tuple[dict[str, str], list[str]]:
    """Errors of a body by the form's own field names, and those that belong to no field."""
    position = {column["name"]: at for at, column in enumerate(dataset.get("columns") or [])}
    placed: dict[str, str] = {}
    stray: list[str] = []
    for error in errors:
        path, message = str(error.get("field", "")), str(error.get("message", ""))
        key, _, rest = path.partition(".")
        name, _, part = rest.rpartition(".") if key == "schema" else (rest, "", "")
        if key == "schema" and name in position:
            placed.setdefault(f"{'list' if part == 'categories' else part}.{position[name]}", message)
        elif key == "types" and rest in position:
            placed.setdefault(f"type.{position[rest]}", message)
        elif not rest and key:
            placed.setdefault(key, message)
        else:
            stray.append(message)
    return placed, stray
