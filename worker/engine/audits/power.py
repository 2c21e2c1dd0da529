"""What an audit can see before it trains: the smallest cost of each group, and what would halve it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from worker.engine.results import GroupFacts

DISAGREEMENT = 0.05
_Z_LEVEL, _Z_POWER = 1.959964, 0.841621
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Detectable:
    """The smallest cost of accuracy (a share) that a group would show, and what would halve it.

    Attributes:
        units: test rows of the group, or persons where rows belong to persons.
        units_to_halve: as many units would be needed, with the same seeds.
        seeds_to_halve: as many seeds would be needed, with the same units; None where no number of seeds is enough.
        with_endless_seeds: what stays however many seeds there are: the test rows are too few for less.
    """

    group: str
    cost: float | None
    units: int
    units_to_halve: int | None
    seeds_to_halve: int | None
    with_endless_seeds: float | None
    reason: str | None


def smallest_detectable(test_units: int, seeds: int) -> float | None:
    """The smallest cost of accuracy (share) seen with power 0.8 by a two-sided test of level 0.05; None without units.

    Assumes that baseline and run disagree on 5 % of the group's units, and that a seed's mean varies as much as that
    sampling does: (1.96 + 0.84) * sqrt(0.05 / n * (1 + 1 / seeds)), by the normal approximation. At most 1. Units are
    persons where rows belong to persons, for one person's rows go right or wrong together.
    """
    if test_units < 1:
        return None
    return min(1.0, (_Z_LEVEL + _Z_POWER) * math.sqrt(DISAGREEMENT / test_units * (1 + 1 / seeds)))


def detectable(group: GroupFacts, seeds: int) -> Detectable:
    """Of one group; without numbers where the group cannot be judged, for the reason it has."""
    units = group.n if group.units is None else group.units
    cost = smallest_detectable(units, seeds) if group.estimable else None
    if cost is None:
        return Detectable(group.key, None, units, None, None, None, group.reason)
    limit = smallest_detectable(units, 10**9)
    return Detectable(group.key, cost, units, units_to_halve(units, seeds), seeds_to_halve(units, seeds), limit, None)


def units_to_halve(units: int, seeds: int) -> int:
    """The fewest units with which half the cost would be seen; four times as many, but where the cost is cut at 1."""
    wanted = (smallest_detectable(units, seeds) or 1.0) / 2
    return math.ceil((_Z_LEVEL + _Z_POWER) ** 2 * DISAGREEMENT * (1 + 1 / seeds) / wanted**2 - 1e-9)


def seeds_to_halve(units: int, seeds: int) -> int | None:
    """The fewest seeds with which half the cost would be seen; None if no number of them would do."""
    wanted = (smallest_detectable(units, seeds) or 1.0) / 2
    room = (wanted / (_Z_LEVEL + _Z_POWER)) ** 2 * units / DISAGREEMENT - 1
    needed = math.ceil(1 / room - 1e-9) if room > 0 else MOST_SEEDS + 1
    return needed if needed <= MOST_SEEDS else None
