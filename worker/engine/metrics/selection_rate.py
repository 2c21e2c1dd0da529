"""Selection rate per group: the quantity of demographic parity."""

from __future__ import annotations

from worker.engine.metrics.base import Metric, share

SELECTION_RATE = Metric(
    key="selection_rate",
    title="Selection rate",
    help=(
        "How often the favourable outcome is predicted. Rows predicted favourable over all rows. It has no good direction, "
        "so privacy makes a change and not a cost: private minus baseline. Its gap is the demographic parity difference."
    ),
    better=None,
    linear=lambda rows: rows.favourable,
    counted=lambda counts: share(counts.predicted[..., 1].sum(2), counts.n.sum(2)),
    gap_title="Demographic parity difference",
)
