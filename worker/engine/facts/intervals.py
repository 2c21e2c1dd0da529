"""Intervals around a mean of paired differences: over rows or persons, over seeds, and over both (METHODS.md 1.3).

A difference is d_us, summed over the rows of unit u (a row or a person) for seed s; n_u is the unit's number of rows.
The mean is sum over u of D_u / rows, with D_u the mean of d_us over seeds. The sums of ``MeasurementRow`` suffice.
Everything works on one number or on arrays of any one shape, NaN where a part is undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVEL = 0.95
ONE_UNIT = 1.0
"""Where rows can only be right or wrong, no spread is taken to be smaller than if one row had changed in every seed:
thirty rows among which nothing happened to change are no proof that nothing ever will (after Agresti and Min 2005)."""

FEWEST_SEEDS = 3
"""Under this many seeds nothing is said about training luck."""

Numbers = Any
"""A float or an array of floats."""


class Sums(Protocol):
    """The sums of one ``MeasurementRow``, or of many as arrays."""

    @property
    def units(self) -> Numbers: ...
    @property
    def rows(self) -> Numbers: ...
    @property
    def total(self) -> Numbers: ...
    @property
    def total_squared(self) -> Numbers: ...
    @property
    def cross(self) -> Numbers: ...
    @property
    def rows_squared(self) -> Numbers: ...
    @property
    def total_each_squared(self) -> Numbers: ...


@dataclass(frozen=True)
class Spread:
    """A variance of a mean, and its degrees of freedom."""

    variance: Numbers
    freedom: Numbers

    def half_width(self, level: float = LEVEL) -> Numbers:
        """Half of the two-sided interval of this level, by Student's t."""
        return student_quantile(0.5 + level / 2, self.freedom) * np.sqrt(self.variance)


@dataclass(frozen=True)
class Components:
    """The parts of a mean's spread: over seeds, over units, and what is left when both are taken away."""

    seeds: Spread
    units: Spread
    residual: Spread

    def both(self) -> Spread:
        """Seeds + units - residual, at least each of the first two; degrees of freedom by Satterthwaite."""
        seeds, units, rest = self.seeds, self.units, self.residual
        combined = seeds.variance + units.variance - rest.variance
        larger = seeds.variance >= units.variance
        most = np.where(larger, seeds.variance, units.variance)
        of_most = np.where(larger, seeds.freedom, units.freedom)
        pairs = [(part.variance, part.freedom) for part in (seeds, units, rest)]
        with np.errstate(divide="ignore", invalid="ignore"):
            of_parts = sum(np.where(v > 0, v**2 / f, 0.0) for v, f in pairs)
            freedom = np.where(combined > most, combined**2 / of_parts, of_most)
        return Spread(np.where(combined > most, combined, most), freedom)


def student_quantile(probability: float, freedom: Numbers) -> Numbers:
    """Quantile of Student's t with any positive degrees of freedom."""
    from scipy.special import stdtrit

    return stdtrit(freedom, probability)


def student_above(value: Numbers, freedom: Numbers) -> Numbers:
    """The chance that Student's t lies above a value."""
    from scipy.special import stdtr

    return stdtr(freedom, -np.asarray(value))


def seed_spread(differences: Sequence[float] | NDArray[np.float64]) -> Spread:
    """Of the mean over seeds (the first axis): s^2 / S with S - 1 degrees of freedom."""
    each = np.asarray(differences, dtype=np.float64)
    count = len(each)
    return Spread(each.var(0, ddof=1) / count, np.full(each.shape[1:], count - 1.0)[()])


def sampling_spread(sums: Sums, *, least: Numbers = 0.0) -> Spread:
    """Of the seed mean over units: the ratio estimator's linearised variance with U - 1 degrees of freedom.

    ``least`` is the smallest sum of squares that is believed (``ONE_UNIT`` for counted metrics). NaN under two units.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sums.total / np.asarray(sums.rows, np.float64)
        squares = np.maximum(sums.total_squared - 2 * mean * sums.cross + mean**2 * sums.rows_squared, least)
        return Spread(_over_units(squares, sums), _of_units(sums))


def both_spread(sums: Sums, differences: Sequence[float] | NDArray[np.float64], *, least: Numbers = 0.0) -> Spread:
    """Two-way variance components of one mean; ``differences`` are its paired means by seed, in its sign."""
    return components(sums, differences, least=least).both()


def components(sums: Sums, differences: Sequence[float] | NDArray[np.float64], *, least: Numbers = 0.0) -> Components:
    """All three parts. The residual is exact where every unit has one row; else the seed's part is taken off as if it
    were the same in each row of a unit."""
    each = np.asarray(differences, dtype=np.float64)
    count = len(each)
    units = sampling_spread(sums, least=least)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_seeds = sums.rows_squared * each.var(0)
        squares = np.maximum(sums.total_each_squared - sums.total_squared - of_seeds, 0.0)
        rest = Spread(_over_units(squares, sums) / (count - 1), (count - 1) * _of_units(sums))
    return Components(seed_spread(each), units, rest)


def _of_units(sums: Sums) -> Numbers:
    units = np.asarray(sums.units, np.float64)
    return np.where(units > 1, units - 1, np.nan)[()]


def _over_units(squares: Numbers, sums: Sums) -> Numbers:
    units = np.asarray(sums.units, np.float64)
    return squares * units / np.where(units > 1, units - 1, np.nan) / np.asarray(sums.rows, np.float64) ** 2
