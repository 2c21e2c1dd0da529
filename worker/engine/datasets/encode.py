"""From a table to numbers to train on, by declared bounds and category lists.

Numbers go to [-1, 1] by their bounds and are clamped; a missing number is the midpoint 0 and sets an indicator column.
A number that is never negative, has more than ten different values and reaches ten (and ten times the median of those above its
lowest) is heavy-tailed (capital gains, payments) and goes through log(1 + x - low) first. A category becomes one column a value.

Bounds and lists that the recipe declares are taken as they are, each "public" or "read from the data" as declared. All others are
taken from the training part ("read from the data"): they are not accounted for, and the claim says so. A value outside its
bounds is clamped; one that the list lacks sets ``other`` where there is one, else no column. Both are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.groups import group_members, protected_values
from worker.engine.datasets.labels import label_rows
from worker.engine.datasets.reading import PUBLIC, READ_FROM_DATA
from worker.engine.datasets.role_set import Roles
from worker.engine.datasets.table import Column, Table
from worker.engine.results import EVERYONE, PARTS, EncodedData, GroupRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CATEGORIES = 50
_TAIL = 10.0
_TRAIN = PARTS.index("train")
Entry = Mapping[str, Any]


def make_encoding(
    table: Table, roles: Roles, parts: NDArray[np.int8], declared: Mapping[str, Entry] | None = None
) -> dict[str, Any]:
    """Bounds and category lists of every feature: the recipe's encoding as JSON.

    ``declared`` gives some of them by column name (``low high transform`` or ``categories other``, and ``source``); the rest
    comes from the rows of the training part. ``clamped`` and ``in_other`` count the cells outside, over all parts.
    """
    train, kept = table.take(parts == _TRAIN), table.take(parts >= 0)
    columns = []
    for name in roles.features:
        entry = _declare(_entry(train.column(name)), (declared or {}).get(name, {}))
        columns.append(entry | _outside(kept.column(name), entry))
    return {"columns": columns}


def _declare(entry: dict[str, Any], declared: Entry) -> dict[str, Any]:
    """An entry with what is declared in place of what was read. A public one has an indicator whatever the data hold."""
    given: dict[str, Any] = {}
    if entry["kind"] == "number" and declared.get("low") is not None:
        given = {"low": float(declared["low"]), "high": float(declared["high"])}
        given["transform"] = declared.get("transform", "linear")
    elif entry["kind"] == "category" and declared.get("categories") is not None:
        given = {"categories": list(declared["categories"]), "other": bool(declared.get("other", True))}
    if not given:
        return entry
    source = declared.get("source", READ_FROM_DATA)
    return entry | given | {"source": source, "indicator": entry["indicator"] or source == PUBLIC}


def _outside(column: Column, entry: Entry) -> dict[str, int]:
    """How many cells lie outside the bounds, or outside the list."""
    if column.numbers is not None:
        outside = (column.numbers < entry["low"]) | (column.numbers > entry["high"])
        return {"clamped": int(outside.sum()), "in_other": 0}
    known = {*entry["categories"]}
    unknown = [place for place, text in enumerate(column.categories) if text not in known]
    return {"clamped": 0, "in_other": int(np.isin(column.filled_codes(), unknown).sum())}


def _entry(column: Column) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "column": column.name,
        "kind": column.kind,
        "low": None,
        "high": None,
        "transform": "linear",
        "categories": [],
        "indicator": bool(column.missing().any()),
        "other": False,
        "source": READ_FROM_DATA,
    }
    return entry | (_category_entry(column) if column.numbers is None else _number_entry(column.numbers))


def _number_entry(numbers: NDArray[np.float64]) -> dict[str, Any]:
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return {"low": 0.0, "high": 0.0}
    low, high = float(present.min()), float(present.max())
    above = present[present > low] - low
    heavy = low >= 0 and len(np.unique(above)) >= _TAIL and high - low > _TAIL * max(1.0, float(np.median(above)))
    return {"low": low, "high": high, "transform": "log1p" if heavy else "linear"}


def _category_entry(column: Column) -> dict[str, Any]:
    codes = column.filled_codes()
    counts = np.bincount(codes[codes >= 0], minlength=len(column.categories))
    order = [int(code) for code in np.lexsort((np.arange(len(counts)), -counts)) if counts[code]]
    kept = sorted(order[:MOST_CATEGORIES])
    return {"categories": [column.categories[code] for code in kept], "other": len(order) > MOST_CATEGORIES}


def encode(
    table: Table, roles: Roles, parts: NDArray[np.int8], encoding: Mapping[str, Any], group_keys: Sequence[str]
) -> EncodedData:
    """The rows that have a target, as numbers. A group key that no row has any more is a group without members.

    ``group_keys`` gives the order of the groups; everyone is first whether named or not.
    """
    kept = parts >= 0
    table, labels = table.take(kept), label_rows(table, roles.target)
    features, names = encode_features(table, encoding["columns"])
    units, universe = _units(table, roles)
    training_groups, training_group_count = _training_groups(table, roles)
    return EncodedData(
        features=features,
        labels=labels.labels[kept],
        classes=len(labels.names),
        parts=parts[kept],
        row_ids=table.row_ids,
        unit_ids=units,
        universe=universe,
        groups=_groups(table, roles, group_keys),
        feature_names=names,
        training_groups=training_groups,
        training_group_count=training_group_count,
    )


def encode_features(table: Table, entries: Sequence[Entry]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Float32, shape (n, d), and the d names. Each row's numbers depend on that row and the entries alone."""
    blocks: list[NDArray[np.float32]] = []
    names: list[str] = []
    for entry in entries:
        column = table.column(entry["column"])
        values, titles = _encode_number(column, entry) if entry["kind"] == "number" else _encode_category(column, entry)
        blocks.append(values)
        names += titles
    return np.ascontiguousarray(np.concatenate(blocks, axis=1)), tuple(names)


