"""Whether wished roles can be given to a table, judged from its profile alone: errors stand at the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from worker.engine.datasets.role_set import (
    MOST_CLASSES,
    MOST_GROUPS,
    NOT_STATED,
    Column,
    Roles,
    Target,
    is_number,
    needs_cuts,
    number_text,
    suggest_roles,
)
from worker.engine.results import FieldError

__all__ = ["MOST_CLASSES", "MOST_GROUPS", "NOT_STATED", "Roles", "Target", "check_roles", "suggest_roles"]

_KNOWN = ("target", "protected", "features", "ignored", "person_id", "weight", "cuts", "intersections")
_MOST_COMBINED = 3
LONGEST_GROUP_NAME = 200


def check_roles(body: Mapping[str, Any], profile: Mapping[str, Any]) -> tuple[Roles | None, tuple[FieldError, ...]]:
    """The roles as asked, complete; or None and every error found, each with its field (``target.column``, ``cuts.age``).

    Without ``features`` all columns that have no other role are features. Where neither features nor ignored columns are
    named, columns that the profile guessed to be identifiers, empty or survey weights are ignored: the result shows it.
    """
    return _Check(body, profile).result()


class _Check:
    def __init__(self, body: Mapping[str, Any], profile: Mapping[str, Any]) -> None:
        self.body = body
        self.columns: dict[str, Column] = {column["name"]: column for column in profile["columns"]}
        self.errors: list[FieldError] = []

    def result(self) -> tuple[Roles | None, tuple[FieldError, ...]]:
        for key in self.body:
            if key not in _KNOWN:
                self.wrong(key, "This field is not known.")
        target = self.target()
        protected = self.names("protected")
        single = {key: self.single(key) for key in ("person_id", "weight")}
        ignored = self.names("ignored")
        features = self.features(protected, ignored, single)
        cuts = self.cuts(protected)
        intersections = self.intersections(protected)
        self.check_overlaps(target, protected, features, ignored, single)
        self.check_protected(protected, cuts, intersections)
        self.check_person(single["person_id"])
        if self.errors or target is None:
            return None, tuple(self.errors)
        left = [name for name in self.columns if name not in {target.column, *protected, *features, *single.values()}]
        roles = Roles(
            target, protected, features, tuple(left), single["person_id"], single["weight"], cuts, intersections
        )
        return roles, ()

    def wrong(self, name: str, message: str) -> None:
        self.errors.append(FieldError(name, message))

    def known(self, place: str, name: object) -> bool:
        if isinstance(name, str) and name in self.columns:
            return True
        self.wrong(place, "There is no column of this name in the table. Use the names as shown.")
        return False

    def names(self, key: str) -> tuple[str, ...]:
        wanted = self.body.get(key)
        if wanted is None:
            return ()
        if not isinstance(wanted, list | tuple):
            self.wrong(key, "Must be a list of column names.")
            return ()
        found = [name for place, name in enumerate(wanted) if self.known(f"{key}[{place}]", name)]
        if len(set(found)) < len(found):
            self.wrong(key, "A column is named twice.")
        return tuple(dict.fromkeys(found))

    def single(self, key: str) -> str | None:
        name = self.body.get(key)
        return name if name is not None and self.known(key, name) else None

    def features(
        self,
        protected: tuple[str, ...],
        ignored: tuple[str, ...],
        single: Mapping[str, str | None],
    ) -> tuple[str, ...]:
        if self.body.get("features") is not None:
            return self.names("features")
        taken = {self.target_name(), *protected, *ignored, *single.values()}
        if self.body.get("ignored") is None:
            unfit = ("ignored", "weight", "person id")
            taken |= {name for name, column in self.columns.items() if column.get("role") in unfit}
        return tuple(name for name in self.columns if name not in taken)

    def target_name(self) -> str | None:
        wanted = self.body.get("target")
        name = wanted.get("column") if isinstance(wanted, Mapping) else None
        return name if isinstance(name, str) else None

    # -- the target ---------------------------------------------------------------------------------------------------

    def target(self) -> Target | None:
        wanted = self.body.get("target")
        if not isinstance(wanted, Mapping):
            self.wrong("target", "Say which column is the target and which of its values is the favourable one.")
            return None
        if not self.known("target.column", wanted.get("column")):
            return None
        column = self.columns[wanted["column"]]
        given = [key for key in ("favourable", "one_vs_rest", "threshold") if wanted.get(key) is not None]
        if column["distinct"] < 2:
            self.wrong("target.column", "The target has only one value, so there is nothing to learn. Choose another.")
        elif len(given) > 1:
            self.wrong("target", "Give one of favourable, one_vs_rest and threshold, not several.")
        elif given == ["threshold"]:
            return self.by_threshold(column, wanted["threshold"])
        elif given:
            return self.by_value(column, given[0], wanted[given[0]])
        else:
            self.wrong("target.favourable", "Say which value of the target is the favourable one.")
        return None

    def by_threshold(self, column: Column, threshold: object) -> Target | None:
        if column["type"] != "number":
            self.wrong("target.threshold", "A threshold needs a target that is a number. Name the favourable value.")
        elif not is_number(threshold):
            self.wrong("target.threshold", "Must be a finite number.")
        elif not column["low"] < float(str(threshold)) <= column["high"]:
            self.wrong("target.threshold", f"Must lie above {column['low']:g} and not above {column['high']:g}.")
        else:
            return Target(column["name"], threshold=float(str(threshold)))
        return None

    def by_value(self, column: Column, key: str, value: object) -> Target | None:
        text = number_text(float(str(value))) if is_number(value) else str(value)
        listed = {entry["value"] for entry in column["values"]}
        if text not in listed:
            shown = ", ".join(entry["value"][:40] for entry in column["values"][:5])
            self.wrong(f"target.{key}", f"This value does not occur in {column['name']}. It has: {shown}.")
        elif key == "favourable" and column["distinct"] > MOST_CLASSES:
            self.wrong(
                "target.favourable",
                f"The target has {column['distinct']} values, more than {MOST_CLASSES}. Use one_vs_rest or a threshold.",
            )
        elif column.get("only_in_test_file"):
            self.wrong(
                "target.column", "Some values occur only in the test file. Merge the spellings in the recipe first."
            )
        elif key == "favourable":
            return Target(column["name"], favourable=text)
        else:
            return Target(column["name"], one_vs_rest=text)
        return None

    # -- protected columns, cuts, intersections -----------------------------------------------------------------------

    def cuts(self, protected: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
        wanted = self.body.get("cuts") or {}
        if not isinstance(wanted, Mapping):
            self.wrong("cuts", "Must give a list of numbers by column name.")
            return {}
        return {name: cut for name, values in wanted.items() if (cut := self.cut(str(name), values, protected))}

    def cut(self, name: str, values: object, protected: tuple[str, ...]) -> tuple[float, ...] | None:
        place = f"cuts.{name}"
        if name not in self.columns:
            self.known(place, name)
        elif name not in protected:
            self.wrong(place, "Only protected columns have cuts. Make the column protected or drop its cuts.")
        elif self.columns[name]["type"] != "number":
            self.wrong(place, "Only a number can be cut into ranges.")
        elif not isinstance(values, list | tuple) or not values or not all(is_number(value) for value in values):
            self.wrong(place, "Must be a list of finite numbers.")
        elif list(values) != sorted(set(values)):
            self.wrong(place, "Must rise from one number to the next.")
        else:
            return tuple(float(value) for value in values)
        return None

    def intersections(self, protected: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        wanted = self.body.get("intersections") or []
        if not isinstance(wanted, list | tuple):
            self.wrong("intersections", "Must be a list of lists of protected columns.")
            return ()
        found = [self.intersection(place, names, protected) for place, names in enumerate(wanted)]
        chosen = [names for names in found if names]
        if len({frozenset(names) for names in chosen}) < len(chosen):
            self.wrong("intersections", "An intersection is named twice.")
        return tuple(chosen)

    def intersection(self, place: int, names: object, protected: tuple[str, ...]) -> tuple[str, ...] | None:
        where = f"intersections[{place}]"
        if (
            not isinstance(names, list | tuple)
            or not 2 <= len(names) <= _MOST_COMBINED
            or len({*map(str, names)}) < len(names)
        ):
            self.wrong(where, f"Must name two to {_MOST_COMBINED} different protected columns.")
            return None
        if any(name not in protected for name in names):
            self.wrong(where, "Only protected columns can be combined.")
            return None
        return tuple(str(name) for name in names)

    def check_protected(
        self,
        protected: tuple[str, ...],
        cuts: Mapping[str, tuple[float, ...]],
        intersections: tuple[tuple[str, ...], ...],
    ) -> None:
        if not protected and not any(error.field.startswith("protected") for error in self.errors):
            self.wrong("protected", "Name at least one protected column: costs are told per group.")
        sizes: dict[str, int] = {}
        for place, name in enumerate(protected):
            column = self.columns[name]
            if column.get("longest", 0) > LONGEST_GROUP_NAME:
                self.wrong(
                    f"protected[{place}]", f"{name} has values of {column['longest']:,} characters, too long for names."
                )
            elif column["distinct"] + (column["missing"] > 0) < 2:
                self.wrong(f"protected[{place}]", f"{name} has only one group. Choose a column with several values.")
            elif (
                name not in cuts and f"cuts.{name}" not in {error.field for error in self.errors} and needs_cuts(column)
            ):
                self.wrong(f"cuts.{name}", f"{name} is a number with {column['distinct']} values: say where to cut it.")
            values = len(cuts[name]) + 1 if name in cuts else column["distinct"]
            sizes[name] = values + (column["missing"] > 0)
        singles = 1 + sum(sizes.values())
        if singles > MOST_GROUPS:
            widest = max(protected, key=lambda name: sizes[name])
            self.wrong(
                f"protected[{protected.index(widest)}]",
                f"There would be {singles} groups, more than {MOST_GROUPS}; {widest} alone has {sizes[widest]}.",
            )
        elif singles + sum(math.prod(sizes[name] for name in names) for names in intersections) > MOST_GROUPS:
            self.wrong("intersections", f"There would be more than {MOST_GROUPS} groups. Combine fewer columns.")

    # -- everything together --------------------------------------------------------------------------------------------

    def check_overlaps(
        self,
        target: Target | None,
        protected: tuple[str, ...],
        features: tuple[str, ...],
        ignored: tuple[str, ...],
        single: Mapping[str, str | None],
    ) -> None:
        column = self.target_name()
        if column is not None and column in protected:
            self.wrong(
                "target.column", "The target is also named as protected. A column cannot be both; choose another."
            )
        apart: dict[str | None, str] = {single["person_id"]: "the person id", single["weight"]: "the weight"}
        self.overlap("features", features, {column: "the target", **apart})
        self.overlap("protected", protected, apart)
        others: dict[str | None, str] = dict.fromkeys((*protected, *features), "used elsewhere")
        self.overlap("ignored", ignored, {**others, column: "the target"})
        for key, name in single.items():
            if name is not None and name == column:
                self.wrong(key, "This column is the target.")
        if target is not None and not features and not any(e.field.startswith("features") for e in self.errors):
            self.wrong("features", "No column is left to learn from. Name at least one feature.")

    def overlap(self, key: str, names: tuple[str, ...], taken: Mapping[str | None, str]) -> None:
        for place, name in enumerate(names):
            if name in taken:
                self.wrong(f"{key}[{place}]", f"{name} is also {taken[name]}. Give it one role.")

    def check_person(self, name: str | None) -> None:
        if name is not None and self.columns[name]["missing"]:
            count = self.columns[name]["missing"]
            self.wrong("person_id", f"{count} rows do not say whose they are. Fill them in or leave those rows out.")
