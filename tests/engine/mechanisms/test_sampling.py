"""Poisson batches: coins belong to ids, are independent and as likely as accounted for; persons give one row each."""

from __future__ import annotations

import numpy as np
import pytest

from worker.engine.mechanisms.sampling import PoissonBatches


def draws(
    ids: np.ndarray, steps: int = 50, *, rows: np.ndarray | None = None, q: float = 0.1, seed: int = 1
) -> list[set[int]]:
    """Row ids in each batch."""
    rows = ids if rows is None else rows
    batches = PoissonBatches(np.arange(len(ids)), ids, rows, universe=1000, probability=q, seed=seed)
    return [set(rows[batches.batch(step)].tolist()) for step in range(steps)]


def test_removing_a_unit_moves_no_other_coin() -> None:
    ids = np.arange(0, 1000, 3)
    for before, after in zip(draws(ids), draws(np.delete(ids, 100)), strict=True):
        assert before - {ids[100]} == after


def test_order_of_rows_changes_nothing_not_even_the_order_of_the_batch() -> None:
    ids = np.arange(0, 1000, 3)
    shuffled = np.random.default_rng(0).permutation(ids)
    one = PoissonBatches(np.arange(len(ids)), ids, ids, universe=1000, probability=0.1, seed=4)
    two = PoissonBatches(np.arange(len(ids)), shuffled, shuffled, universe=1000, probability=0.1, seed=4)
    for step in range(20):
        np.testing.assert_array_equal(ids[one.batch(step)], shuffled[two.batch(step)])


def test_each_step_can_be_drawn_alone_and_again() -> None:
    ids = np.arange(500)
    batches = PoissonBatches(ids, ids, ids, universe=500, probability=0.2, seed=9)
    later = batches.batch(7)
    batches.batch(3)
    np.testing.assert_array_equal(later, batches.batch(7))


def test_coins_are_as_likely_as_claimed_and_sizes_are_binomial() -> None:
    ids, q, steps = np.arange(1000), 0.03, 4000
    batches = PoissonBatches(ids, ids, ids, universe=1000, probability=q, seed=2)
    counts, sizes = np.zeros(1000), []
    for step in range(steps):
        batch = batches.batch(step)
        counts[batch] += 1
        sizes.append(len(batch))
    error = np.sqrt(steps * q * (1 - q))
    assert np.abs(counts - steps * q).max() < 5 * error
    assert abs(counts.std() / error - 1) < 0.1
    assert abs(np.mean(sizes) - 1000 * q) < 5 * np.sqrt(1000 * q * (1 - q) / steps)
    assert abs(np.var(sizes) / (1000 * q * (1 - q)) - 1) < 0.12
    assert max(sizes) > 1000 * q * 1.4


def test_neighbouring_ids_and_steps_are_independent() -> None:
    ids, q, steps = np.arange(2000), 0.25, 400
    batches = PoissonBatches(ids, ids, ids, universe=2000, probability=q, seed=3)
    drawn = np.zeros((steps, 2000))
    for step in range(steps):
        drawn[step, batches.batch(step)] = 1
    centred = drawn - q
    for product in (centred[:, 1:] * centred[:, :-1], centred[1:] * centred[:-1]):
        assert abs(product.mean()) < 5 * q * (1 - q) / np.sqrt(product.size)


def test_empty_batches_happen_and_certain_coins_take_all() -> None:
    ids = np.arange(5)
    rare = PoissonBatches(ids, ids, ids, universe=5, probability=0.05, seed=1)
    assert {len(rare.batch(step)) for step in range(200)} >= {0, 1}
    sure = PoissonBatches(ids, ids, ids, universe=5, probability=1.0, seed=1)
    np.testing.assert_array_equal(sure.batch(0), ids)


def test_an_id_outside_the_universe_is_refused() -> None:
    ids = np.array([1, 7])
    with pytest.raises(ValueError, match="universe"):
        PoissonBatches(ids, ids, ids, universe=7, probability=0.1, seed=1)


def persons() -> tuple[np.ndarray, np.ndarray]:
    """120 persons with 1 to 6 rows; row ids increase."""
    units = np.repeat(np.arange(0, 360, 3), np.arange(120) % 6 + 1)
    return units, np.arange(len(units)) * 2


def test_a_person_gives_one_row_chosen_anew_each_step() -> None:
    units, rows = persons()
    batches = PoissonBatches(np.arange(len(rows)), units, rows, universe=400, probability=0.5, seed=5)
    counts = np.zeros(len(rows))
    for step in range(3000):
        batch = batches.batch(step)
        assert len(set(units[batch])) == len(batch)
        counts[batch] += 1
    size = np.bincount(units)[units]
    expected = 3000 * 0.5 / size
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))


def test_removing_a_person_or_a_row_moves_no_other_person() -> None:
    units, rows = persons()
    whole = draws(units, rows=rows, q=0.5)
    for gone in (units == units[200], np.arange(len(rows)) == 200):
        for before, after in zip(whole, draws(units[~gone], rows=rows[~gone], q=0.5), strict=True):
            others = set(rows[units != units[200]].tolist())
            assert before & others == after & others
