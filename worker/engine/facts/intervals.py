"""Intervals around a mean of paired differences: over rows or persons, over seeds, and over both (METHODS.md 1.3).

A difference is d_us, summed over the rows of unit u (a row or a person) for seed s; n_u is the unit's number of rows.
The mean is sum over u of D_u / rows, with D_u the mean of d_us over seeds. The sums of ``MeasurementRow`` suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from worker.engine.results import MeasurementRow

LEVEL = 0.95
COUNTED = ("correct", "predicted_positive")
ONE_UNIT = 1.0
"""Where rows can only be right or wrong, no spread is taken to be smaller than if one row had changed in every seed:
thirty rows among which nothing happened to change are no proof that nothing ever will (after Agresti and Min 2005)."""

FEWEST_SEEDS = 3
"""Under this many seeds nothing is said about training luck."""


@dataclass(frozen=True)
class Spread:
    """A variance of a mean, and its degrees of freedom."""

    variance: float
    freedom: float

    def half_width(self) -> float:
        """Half of the interval of level 0.95, by Student's t."""
        return student_quantile(0.5 + LEVEL / 2, self.freedom) * math.sqrt(self.variance)


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t with any positive degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def seed_spread(differences: Sequence[float]) -> Spread:
    """Of the mean over seeds: s^2 / S with S - 1 degrees of freedom. ``differences`` holds one paired mean a seed."""
    count = len(differences)
    mean = math.fsum(differences) / count
    variance = math.fsum((value - mean) ** 2 for value in differences) / (count - 1)
    return Spread(variance / count, count - 1)


def sampling_spread(row: MeasurementRow) -> Spread | None:
    """Of the seed mean over units: the ratio estimator's linearised variance with U - 1 degrees of freedom."""
    if row.total is None or row.total_squared is None or row.cross is None or row.units < 2 or row.rows == 0:
        return None
    mean = row.total / row.rows
    squares = row.total_squared - 2 * mean * row.cross + mean**2 * row.rows_squared
    return Spread(_over_units(max(squares, ONE_UNIT if row.quantity in COUNTED else 0.0), row), row.units - 1)


def both_spread(row: MeasurementRow, differences: Sequence[float]) -> Spread | None:
    """Two-way variance components: seeds + units - residual, at least each of the first two.

    Degrees of freedom by Satterthwaite. ``differences`` are the paired means of the row's seeds, in its sign.
    """
    units = sampling_spread(row)
    if units is None or row.total_each_squared is None or row.total_squared is None:
        return None
    seeds = seed_spread(differences)
    residual = _residual_spread(row, differences)
    combined = seeds.variance + units.variance - residual.variance
    if combined <= max(seeds.variance, units.variance):
        return max((seeds, units), key=lambda part: part.variance)
    freedom_of = sum(part.variance**2 / part.freedom for part in (seeds, units, residual) if part.variance > 0)
    return Spread(combined, combined**2 / freedom_of)


def _residual_spread(row: MeasurementRow, differences: Sequence[float]) -> Spread:
    """Of what is left when the unit's and the seed's own difference are taken away.

    Exact where every unit has one row; else the seed's part is taken off as if it were the same in each row of a unit.
    """
    count = len(differences)
    mean = math.fsum(differences) / count
    of_seeds = row.rows_squared * math.fsum((value - mean) ** 2 for value in differences) / count
    squares = max(float(row.total_each_squared or 0) - float(row.total_squared or 0) - of_seeds, 0.0)
    return Spread(_over_units(squares, row) / (count - 1), (count - 1) * (row.units - 1))


def _over_units(squares: float, row: MeasurementRow) -> float:
    return squares * row.units / (row.units - 1) / row.rows**2
