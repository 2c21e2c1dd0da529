"""Teachers' votes: who teaches whom, noisy counts, and the labels made of them (PATE, Papernot et al. 2017 and 2018).

Sensitivity. Adding or removing one unit changes the shard of one teacher, whose votes on a query may move from one class
to another: the counts of that query move by (+1, -1), L2 length sqrt(2). So m queries with noise N(0, sigma^2) on each
count are m Gaussian releases with multiplier sigma / sqrt(2) on everyone (METHODS.md 2.8). The noisy counts are rounded
to whole votes before anybody sees them; that, the largest count (hard labels) and any projection (soft labels) are
post-processing, and rounding leaves none of the low-order bits by which floating-point noise can be told apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.datasets.split import mixed
from worker.engine.results import PrivacyEvent

if TYPE_CHECKING:
    from numpy.typing import NDArray

SENSITIVITY = math.sqrt(2.0)
"""L2 length of what one unit can move in the counts of one query."""

PROJECTIONS: tuple[str, ...] = ("sum", "raw", "clipped")
"""Ways from noisy counts to soft labels."""

_MASK = (1 << 64) - 1


def teacher_of(unit_ids: NDArray[np.int64], teachers: int, seed: int) -> NDArray[np.int64]:
    """The teacher of each unit, int64, shape (n,), values 0 .. teachers-1: a keyed hash of its id alone.

    So adding or removing a unit moves no other, which no split by position or by size can promise.
    """
    return (mixed(unit_ids.astype(np.uint64), seed & _MASK) % np.uint64(teachers)).astype(np.int64)


def count_votes(predicted: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Votes by query and class, int64, shape (m, classes), of predictions with shape (teachers, m)."""
    return np.stack([(predicted == label).sum(0) for label in range(classes)], axis=1).astype(np.int64)


def noisy_counts(votes: NDArray[np.int64], noise_std: float, seed: int) -> NDArray[np.int64]:
    """What is released: counts plus N(0, noise_std^2), fresh for each query and class, rounded to whole votes."""
    if noise_std == 0.0:
        return votes.copy()
    coins = np.random.Generator(np.random.Philox(key=np.array([seed & _MASK, 0], dtype=np.uint64)))
    noisy = votes + noise_std * coins.standard_normal(votes.shape)
    return np.asarray(np.rint(noisy), dtype=np.int64)


def hard_labels(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The class with most votes as one-hot rows, float64, shape (m, classes); the lower class where two have as many."""
    return np.asarray(np.eye(counts.shape[1])[counts.argmax(1)], dtype=np.float64)


def soft_labels(counts: NDArray[np.int64], teachers: int, projection: str = "sum") -> NDArray[np.float64]:
    """Shares of the vote as label weights, float64, shape (m, classes) (Tran et al. 2023).

    ``raw``: counts / teachers, which may be negative and need not sum to 1. ``clipped``: negative ones become 0, then scaled
    to sum 1 (even where nothing is left); biased toward even. ``sum``: shifted so that they sum to 1; unbiased, and keeps
    a logistic student's loss convex (METHODS.md 2.9).

    Raises:
        ValueError: an unknown projection.
    """
    shares = counts / float(teachers)
    classes = shares.shape[1]
    if projection == "raw":
        return np.asarray(shares, dtype=np.float64)
    if projection == "sum":
        return np.asarray(shares + (1.0 - shares.sum(1, keepdims=True)) / classes)
    if projection == "clipped":
        kept = np.maximum(shares, 0.0)
        total = kept.sum(1, keepdims=True)
        return np.asarray(np.where(total > 0.0, kept / np.where(total > 0.0, total, 1.0), 1.0 / classes))
    raise ValueError(f"There is no projection {projection!r}. Choose one of {', '.join(PROJECTIONS)}.")


def vote_events(noise_std: float, queries: int) -> tuple[PrivacyEvent, ...]:
    """What answering the queries spends: each is one Gaussian release on everyone, nobody is sampled.

    Hard and soft labels spend the same, since both are made of the same counts. No query spends nothing.
    """
    if queries == 0:
        return ()
    return (PrivacyEvent(float(noise_std) / SENSITIVITY, 1.0, int(queries)),)


def noise_std_of(noise_multiplier: float) -> float:
    """The standard deviation of the noise on each count for a multiplier of the joint sensitivity."""
    return float(noise_multiplier) * SENSITIVITY


def margin(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Votes by which the first class leads the second, int64, shape (m,)."""
    ordered = np.sort(votes, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2], dtype=np.int64)


def flip_probability(votes: NDArray[np.int64], noise_std: float) -> NDArray[np.float64]:
    """Probability that noise moves the label away from the clean majority, shape (m,).

    Two classes: Phi(-g / (sqrt(2) sigma)) with the margin g, exact up to rounding. More: the sum of it over the other
    classes, an upper bound, at most 1 - 1/classes (METHODS.md 2.8, 3.4). Without noise 0, also where two classes tie.
    """
    from scipy.special import ndtr  # here, since the web process reads this module and never calls this

    classes = votes.shape[1]
    if noise_std == 0.0:
        return np.zeros(len(votes))
    first = votes.argmax(1)
    behind = np.take_along_axis(votes, first[:, None], 1) - votes
    each = ndtr(-behind / (SENSITIVITY * noise_std))
    np.put_along_axis(each, first[:, None], 0.0, 1)
    return np.asarray(np.minimum(each.sum(1), 1.0 - 1.0 / classes))
