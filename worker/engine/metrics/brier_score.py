"""Brier score per group."""

from __future__ import annotations

from worker.engine.metrics.base import Metric, share

BRIER_SCORE = Metric(
    key="brier_score",
    title="Brier score",
    help=(
        "How far the predicted probabilities are from the truth, in squares, so that no single row can weigh much. The mean "
        "of (probability minus truth) squared, summed over the classes where there are several; 0 is certain and right, "
        "0.25 is a coin between two classes."
    ),
    better="lower",
    linear=lambda rows: rows.squared_error,
    counted=lambda counts: share(counts.squared_error.sum(2), counts.n.sum(2)),
    bounded=False,
    gap_title="Brier score gap",
)
