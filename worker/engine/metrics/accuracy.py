"""Accuracy per group."""

from __future__ import annotations

from worker.engine.metrics.base import Metric, correct_counts, share

ACCURACY = Metric(
    key="accuracy",
    title="Accuracy",
    help=(
        "How often the prediction is right. Rows predicted rightly over all rows; 1 is always right, 0 never. "
        "Where few rows have the favourable label, a network that never predicts it is still often right: "
        "look at the true positive rate too."
    ),
    better="higher",
    linear=lambda rows: rows.correct,
    counted=lambda counts: share(correct_counts(counts).sum(2), counts.n.sum(2)),
    gap_title="Accuracy gap",
)
