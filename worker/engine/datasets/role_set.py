"""The roles of the columns of a table as one record. Needs no numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from worker.engine.datasets.guess import AGE_CUTS, FEW_VALUES

MOST_GROUPS = 60
MOST_CLASSES = 20
NOT_STATED = "not stated"
"""Value of a protected attribute where the cell is missing."""

Column = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """The column to be learnt and what counts as label 1: exactly one of the three is given."""

    column: str
    favourable: str | None = None
    one_vs_rest: str | None = None
    threshold: float | None = None


@dataclass(frozen=True)
class Roles:
    """Roles of all columns, complete: every column is in one of them, a column in protected and features is both.

    ``cuts`` turn a protected number into ranges; ``intersections`` are protected columns to be combined.
    """

    target: Target
    protected: tuple[str, ...]
    features: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    person_id: str | None = None
    weight: str | None = None
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    intersections: tuple[tuple[str, ...], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The body of ``PUT roles`` that gives these roles."""
        target = {"column": self.target.column}
        for key in ("favourable", "one_vs_rest", "threshold"):
            if getattr(self.target, key) is not None:
                target[key] = getattr(self.target, key)
        return {
            "target": target,
            "protected": list(self.protected),
            "features": list(self.features),
            "ignored": list(self.ignored),
            "person_id": self.person_id,
            "weight": self.weight,
            "cuts": {name: list(cuts) for name, cuts in self.cuts.items()},
            "intersections": [list(names) for names in self.intersections],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Roles:
        """The roles that ``to_json`` gave."""
        return cls(
            target=Target(**stored["target"]),
            protected=tuple(stored["protected"]),
            features=tuple(stored["features"]),
            ignored=tuple(stored.get("ignored", ())),
            person_id=stored.get("person_id"),
            weight=stored.get("weight"),
            cuts={name: tuple(cuts) for name, cuts in stored.get("cuts", {}).items()},
            intersections=tuple(tuple(names) for names in stored.get("intersections", ())),
        )


def suggest_roles(profile: Mapping[str, Any]) -> dict[str, Any]:
    """A body for ``PUT roles`` made from the guesses of a profile, to be shown and changed. The target may be None."""
    by_role: dict[str, list[Column]] = {}
    for column in profile["columns"]:
        by_role.setdefault(column["role"], []).append(column)
    target = by_role.get("target", [None])[0]
    protected = by_role.get("protected", [])
    return {
        "target": None if target is None else {"column": target["name"], "favourable": _likely_favourable(target)},
        "protected": [column["name"] for column in protected],
        "features": [column["name"] for column in by_role.get("feature", [])],
        "ignored": [column["name"] for column in by_role.get("ignored", [])],
        "person_id": next((column["name"] for column in by_role.get("person id", [])), None),
        "weight": next((column["name"] for column in by_role.get("weight", [])), None),
        "cuts": {column["name"]: list(AGE_CUTS) for column in protected if needs_cuts(column)},
        "intersections": [],
    }


def _likely_favourable(column: Column) -> str:
    """The value that reads like a yes; else the rarer of two."""
    for value in column["values"]:
        if value["value"].lower() in ("1", "yes", "true", "y", "good", "approved", "granted"):
            return str(value["value"])
    return str(column["values"][min(1, len(column["values"]) - 1)]["value"])


def needs_cuts(column: Column) -> bool:
    """Whether a protected column is a number with too many values to be groups as they are."""
    return bool(column["type"] == "number" and column["distinct"] > FEW_VALUES)


def range_names(cuts: tuple[float, ...]) -> tuple[str, ...]:
    """Names of the ranges that cuts make: ``under 25``, ``25 to under 60``, ``60 and over``."""
    inner = [f"{low:g} to under {high:g}" for low, high in pairwise(cuts)]
    return (f"under {cuts[0]:g}", *inner, f"{cuts[-1]:g} and over")


def is_number(value: object) -> bool:
    """A finite number that is not a truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**1000


def number_text(value: float) -> str:
    """A number as a value of a group or a target: ``1`` for 1.0, else the shortest text that reads back the same."""
    whole = int(value)
    return str(whole) if whole == value and abs(whole) < 2**53 else repr(float(value))