def _encode_number(column: Column, entry: Entry) -> tuple[NDArray[np.float32], list[str]]:
    if column.numbers is None:
        raise TypeError(f"Column {column.name} holds no numbers.")
    low, high = float(entry["low"]), float(entry["high"])
    values, span = np.clip(column.numbers, low, high) - low, high - low
    if entry["transform"] == "log1p":
        values, span = np.log1p(values), float(np.log1p(span))
    scaled = 2.0 * values / span - 1.0 if span > 0 else np.zeros_like(values)
    scaled = np.where(column.missing(), 0.0, scaled)
    return _with_indicator([scaled], [column.name], column, entry)


def _encode_category(column: Column, entry: Entry) -> tuple[NDArray[np.float32], list[str]]:
    texts = column.as_category()
    place = {text: position for position, text in enumerate(entry["categories"])}
    lookup = np.array([place.get(text, len(place)) for text in texts.categories] + [-1])
    codes = lookup[texts.filled_codes()]
    width = len(place) + bool(entry.get("other"))
    columns = [codes == position for position in range(width)]
    titles = [f"{column.name}={text}" for text in entry["categories"]]
    titles += [f"{column.name} (other)"] if width > len(place) else []
    return _with_indicator(columns, titles, column, entry)


def _with_indicator(
    columns: list[Any], titles: list[str], column: Column, entry: Entry
) -> tuple[NDArray[np.float32], list[str]]:
    if entry["indicator"]:
        columns = [*columns, column.missing()]
        titles = [*titles, f"{column.name} (missing)"]
    if not columns:
        return np.zeros((len(column.missing()), 0), dtype=np.float32), []
    return np.stack(columns, axis=1).astype(np.float32), titles


def _units(table: Table, roles: Roles) -> tuple[NDArray[np.int64], int]:
    """Unit ids and their universe: the row id, or the first row id of the person.

    A person's number does not depend on which other persons are there. The universe is the next power of two above the
    largest row id, at least 1024, so that a row more or less seldom changes it.
    """
    universe = 1024
    while universe <= int(table.row_ids.max(initial=0)):
        universe *= 2
    if roles.person_id is None:
        return table.row_ids, universe
    codes = table.column(roles.person_id).as_category().filled_codes()
    first = np.full(int(codes.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, codes, table.row_ids)
    return first[codes], universe


def training_column(roles: Roles) -> str | None:
    """The protected column whose values are the groups that some methods look at while they train: the first."""
    return roles.protected[0] if roles.protected else None


def _training_groups(table: Table, roles: Roles) -> tuple[NDArray[np.int64], int]:
    """Each row's value of that column as a number, in the order of the values' first row ids, and how many there are.

    So neither the names of the values nor the order of the rows change what a method does.
    """
    name = training_column(roles)
    if name is None:
        return np.zeros(len(table), dtype=np.int64), 1
    codes = protected_values(table.column(name), roles.cuts.get(name)).filled_codes()
    kept, position = np.unique(codes, return_inverse=True)
    first = np.full(len(kept), np.iinfo(np.int64).max)
    np.minimum.at(first, position, table.row_ids)
    place = np.empty(len(kept), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(kept))
    return place[position], max(1, len(kept))


def _groups(table: Table, roles: Roles, group_keys: Sequence[str]) -> tuple[GroupRows, ...]:
    members = {group.key: group.member for group in group_members(table, roles)}
    missing = [key for key in group_keys if key not in members and key != EVERYONE]
    for key in missing:
        members[key] = np.zeros(len(table), dtype=np.bool_)
    ordered = [EVERYONE, *(key for key in group_keys if key != EVERYONE)]
    return tuple(GroupRows(key, members[key]) for key in ordered)


def summary(data: EncodedData, table: Table, roles: Roles, encoding: Mapping[str, Any]) -> dict[str, Any]:
    """What an audit needs to know of a recipe before it starts: units, rows per part, features, classes, base rate."""
    train = data.parts == _TRAIN
    names = label_rows(table, roles.target).names
    rows = {part: int((data.parts == place).sum()) for place, part in enumerate(PARTS)}
    entries = encoding["columns"]
    return {
        "bounds": {
            "public": [entry["column"] for entry in entries if entry["source"] == PUBLIC],
            "read_from_data": [entry["column"] for entry in entries if entry["source"] != PUBLIC],
        },
        "units": len(np.unique(data.unit_ids[train])),
        "unit": "row" if roles.person_id is None else "person",
        **rows,
        "features": data.features.shape[1],
        "classes": data.classes,
        "class_names": list(names),
        "left_out": len(table) - len(data.labels),
        "positive": {"name": names[1], "rate": float(np.mean(data.labels == 1))},
        "training_groups": {"column": training_column(roles), "count": data.training_group_count},
    }
