"""What a metric is: the mean of one quantity over the rows of a group, all of them or those of one true label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from worker.engine.results import StatisticRow

Quantity = Literal["correct", "loss", "predicted_positive"]
Better = Literal["higher", "lower"]

NO_ROWS = "no rows of this group are in the test part"
NO_ROWS_WITH_LABEL = "cannot be computed: no test rows of this group have the label it needs"
ONLY_TWO_CLASSES = "cannot be computed: it is defined for two classes only"


@dataclass(frozen=True)
class Value:
    """A metric's value, or None and the reason. ``rows`` is the denominator."""

    value: float | None
    rows: int
    reason: str | None = None


@dataclass(frozen=True)
class Metric:
    """One metric. Its help text opens with the idea in a sentence, then the formula and what 0 and 1 mean.

    Attributes:
        better: which direction is better; None has no direction, so privacy makes a change, not a cost.
        quantity: what is averaged: ``correct``, ``loss``, or ``predicted_positive`` (class 1 predicted).
        label: only rows of this true label, None for all.
        two_classes: undefined where there are more than two classes.
        unit: ``points`` for shares, shown in percentage points; ``nats`` for losses.
    """

    key: str
    title: str
    help: str
    better: Better | None
    quantity: Quantity
    label: int | None = None
    two_classes: bool = False
    unit: Literal["points", "nats"] = "points"

    def value(self, rows: Iterable[StatisticRow]) -> Value:
        """The value from the statistics of one run on one group and one part. Pure: no state, no rounding."""
        total, count, classes = 0.0, 0, 0
        for row in rows:
            classes = max(classes, len(row.predicted))
            if self.label is None or row.label == self.label:
                total += _quantity(self.quantity, row)
                count += row.n
        if self.two_classes and classes > 2:
            return Value(None, count, ONLY_TWO_CLASSES)
        if count == 0:
            return Value(None, 0, NO_ROWS if self.label is None else NO_ROWS_WITH_LABEL)
        return Value(total / count, count)

    def cost(self, baseline: float, value: float) -> float:
        """Baseline minus value where higher is better; else value minus baseline: excess loss, or a change."""
        return baseline - value if self.better == "higher" else value - baseline


def _quantity(quantity: Quantity, row: StatisticRow) -> float:
    if quantity == "correct":
        return float(row.predicted[row.label])
    if quantity == "predicted_positive":
        return float(row.predicted[1])
    return row.loss
