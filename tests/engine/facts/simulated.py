"""Audits drawn from a known truth: who is right with and without privacy, row by row; statistics, not trainings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.builders import make_group
from worker.engine.facts.grid import SUM_NAMES, SumTable
from worker.engine.results import EVERYONE, LEVEL, PRIMARY, REST, AuditFacts, Counts, RunFacts

COST = 0.04
"""Mean of what privacy takes from a row's chance to be right."""


@dataclass(frozen=True)
class World:
    """How audits are drawn.

    Attributes:
        sizes: rows of each group; the groups are disjoint and get one name each.
        of_row: spread of the cost over rows (or persons): half the width of a uniform distribution.
        of_seed: standard deviation of the cost over seeds, the same for all rows; cut at three of them.
        per_person: rows of one person, who share their cost and their luck.
        steady: how much of a row's outcome is the same in all seeds (0: fresh coins each time).
    """

    seeds: int
    sizes: tuple[int, ...] = (300, 300)
    of_row: float = 0.04
    of_seed: float = 0.01
    per_person: int = 1
    steady: float = 0.7
    epsilons: tuple[float, ...] = (1.0,)
    extra: tuple[float, ...] | None = None
    """Further cost of each group."""


def draw_audit(world: World, draw: np.random.Generator) -> AuditFacts:
    """One audit: rows, seeds and outcomes are all drawn anew."""
    rows = sum(world.sizes)
    group = np.repeat(np.arange(len(world.sizes)), world.sizes)
    person = np.arange(rows) // world.per_person
    persons = person[-1] + 1
    chance = draw.uniform(0.6, 0.9, persons)[person]
    extra = np.zeros(len(world.sizes)) if world.extra is None else np.array(world.extra)
    taken = (COST + world.of_row * draw.uniform(-1, 1, persons))[person] + extra[group]
    right = np.empty((1 + len(world.epsilons), world.seeds, rows), bool)
    fixed = draw.random(persons)[person]
    luck = np.clip(draw.normal(size=world.seeds), -3, 3) * world.of_seed
    for seed in range(world.seeds):
        fresh = draw.random(persons)[person]
        coin = np.where((draw.random(persons) < world.steady)[person], fixed, fresh)
        right[0, seed] = coin < chance
        for at in range(len(world.epsilons)):
            own = np.where((draw.random(persons) < world.steady)[person], coin, draw.random(persons)[person])
            right[1 + at, seed] = own < chance - taken - luck[seed]
    return facts_of(right, group, person, world)


def facts_of(right: np.ndarray, group: np.ndarray, person: np.ndarray, world: World) -> AuditFacts:
    """Facts from who was right, bool of shape (points, seeds, rows)."""
    members = [np.ones(len(group), bool), *(group == at for at in range(len(world.sizes)))]
    points = [("non-private", None), *(("dp-sgd", epsilon) for epsilon in world.epsilons)]
    groups = tuple(
        make_group(EVERYONE if at == 0 else f"g={at}", int(m.sum()), attributes={} if at == 0 else {"g": str(at)})
        for at, m in enumerate(members)
    )
    runs = tuple(
        RunFacts(f"{m} {e} {seed}", m, seed, e, e, "finished") for m, e in points for seed in range(world.seeds)
    )
    hits = np.stack([right[:, :, m].sum(2) for m in members], 2).reshape(len(runs), len(members))
    n = np.broadcast_to(np.array([m.sum() for m in members]), hits.shape)
    predicted = np.stack([np.stack([hits, n - hits], 2), np.zeros((*hits.shape, 2), int)], 2)
    labelled = np.stack([n, np.zeros_like(n)], 2)
    zero = np.zeros((*hits.shape, 2))
    counts = Counts(labelled, predicted, zero, zero, np.ones(len(runs), bool))
    gained = right[:1].astype(float) - right[1:]
    sums = {
        PRIMARY: _table(gained, members, person, points[1:], world),
        LEVEL + PRIMARY: _table(right.astype(float), members, person, points, world),
        REST + PRIMARY: _contrasts(gained, members, person, points[1:], world),
    }
    return AuditFacts(groups, runs, counts=counts, sums=sums, seeds_planned=world.seeds)


def _table(values: np.ndarray, members: list[np.ndarray], person: np.ndarray, points: list, world: World) -> SumTable:
    numbers = np.array([[_sums(each[:, m], person[m]) for m in members] for each in values])
    return _packed(numbers, points, world)


def _contrasts(
    values: np.ndarray, members: list[np.ndarray], person: np.ndarray, points: list, world: World
) -> SumTable:
    nothing = [np.nan] * len(SUM_NAMES)
    total = len(person)
    both = [*values, values.mean(0)]
    numbers = np.array(
        [
            [
                nothing if m.all() else _sums(each * total * np.where(m, 1 / m.sum(), -1 / (~m).sum()), person)
                for m in members
            ]
            for each in both
        ]
    )
    return _packed(numbers, [*points, ("dp-sgd", None)], world)


def _packed(numbers: np.ndarray, points: list, world: World) -> SumTable:
    arrays = {name: numbers[..., at] for at, name in enumerate(SUM_NAMES)}
    return SumTable(**arrays, seeds=(tuple(range(world.seeds)),) * len(points), points=tuple(points))


def _sums(each: np.ndarray, person: np.ndarray) -> list[float]:
    """By the definition of the table of measurements, from values of shape (seeds, rows)."""
    _, unit = np.unique(person, return_inverse=True)
    by_unit = np.stack([np.bincount(unit, weights=row) for row in each])
    size, mean = np.bincount(unit).astype(float), by_unit.mean(0)
    squares = (mean**2).sum(), (mean * size).sum(), (size**2).sum(), (by_unit**2).sum(1).mean()
    return [float(len(size)), float(size.sum()), float(mean.sum()), *map(float, squares)]
