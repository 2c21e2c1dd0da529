"""Expected calibration error per group: clipping harms calibration before accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from worker.engine.metrics.base import Metric, Outcomes

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = 10


def _linear(rows: Outcomes) -> NDArray[np.float64]:
    """Confidence minus outcome, with the sign of the row's bin: their mean is the sum over bins of |bin sum| / rows."""
    off = rows.confidence - rows.hit
    which = np.minimum((rows.confidence * BINS).astype(np.int64), BINS - 1)
    found = np.empty_like(off)
    for run, (own, bins) in enumerate(zip(off, which, strict=True)):
        found[run] = own * np.where(np.bincount(bins, weights=own, minlength=BINS) < 0, -1.0, 1.0)[bins]
    return found


CALIBRATION_ERROR = Metric(
    key="calibration_error",
    title="Expected calibration error",
    help=(
        "How far the predicted probabilities are from how often things happen. Rows are sorted into ten bins of equal "
        "width by the probability of the favourable value (of the predicted class where there are several); the mean over "
        "rows of the distance between a bin's mean probability and its frequency. 0 is calibrated. It is too large in "
        "small groups, even where calibration is perfect: compare groups of like size only. Made from the logits."
    ),
    better="lower",
    linear=_linear,
    bounded=False,
    gap_title="Calibration gap",
)
