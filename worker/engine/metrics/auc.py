"""Area under the ROC curve per group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from worker.engine.metrics.base import Metric, Outcomes

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _share_below(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each value the share of others below it, ties counting half; ``others`` are sorted."""
    below, upto = np.searchsorted(others, values, "left"), np.searchsorted(others, values, "right")
    return np.asarray((below + upto) / (2.0 * len(others)), dtype=np.float64)


def _linear(rows: Outcomes) -> NDArray[np.float64]:
    """The value plus each row's structural component (DeLong, DeLong and Clarke-Pearson 1988, section 3)."""
    positive = rows.labels == 1
    found = np.empty_like(rows.margin)
    for run, margin in enumerate(rows.margin):
        high, low = margin[positive], margin[~positive]
        wins, losses = _share_below(high, np.sort(low)), _share_below(low, np.sort(high))
        value = wins.mean()
        found[run, positive] = value + (wins - value) * len(margin) / len(high)
        found[run, ~positive] = value + ((1.0 - losses) - value) * len(margin) / len(low)
    return found


AUC = Metric(
    key="auc",
    title="AUC",
    help=(
        "How well the network orders people, whatever the threshold. The chance that of two people, one with and one "
        "without the favourable outcome, the first is ranked higher, ties counting half; 1 orders all rightly, 0.5 is a "
        "coin. Made from the logits row by row, without bins, so it has no binning error. It is defined for two classes."
    ),
    better="higher",
    linear=_linear,
    all_labels=True,
    two_classes=True,
    gap_title="AUC gap",
)
