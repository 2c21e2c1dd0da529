"""Balanced accuracy per group: every label counts the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from worker.engine.metrics.base import Metric, Outcomes, correct_counts, share
from worker.engine.results import Counts

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _counted(counts: Counts) -> NDArray[np.float64]:
    return np.asarray(share(correct_counts(counts), counts.n).mean(2), dtype=np.float64)


def _linear(rows: Outcomes) -> NDArray[np.float64]:
    """The value plus each row's pull on the recall of its own label."""
    correct, count = rows.correct, len(rows.labels)
    found = np.zeros_like(correct)
    value = np.zeros((len(correct), 1))
    for label in range(rows.classes):
        chosen = rows.labels == label
        recall = correct[:, chosen].mean(1, keepdims=True)
        value += recall / rows.classes
        found[:, chosen] = (correct[:, chosen] - recall) * count / (rows.classes * chosen.sum())
    return found + value


BALANCED_ACCURACY = Metric(
    key="balanced_accuracy",
    title="Balanced accuracy",
    help=(
        "How often the prediction is right, each true label counting the same however rare. The mean over labels of the "
        "share predicted rightly; 1 is always right, and a network that always says the same has one over the number of "
        "labels. A group in which a label has no rows has no balanced accuracy."
    ),
    better="higher",
    linear=_linear,
    counted=_counted,
    all_labels=True,
    gap_title="Balanced accuracy gap",
)
