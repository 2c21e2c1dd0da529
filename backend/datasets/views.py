"""Rows of the database as the dictionaries that REST and pages show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.datasets import samples
from backend.datasets.queries import RecipeLine
from backend.tables import Dataset, Group, Recipe
from worker.engine.audits.plan import smallest_detectable
from worker.engine.audits.question import DEFAULT_SEEDS
from worker.engine.datasets.groups import group_label
from worker.engine.datasets.role_set import suggest_roles

SHOWN_OF_A_COLUMN = ("name", "label", "type", "missing", "distinct", "role", "reason", "values", "low", "high")
PROPOSED_OF_A_COLUMN = ("missing_codes", "suspects", "merges", "offending")


def line(row: Dataset, recipe: RecipeLine | None) -> dict[str, Any]:
    """A dataset in a list."""
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state,
        "sha256": row.sha256,
        "file_name": row.file_name,
        "size_bytes": row.size_bytes,
        "sample": row.sample,
        "rows": recipe.rows if recipe else None,
        "recipe_version": recipe.version if recipe else None,
        "recipe_state": recipe.state if recipe else None,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }


def full(row: Dataset, recipe: Recipe | None) -> dict[str, Any]:
    """A dataset in full. ``problem`` is the dataset's, else that of the newest recipe."""
    profile: Mapping[str, Any] = recipe.profile if recipe else {}
    short = RecipeLine(recipe.version, recipe.state, profile.get("rows")) if recipe else None
    return line(row, short) | {
        "test_file_name": row.test_file_name,
        "test_sha256": row.test_sha256,
        "columns": columns(profile, recipe.roles if recipe else None),
        "notes": _notes(recipe),
        "preview": profile.get("preview", []),
        "repeats": profile.get("repeats"),
        "encoding": ((recipe.encoding or {}) if recipe else {}).get("columns", []),
        "problem": row.problem or (recipe.problem if recipe else None),
        "recipe": recipe.reading if recipe else row.asked_recipe,
        "asked_recipe": row.asked_recipe,
        "roles": recipe.roles if recipe else None,
        "suggested_roles": _suggested(row, profile),
        "summary": recipe.summary if recipe else None,
        "receipt": row.receipt,
    }


def _notes(recipe: Recipe | None) -> list[dict[str, Any]]:
    """What was noticed on reading, and on counting the groups."""
    if recipe is None:
        return []
    return [*recipe.profile.get("notes", []), *(recipe.summary or {}).get("notes", [])]


def columns(profile: Mapping[str, Any], roles: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The columns with the roles given, or else with those guessed and why."""
    shown = [
        {key: column.get(key) for key in SHOWN_OF_A_COLUMN}
        | {key: column.get(key, []) for key in PROPOSED_OF_A_COLUMN}
        | {"as_number": column.get("as_number")}
        for column in profile.get("columns", [])
    ]
    if roles is not None:
        for column in shown:
            column["role"], column["reason"] = role_of(column["name"], roles), None
    return shown


def role_of(name: str, roles: Mapping[str, Any]) -> str:
    """The one role of a column, in the words of the screen."""
    protected, feature = name in roles["protected"], name in roles["features"]
    if protected:
        return "protected and feature" if feature else "protected"
    if name == roles["target"]["column"]:
        return "target"
    if name in (roles["person_id"], roles["weight"]):
        return "person id" if name == roles["person_id"] else "weight"
    return "feature" if feature else "ignored"


def _suggested(row: Dataset, profile: Mapping[str, Any]) -> dict[str, Any] | None:
    if not profile.get("columns"):
        return None
    sample = next((found for found in samples.SAMPLES if found.key == row.sample), None)
    return sample.roles if sample else suggest_roles(profile)


def group(row: Group, reading: Mapping[str, Any]) -> dict[str, Any]:
    """A group with its rows per part."""
    return {
        "id": row.id,
        "key": row.key,
        "label": group_label(row.attributes, reading),
        "attributes": row.attributes,
        "train": row.train,
        "validation": row.validation,
        "test": row.test,
        "base_rate": row.base_rate,
        "estimable": row.estimable,
        "reason": row.reason,
        "smallest_detectable_cost": smallest_detectable(_units(row), DEFAULT_SEEDS) if row.estimable else None,
    }


def _units(row: Group) -> int:
    """Persons of the test part, where they were counted; else its rows."""
    return row.test if row.test_units is None else row.test_units
