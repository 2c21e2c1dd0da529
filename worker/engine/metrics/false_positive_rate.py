"""False positive rate per group, for two classes."""

from __future__ import annotations

from worker.engine.metrics.base import Metric, share

FALSE_POSITIVE_RATE = Metric(
    key="false_positive_rate",
    title="False positive rate",
    help=(
        "Of those who truly have the other outcome, how many are predicted to have the favourable one. 0 is never wrong "
        "about them, 1 always. It is defined for two classes."
    ),
    better="lower",
    linear=lambda rows: rows.favourable,
    counted=lambda counts: share(counts.predicted[:, :, 0, 1], counts.n[:, :, 0]),
    label=0,
    two_classes=True,
    gap_title="False positive rate gap",
)
