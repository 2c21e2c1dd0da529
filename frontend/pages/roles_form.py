"""The form that gives columns their roles: a profile to fields, fields to the body of ``PUT roles``, errors to fields.

Column names come from the upload and may hold anything; fields are therefore named by the column's position.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from frontend.pages.words import figure
from worker.engine.datasets.role_set import needs_cuts, suggest_roles

ROLE_CHOICES = (
    ("feature", "feature"),
    ("protected", "protected"),
    ("both", "protected and feature"),
    ("target", "target"),
    ("person_id", "person id"),
    ("weight", "weight"),
    ("ignored", "ignored"),
)
MOST_CLASSES_SHOWN = 50
MOST_PAIRS = 10
MOST_TRIPLES = 4

Form = Mapping[str, Any]
Profile = Mapping[str, Any]


def body_of(form: Any, profile: Profile) -> dict[str, Any]:
    """The body that a filled form asks for. ``form`` is the parsed form with ``get`` and ``getlist``."""
    columns = profile["columns"]
    role_at = {at: str(form.get(f"role.{at}") or "ignored") for at in range(len(columns))}

    def named(*roles: str) -> list[str]:
        return [columns[at]["name"] for at, role in role_at.items() if role in roles]

    protected = named("protected", "both")
    targets = named("target")
    return {
        "target": _target(form, columns, targets),
        "protected": protected,
        "features": named("feature", "both"),
        "ignored": named("ignored"),
        "person_id": next(iter(named("person_id")), None),
        "weight": next(iter(named("weight")), None),
        "cuts": _cuts(form, columns, protected),
        "intersections": [names for names in _pairs(form, columns) if set(names) <= set(protected)],
    }


def many_of_one(form: Any, profile: Profile) -> dict[str, str]:
    """Errors of a form that names two columns where only one can be: at every such column."""
    errors: dict[str, str] = {}
    for role, words in (("target", "targets"), ("person_id", "person ids"), ("weight", "weights")):
        found = [at for at in range(len(profile["columns"])) if form.get(f"role.{at}") == role]
        if len(found) > 1:
            errors |= {f"role.{at}": f"There are {len(found)} {words}; only one column can be it." for at in found}
    return errors


def _target(form: Any, columns: list[Any], targets: list[str]) -> dict[str, Any] | None:
    if not targets:
        return None
    target: dict[str, Any] = {"column": targets[0]}
    kind = target_kind(next(column for column in columns if column["name"] == targets[0]))
    given = str(form.get(kind) or "").strip() if kind == "threshold" else form.get(kind)
    if given:
        target[kind] = _number(given) if kind == "threshold" else given
    return target


def target_kind(column: Mapping[str, Any]) -> str:
    """Which of the three ways turns this column into outcomes."""
    if column["distinct"] <= 2:
        return "favourable"
    if column["type"] == "number" and column["distinct"] > MOST_CLASSES_SHOWN:
        return "threshold"
    return "one_vs_rest"


def _cuts(form: Any, columns: list[Any], protected: list[str]) -> dict[str, list[Any]]:
    found = {}
    for at, column in enumerate(columns):
        text = str(form.get(f"cuts.{at}") or "").strip()
        if text and column["name"] in protected:
            found[column["name"]] = [_number(piece) for piece in re.split(r"[\s,;]+", text) if piece]
    return found


def _pairs(form: Any, columns: list[Any]) -> list[list[str]]:
    names = []
    for value in form.getlist("intersections"):
        positions = [int(piece) for piece in str(value).split("x") if piece.isdecimal() and len(piece) < 6]
        if len(positions) > 1 and all(at < len(columns) for at in positions):
            names.append([columns[at]["name"] for at in positions])
    return names


def _number(text: str) -> Any:
    """The number, or the text itself, which the check will refuse at its field."""
    try:
        return float(str(text).replace("\u2212", "-"))
    except ValueError:
        return text


def field_errors(errors: Any, body: Mapping[str, Any], profile: Profile) -> tuple[dict[str, str], list[str]]:
    """Errors of a body by the form's own field names, and those that belong to no field."""
    position = {column["name"]: at for at, column in enumerate(profile["columns"])}
    placed: dict[str, str] = {}
    stray: list[str] = []
    for error in errors:
        name = _field_name(str(error.get("field", "")), body, position)
        message = str(error.get("message", ""))
        if name:
            placed.setdefault(name, message)
        else:
            stray.append(message)
    return placed, stray


