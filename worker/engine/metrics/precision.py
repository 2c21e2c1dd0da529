"""Precision per group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from worker.engine.metrics.base import Metric, Outcomes, share
from worker.engine.results import Counts

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _counted(counts: Counts) -> NDArray[np.float64]:
    return share(counts.predicted[:, :, 1, 1], counts.predicted[..., 1].sum(2))


def _linear(rows: Outcomes) -> NDArray[np.float64]:
    """The value plus each row's pull on the ratio of two means."""
    chosen, true = rows.favourable, (rows.labels == 1).astype(np.float64)
    value = share((chosen * true).sum(1), chosen.sum(1).astype(np.int64))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(value + chosen * (true - value) / chosen.mean(1, keepdims=True), dtype=np.float64)


PRECISION = Metric(
    key="precision",
    title="Precision",
    help=(
        "Of those who are predicted to have the favourable outcome, how many truly have it. 1 is always right about them, 0 "
        "never. Where nobody of a group is predicted to have it there is no precision; that is not a precision of 0."
    ),
    better="higher",
    linear=_linear,
    counted=_counted,
    gap_title="Precision gap (predictive parity)",
)
