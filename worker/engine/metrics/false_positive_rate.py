"""False positive rate per group, for two classes."""

from __future__ import annotations

from worker.engine.metrics.base import Metric

FALSE_POSITIVE_RATE = Metric(
    key="false_positive_rate",
    title="False positive rate",
    help=(
        "Of those who truly have the other outcome, how many are predicted to have the favourable one. 0 is never wrong "
        "about them, 1 always. It is defined for two classes."
    ),
    better="lower",
    quantity="predicted_positive",
    label=0,
    two_classes=True,
)