def _field_name(path: str, body: Mapping[str, Any], position: Mapping[str, int]) -> str | None:
    target = str((body.get("target") or {}).get("column"))
    if path == "target.column" and target in position:
        return f"role.{position[target]}"
    if path.startswith("target."):
        return path.partition(".")[2] if target in position else "target"
    if path.startswith("cuts."):
        at = position.get(path[len("cuts.") :])
        return None if at is None else f"cuts.{at}"
    if path in ("person_id", "weight") and body.get(path) in position:
        return f"role.{position[str(body[path])]}"
    found = re.fullmatch(r"(protected|features|ignored)\[(\d+)\]", path)
    if found and int(found[2]) < len(body.get(found[1], [])):
        return f"role.{position[body[found[1]][int(found[2])]]}"
    if path.startswith("intersections"):
        return "intersections"
    return path if path in ("target", "protected", "features", "cuts") else None


def fields(
    profile: Profile, roles: Mapping[str, Any] | None, suggested: Mapping[str, Any] | None, form: Any = None
) -> dict[str, Any]:
    """What the form shows: as posted, else the roles as they are, else those suggested, else the guesses."""
    chosen = body_of(form, profile) if form is not None else dict(roles or _whole(suggested, profile))
    role_of = _role_of(chosen, profile) if form is None else _posted(form, profile)
    columns = [
        {
            **column,
            "role": role_of[at],
            "sample": _sample(column),
            "reason": _reason(column, role_of[at], suggested if roles is None else None, posted=form is not None),
        }
        for at, column in enumerate(profile["columns"])
    ]
    return {
        "columns": columns,
        "target": _target_field(columns, chosen, form),
        "cuts": _cut_fields(columns, chosen, form),
        "pairs": _pair_fields(columns, chosen),
        "role_choices": ROLE_CHOICES,
        "reasons": any(column["reason"] for column in columns),
    }


def _reason(column: Mapping[str, Any], role: str, suggested: Mapping[str, Any] | None, *, posted: bool) -> str:
    """Why a role stands in the form: the guess's reason, unless the suggestion went another way."""
    guessed = str(column.get("role") or "").replace(" ", "_")
    if role == guessed or suggested is None:
        return str(column.get("reason") or "")
    return "Chosen here." if posted else "Suggested for this table."


def _whole(suggested: Mapping[str, Any] | None, profile: Profile) -> dict[str, Any]:
    """A suggestion that may leave things out, filled up with the guesses of the profile."""
    guessed = suggest_roles(profile)
    if not suggested:
        return guessed
    taken = {(suggested.get("target") or {}).get("column"), *suggested.get("protected", ())}
    features = [column["name"] for column in profile["columns"] if column["role"] in ("feature", "protected", "target")]
    cuts = {name: cut for name, cut in guessed["cuts"].items() if name in suggested.get("protected", ())}
    filled = {**guessed, "features": [name for name in features if name not in taken], "cuts": cuts}
    return {**filled, **{key: value for key, value in suggested.items() if value is not None}}


def _posted(form: Any, profile: Profile) -> list[str]:
    known = {key for key, _ in ROLE_CHOICES}
    asked = [str(form.get(f"role.{at}")) for at in range(len(profile["columns"]))]
    return [role if role in known else "ignored" for role in asked]


