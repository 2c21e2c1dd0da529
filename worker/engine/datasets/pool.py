"""The public pool: training rows whose people get no protection, so that teachers may label them (PATE).

A unit's place depends on the dataset and on the unit alone, like its part in the split. Places are counted in twentieths
of the training part when the groups are counted, so that sizes are known for every share before anything trains.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.datasets.split import uniform
from worker.engine.results import PARTS, EncodedData

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLICES = 20
PUBLIC_PART = len(PARTS)
"""Code of a row of the pool in ``EncodedData.parts``: in none of the parts that are trained on or evaluated."""


def slice_of(unit_ids: NDArray[np.int64], dataset_id: str) -> NDArray[np.int64]:
    """The twentieth of each unit, int64, shape (n,), values 0 .. 19."""
    digest = hashlib.blake2b(dataset_id.encode(), digest_size=8, key=b"pool").digest()
    draws = uniform(unit_ids.astype(np.uint64), int.from_bytes(digest, "little"))
    return (draws * SLICES).astype(np.int64)


def count_slices(data: EncodedData, dataset_id: str) -> dict[str, list[int]]:
    """How many units of the training part each twentieth holds, by group key: ``everyone`` first."""
    rows = data.parts == PARTS.index("train")
    found = {}
    for group in data.groups:
        units = np.unique(data.unit_ids[rows & group.member])
        found[group.key] = np.bincount(slice_of(units, dataset_id), minlength=SLICES).tolist()
    return found


def share_problem(share: float) -> str | None:
    """Why a share of the training part cannot be public, or None."""
    if not 0.0 <= share <= 0.5 or abs(share * SLICES - round(share * SLICES)) > 1e-9:
        return "The public share must be between 0 and 0.5, in steps of 0.05."
    return None


def units_in(slices: list[int], share: float) -> int:
    """Units of the pool, of counts by twentieth."""
    return sum(slices[: round(share * SLICES)])


def with_pool(data: EncodedData, share: float, dataset_id: str) -> EncodedData:
    """The table with the first ``share`` of the twentieths taken out of the training part into the pool."""
    if share == 0.0:
        return data
    chosen = (data.parts == PARTS.index("train")) & (slice_of(data.unit_ids, dataset_id) < round(share * SLICES))
    return replace(data, parts=np.where(chosen, PUBLIC_PART, data.parts).astype(np.int8))
