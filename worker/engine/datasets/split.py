"""The one split of a recipe: train, validation and test by a keyed hash of the row id, or of the person.

A row's part depends on the dataset's id and on the row (or person) alone: inserting or removing a row moves no other.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.datasets.labels import label_rows
from worker.engine.datasets.role_set import Roles
from worker.engine.datasets.table import Table
from worker.engine.errors import TableProblem
from worker.engine.results import PARTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRAIN_SHARE, VALIDATION_SHARE = 0.6, 0.2
TRAIN_SHARE_WITH_TEST_FILE = 0.75
LEFT_OUT = -1
"""Part of a row without a target."""
_TRAIN, _VALIDATION, _TEST = (PARTS.index(part) for part in ("train", "validation", "test"))


def assign_parts(table: Table, roles: Roles, dataset_id: str) -> NDArray[np.int8]:
    """Int8, shape (n,): the position in ``PARTS`` of each row's part, or -1 for a row without a target.

    60/20/20; with a test file its rows are the test part and the others go 75/25 to train and validation. All rows of a
    person are in one part. Raises TableProblem if a person occurs in both files, or a part would be empty.
    """
    draws = _draws(table, roles, dataset_id)
    if table.from_test_file.any():
        _check_persons_apart(table, roles)
        parts = np.where(draws < TRAIN_SHARE_WITH_TEST_FILE, _TRAIN, _VALIDATION)
        parts = np.where(table.from_test_file, _TEST, parts)
    else:
        parts = np.where(
            draws < TRAIN_SHARE, _TRAIN, np.where(draws < TRAIN_SHARE + VALIDATION_SHARE, _VALIDATION, _TEST)
        )
    known = label_rows(table, roles.target).labels >= 0
    parts = np.where(known, parts, LEFT_OUT).astype(np.int8)
    _check_no_part_empty(parts)
    return parts


def _draws(table: Table, roles: Roles, dataset_id: str) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), one a row, equal for all rows of a person."""
    key = _hash64(dataset_id.encode(), b"split")
    if roles.person_id is None:
        return uniform(table.row_ids.astype(np.uint64), key)
    persons = table.column(roles.person_id).as_category()
    words = [_hash64(text.encode(), key.to_bytes(8, "little")) for text in persons.categories]
    return uniform(np.array(words, dtype=np.uint64)[persons.filled_codes()], key)


def _hash64(data: bytes, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "little")


def uniform(words: NDArray[np.uint64], key: int) -> NDArray[np.float64]:
    """A uniform number in [0, 1) for each 64-bit word under a 64-bit key, shape (n,)."""
    return (mixed(words, key) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mixed(words: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """A keyed hash of each 64-bit word, shape (n,): two rounds of the splitmix64 finaliser."""
    for part in (np.uint64(key), np.uint64(key ^ 0x9E3779B97F4A7C15)):
        words = _mix(words ^ part)
    return words


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _check_persons_apart(table: Table, roles: Roles) -> None:
    if roles.person_id is None:
        return
    codes = table.column(roles.person_id).as_category().filled_codes()
    both = np.intersect1d(codes[table.from_test_file], codes[~table.from_test_file])
    if len(both):
        raise TableProblem(
            f"{len(both)} persons of column {roles.person_id} have rows in both files, so the test would know them.",
            next_step="Give a test file with other persons, or upload one file and let it be split.",
            column=roles.person_id,
        )


def _check_no_part_empty(parts: NDArray[np.int8]) -> None:
    counts = [int((parts == place).sum()) for place in range(len(PARTS))]
    if min(counts) == 0:
        shown = ", ".join(f"{part} {count}" for part, count in zip(PARTS, counts, strict=True))
        raise TableProblem(
            f"There are too few rows to split: {shown}.",
            next_step="Upload a table with at least a few hundred rows that have a target.",
        )