def _role_of(chosen: Mapping[str, Any], profile: Profile) -> list[str]:
    target = (chosen.get("target") or {}).get("column")
    protected, features = set(chosen.get("protected") or ()), set(chosen.get("features") or ())
    found = []
    for column in profile["columns"]:
        name = column["name"]
        if name == target:
            found.append("target")
        elif name in protected:
            found.append("both" if name in features else "protected")
        elif name in features:
            found.append("feature")
        elif name == chosen.get("person_id"):
            found.append("person_id")
        else:
            found.append("weight" if name == chosen.get("weight") else "ignored")
    return found


def _sample(column: Mapping[str, Any]) -> str:
    """A few values of a category, or the range of a number."""
    if column["type"] == "number" and column["low"] is not None:
        return f"{figure(column['low'])} to {figure(column['high'])}"
    shown = [str(entry.get("label") or entry["value"])[:30] or "(empty)" for entry in column["values"][:4]]
    return ", ".join(shown) + (", …" if column["distinct"] > 4 else "")


def _target_field(columns: list[dict[str, Any]], chosen: Mapping[str, Any], form: Any) -> dict[str, Any] | None:
    column = next((column for column in columns if column["role"] == "target"), None)
    if column is None:
        return None
    target = chosen.get("target") or {}
    given = next((key for key in ("favourable", "one_vs_rest", "threshold") if target.get(key) is not None), None)
    kind = target_kind(column) if form is not None or given is None else given
    value = target.get(kind)
    choices = [(str(entry["value"]), str(entry.get("label") or entry["value"])) for entry in column["values"]]
    if value is None and kind != "threshold" and form is not None:
        guess = (suggest_roles({"columns": [{**column, "role": "target"}]}).get("target") or {}).get("favourable")
        value = guess
    shown = f"{value:g}" if isinstance(value, float) else ("" if value is None else str(value))
    label = str(column.get("label") or column["name"])
    return {
        "kind": kind,
        "label": label,
        "choices": choices,
        "chosen": shown,
        "low": column["low"],
        "high": column["high"],
    }


def _cut_fields(columns: list[dict[str, Any]], chosen: Mapping[str, Any], form: Any) -> list[dict[str, Any]]:
    found = []
    cuts = chosen.get("cuts") or {}
    for at, column in enumerate(columns):
        if column["role"] not in ("protected", "both") or column["type"] != "number":
            continue
        given = cuts.get(column["name"])
        if not given and not needs_cuts(column):
            continue
        if given is None and (form is None or form.get(f"cuts.{at}") is None):
            given = suggest_roles({"columns": [{**column, "role": "protected"}]})["cuts"].get(column["name"], [])
        value = " ".join(f"{cut:g}" if isinstance(cut, int | float) else str(cut) for cut in given or [])
        label = str(column.get("label") or column["name"])
        found.append({"position": at, "label": label, "value": value, "low": column["low"], "high": column["high"]})
    return found


def _pair_fields(columns: list[dict[str, Any]], chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Combinations that can be ticked: pairs and triples of protected columns, and whatever was asked for already."""
    protected = [at for at, column in enumerate(columns) if column["role"] in ("protected", "both")]
    wanted = [frozenset(names) for names in chosen.get("intersections") or ()]
    position = {column["name"]: at for at, column in enumerate(columns)}
    offered: list[tuple[int, ...]] = [*list(combinations(protected, 2))[:MOST_PAIRS]]
    offered += list(combinations(protected, 3))[:MOST_TRIPLES]
    offered += [
        asked
        for names in chosen.get("intersections") or ()
        if (asked := tuple(sorted(position[name] for name in names))) not in offered
    ]
    found = []
    for pair in offered:
        names = [columns[at]["name"] for at in pair]
        label = " × ".join(str(columns[at].get("label") or columns[at]["name"]) for at in pair)
        found.append({"value": "x".join(map(str, pair)), "label": label, "chosen": frozenset(names) in wanted})
    return found
