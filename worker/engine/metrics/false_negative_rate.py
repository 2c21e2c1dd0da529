"""False negative rate per group: who is missed."""

from __future__ import annotations

from worker.engine.metrics.base import Metric, share

FALSE_NEGATIVE_RATE = Metric(
    key="false_negative_rate",
    title="False negative rate",
    help=(
        "Of those who truly have the favourable outcome, how many are missed. 0 misses nobody, 1 everybody; it is one minus "
        "the true positive rate. A network that never predicts the favourable outcome can be accurate and miss all of them."
    ),
    better="lower",
    linear=lambda rows: 1.0 - rows.favourable,
    counted=lambda counts: share(counts.n[:, :, 1] - counts.predicted[:, :, 1, 1], counts.n[:, :, 1]),
    label=1,
    gap_title="False negative rate gap",
)
