"""True positive rate per group: the quantity of equal opportunity."""

from __future__ import annotations

from worker.engine.metrics.base import Metric, share

TRUE_POSITIVE_RATE = Metric(
    key="true_positive_rate",
    title="True positive rate",
    help=(
        "Of those who truly have the favourable outcome, how many are predicted to have it. 1 misses nobody, 0 everybody. "
        "A group without such rows has no true positive rate; that is not a rate of 0. Its gap is the equal opportunity "
        "difference, which also closes when a network becomes useless to all: look at the rates beside it."
    ),
    better="higher",
    linear=lambda rows: rows.favourable,
    counted=lambda counts: share(counts.predicted[:, :, 1, 1], counts.n[:, :, 1]),
    label=1,
    gap_title="Equal opportunity difference",
)
