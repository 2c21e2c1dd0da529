"""Cross-entropy per group; its cost is the excess risk."""

from __future__ import annotations

from worker.engine.metrics.base import Metric, share

LOSS = Metric(
    key="loss",
    title="Loss",
    help=(
        "How far the predicted probabilities are from the truth. Mean cross-entropy in natural logarithms; 0 is certain and "
        "right, ln 2 is a coin between two classes. Its cost is the excess risk: private minus baseline. Losses have heavy "
        "tails, so few rows can move it."
    ),
    better="lower",
    linear=lambda rows: rows.loss,
    counted=lambda counts: share(counts.loss.sum(2), counts.n.sum(2)),
    bounded=False,
    unit="nats",
    gap_title="Loss gap",
)
