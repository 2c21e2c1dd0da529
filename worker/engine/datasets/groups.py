"""The groups of a table: who is in each, how many rows per part, how often label 1, and whether it can be judged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from worker.engine.datasets.labels import label_rows
from worker.engine.datasets.role_set import NOT_STATED, Roles, range_names
from worker.engine.datasets.table import MISSING, Column, Table
from worker.engine.results import EVERYONE, PARTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_PERSONS = 20
"""Under this many persons in the test part a group cannot be estimated."""


@dataclass(frozen=True)
class Thresholds:
    """Rows of the test part: withheld below, estimable from, and rows per label that a rate needs."""

    withheld_below: int = 10
    estimable_rows: int = 30
    estimable_per_label: int = 5


@dataclass(frozen=True)
class GroupCount:
    """One group with its counts; ``label_counts`` is by part, then by class number as text.

    ``test_units`` counts the persons of the test part where there is a person id, else its rows.
    ``base_rate`` is the share of class 1 among all its rows, None with a reason where the group is withheld or empty.
    """

    key: str
    label: str
    attributes: Mapping[str, str]
    train: int
    validation: int
    test: int
    label_counts: Mapping[str, Mapping[str, int]]
    base_rate: float | None
    estimable: bool
    reason: str | None
    test_units: int = 0


@dataclass(frozen=True)
class Membership:
    """A group's key, attribute values and members (bool, shape (n,))."""

    key: str
    attributes: Mapping[str, str]
    member: NDArray[np.bool_]


def group_key(attributes: Mapping[str, str]) -> str:
    """``everyone``, ``sex=Female`` or ``sex=Female&race=Black``; marks inside names and values are percent-encoded."""
    return "&".join(f"{_escape(name)}={_escape(value)}" for name, value in attributes.items()) or EVERYONE


def _escape(text: str) -> str:
    return "".join(quote(letter, safe="") if letter in "&=%" else letter for letter in text)


def group_members(table: Table, roles: Roles) -> Iterator[Membership]:
    """Every group that has a row: everyone, each value of each protected column, each combination asked for."""
    yield Membership(EVERYONE, {}, np.ones(len(table), dtype=np.bool_))
    columns = {name: protected_values(table.column(name), roles.cuts.get(name)) for name in roles.protected}
    for names in (*((name,) for name in roles.protected), *roles.intersections):
        values = [range(len(columns[name].categories)) for name in names]
        for chosen in itertools.product(*values):
            member = np.ones(len(table), dtype=np.bool_)
            for name, code in zip(names, chosen, strict=True):
                member &= columns[name].filled_codes() == code
            if member.any():
                attributes = {name: columns[name].categories[code] for name, code in zip(names, chosen, strict=True)}
                yield Membership(group_key(attributes), attributes, member)


def protected_values(column: Column, cuts: Sequence[float] | None) -> Column:
    """The group values of a protected column as categories; a missing cell is the value ``not stated``."""
    if cuts is not None and column.numbers is not None:
        codes = np.digitize(column.numbers, np.asarray(cuts)).astype(np.int32)
        column = Column(
            column.name,
            "category",
            codes=np.where(column.missing(), MISSING, codes).astype(np.int32),
            categories=range_names(tuple(cuts)),
        )
    texts = column.as_category()
    codes, categories = texts.filled_codes(), texts.categories
    if not (codes == MISSING).any():
        return texts
    if NOT_STATED not in categories:
        categories = (*categories, NOT_STATED)
    codes = np.where(codes == MISSING, categories.index(NOT_STATED), codes).astype(np.int32)
    return Column(column.name, "category", codes=codes, categories=categories)


def group_label(attributes: Mapping[str, str], reading: Mapping[str, Any]) -> str:
    """How a group is called on screen: ``everyone``, or ``sex: Female, race: Black`` with the recipe's labels."""
    labels = reading.get("labels", {})
    names, values = labels.get("columns", {}), labels.get("values", {})
    shown = [f"{names.get(n, n)}: {values.get(n, {}).get(v, v)}" for n, v in sorted(attributes.items())]
    return ", ".join(shown) or EVERYONE


def count_groups(
    table: Table, roles: Roles, parts: NDArray[np.int8], reading: Mapping[str, Any], thresholds: Thresholds
) -> list[GroupCount]:
    """All groups, everyone first. Rows without a target (part -1) are in no count."""
    labels = label_rows(table, roles.target)
    persons = None if roles.person_id is None else table.column(roles.person_id).as_category().filled_codes()
    counts = []
    for group in group_members(table, roles):
        table_counts = {
            part: _label_counts(labels.labels[group.member & (parts == place)], len(labels.names))
            for place, part in enumerate(PARTS)
        }
        test = group.member & (parts == PARTS.index("test"))
        test_persons = None if persons is None else len(np.unique(persons[test]))
        counts.append(_count(group, group_label(group.attributes, reading), table_counts, test_persons, thresholds))
    return counts


def _label_counts(labels: NDArray[np.int64], classes: int) -> dict[str, int]:
    return {str(label): int(count) for label, count in enumerate(np.bincount(labels, minlength=classes))}


def _count(
    group: Membership,
    label: str,
    counts: Mapping[str, Mapping[str, int]],
    test_persons: int | None,
    thresholds: Thresholds,
) -> GroupCount:
    rows = {part: sum(counts[part].values()) for part in PARTS}
    reason = why_not_estimable(rows["test"], thresholds, test_persons)
    total, favourable = sum(rows.values()), sum(counts[part].get("1", 0) for part in PARTS)
    shown = total >= thresholds.withheld_below
    return GroupCount(
        group.key,
        label,
        group.attributes,
        rows["train"],
        rows["validation"],
        rows["test"],
        counts,
        favourable / total if shown and total else None,
        reason is None,
        reason,
        rows["test"] if test_persons is None else test_persons,
    )


def why_not_estimable(test_rows: int, thresholds: Thresholds, test_persons: int | None = None) -> str | None:
    """Why a group cannot be judged, in a short text, or None if it can."""
    if test_rows < thresholds.withheld_below:
        return f"withheld: fewer than {thresholds.withheld_below} test rows"
    if test_rows < thresholds.estimable_rows:
        return f"{test_rows} test rows: not enough to judge, {thresholds.estimable_rows} are needed"
    if test_persons is not None and test_persons < FEWEST_PERSONS:
        return f"{test_persons} persons in the test part: not enough to judge, {FEWEST_PERSONS} are needed"
    return None
