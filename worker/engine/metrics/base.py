"""What a metric is: a number for the rows of a group, from stored counts where they suffice, else from the logits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from worker.engine.metrics import reasons
from worker.engine.results import Counts, StatisticRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Outcomes:
    """What s networks say of the same m rows.

    Attributes:
        labels: int64, shape (m,), the truth.
        classes: how many labels there are.
        predicted: int64, shape (s, m).
        loss, squared_error: float64, shape (s, m); the squared error is summed over the classes where there are several.
        margin: float64, shape (s, m), the logit of class 1 against class 0; of the predicted class for several classes.
        confidence: float64, shape (s, m), the probability of class 1; of the predicted class for several classes.
        hit: float64, shape (s, m), what ``confidence`` foretells: label 1, or a right prediction.
    """

    labels: NDArray[np.int64]
    classes: int
    predicted: NDArray[np.int64]
    loss: NDArray[np.float64]
    squared_error: NDArray[np.float64]
    margin: NDArray[np.float64]
    confidence: NDArray[np.float64]
    hit: NDArray[np.float64]

    @property
    def correct(self) -> NDArray[np.float64]:
        return np.asarray(self.predicted == self.labels, dtype=np.float64)

    @property
    def favourable(self) -> NDArray[np.float64]:
        """1 where class 1 is predicted."""
        return np.asarray(self.predicted == 1, dtype=np.float64)

    def at(self, rows: NDArray[np.int64]) -> Outcomes:
        """The same of some rows, by position."""
        each = (self.loss, self.squared_error, self.margin, self.confidence, self.hit)
        loss, squared_error, margin, confidence, hit = (array[:, rows] for array in each)
        predicted = self.predicted[:, rows]
        return Outcomes(self.labels[rows], self.classes, predicted, loss, squared_error, margin, confidence, hit)


@dataclass(frozen=True)
class Value:
    """A metric's value, or None and the reason. ``rows`` is the denominator."""

    value: float | None
    rows: int
    reason: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Metric:
    """One metric. Its help text opens with the idea in a sentence, then the formula and what 0 and 1 mean.

    Attributes:
        better: which direction is better; None has no direction, so privacy makes a change, not a cost.
        linear: a number for each row and network, shape (s, m), whose mean over the rows *is* the metric of these rows;
            NaN for a network for which it is undefined. For a mean it is what is averaged; else the value plus its influence
            function, so that one calculus of variances serves all (infinitesimal jackknife; for AUC: DeLong 1988).
            Handed only rows of ``label`` where that is given, and every label where ``all_labels``.
        counted: the value of every run and group from counts, float64 of shape (runs, groups), NaN where undefined;
            None where counts do not suffice.
        label: only rows of this true label, None for all.
        all_labels: undefined where a label has no rows.
        two_classes: undefined where there are more than two classes.
        bounded: rows count at most 1, so that rows without any change are no proof that none will ever change.
        unit: ``points`` for shares, shown in percentage points; ``nats`` for losses.
        gap_title: what the spread of this metric over groups is called.
    """

    key: str
    title: str
    help: str
    better: Better | None
    linear: Callable[[Outcomes], NDArray[np.float64]]
    counted: Callable[[Counts], NDArray[np.float64]] | None = None
    label: int | None = None
    all_labels: bool = False
    two_classes: bool = False
    bounded: bool = True
    unit: Literal["points", "nats"] = "points"
    gap_title: str = ""

    def value(self, rows: Iterable[StatisticRow]) -> Value:
        """The value from the statistics of one run on one group and one part. Pure: no state, no rounding.

        Raises ValueError for a metric that counts cannot give.
        """
        listed = list(rows)
        if not listed:
            return self._undefined(reasons.NO_ROWS if self.label is None else reasons.NO_LABEL, 0)
        counts = counts_of([listed])
        value, used = self.values(counts), int(self.rows(counts)[0, 0])
        if np.isnan(value[0, 0]):
            return self._undefined(self.code(counts, 0, 0), used)
        return Value(float(value[0, 0]), used)

    @staticmethod
    def _undefined(code: str, rows: int) -> Value:
        return Value(None, rows, reasons.words(code), code)

    def values(self, counts: Counts) -> NDArray[np.float64]:
        """Of every run and group, shape (runs, groups); NaN where undefined."""
        if self.counted is None:
            raise ValueError(f"{self.title} cannot be computed from counts. Read the stored values.")
        found = self.counted(counts)
        return np.full_like(found, np.nan) if self.two_classes and counts.classes > 2 else found

    def rows(self, counts: Counts) -> NDArray[np.int64]:
        """Rows that the metric rests on, shape (runs, groups): of its label, or of the rarest one where it needs all."""
        if self.all_labels:
            return np.asarray(counts.n.min(2), dtype=np.int64)
        return np.asarray(counts.n.sum(2) if self.label is None else counts.n[:, :, self.label], dtype=np.int64)

    @property
    def needs_label(self) -> bool:
        """Whether some true label must have rows."""
        return self.label is not None or self.all_labels

    def code(self, counts: Counts, run: int, group: int) -> str:
        """Why the value of one run and group is undefined."""
        if self.two_classes and counts.classes > 2:
            return reasons.TWO_CLASSES
        if not counts.n[run, group].sum():
            return reasons.NO_ROWS if not self.needs_label else reasons.NO_LABEL
        return reasons.NO_LABEL if not self.rows(counts)[run, group] else reasons.NOBODY_PREDICTED

    def cost(self, baseline: float, value: float) -> float:
        """Baseline minus value where higher is better; else value minus baseline: excess loss, or a change."""
        return self.sign * (baseline - value)

    @property
    def sign(self) -> float:
        """Turns baseline minus value into a cost."""
        return 1.0 if self.better == "higher" else -1.0


def share(total: NDArray[Any], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """total / count, NaN where the count is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(count > 0, total / count, np.nan), dtype=np.float64)


def correct_counts(counts: Counts) -> NDArray[np.int64]:
    """Rows predicted rightly, shape (runs, groups, labels)."""
    return np.asarray(np.diagonal(counts.predicted, axis1=2, axis2=3), dtype=np.int64)


def counts_of(tables: Iterable[Iterable[StatisticRow]]) -> Counts:
    """Counts of several runs on one group, from their statistics."""
    listed = [list(rows) for rows in tables]
    classes = max(max(len(row.predicted), row.label + 1) for rows in listed for row in rows)
    shape = (len(listed), 1, classes)
    n, predicted = np.zeros(shape, np.int64), np.zeros((*shape, classes), np.int64)
    loss, error = np.zeros(shape), np.zeros(shape)
    for run, rows in enumerate(listed):
        for row in rows:
            n[run, 0, row.label] += row.n
            predicted[run, 0, row.label, : len(row.predicted)] += np.array(row.predicted)
            loss[run, 0, row.label] += row.loss
            error[run, 0, row.label] += row.squared_error
    return Counts(n, predicted, loss, error, np.ones(len(listed), bool))
