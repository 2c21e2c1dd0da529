"""Laws of the split: shares, persons whole, and that a row more moves no other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import DATASET, category, make_roles, make_table, number, table_of
from worker.engine.datasets.role_set import Roles, Target
from worker.engine.datasets.split import assign_parts, uniform
from worker.engine.errors import TableProblem

TARGET = Target("y", favourable="1")


def plain(rows, **changes):
    return table_of(category("y", ["0", "1"] * (rows // 2)), number("x", [0.0] * rows), **changes)


def roles(**changes):
    return Roles(TARGET, ("y",), ("x",), **changes)


def test_shares_are_sixty_twenty_twenty():
    shares = np.bincount(assign_parts(plain(40_000), roles(), DATASET)) / 40_000
    assert shares == pytest.approx([0.6, 0.2, 0.2], abs=0.01)


def test_another_dataset_is_split_otherwise():
    one, other = (assign_parts(plain(2000), roles(), key) for key in ("a" * 32, "b" * 32))
    assert 0.3 < np.mean(one == other) < 0.6


def test_removing_rows_moves_no_other():
    table = plain(2000)
    keep = np.random.default_rng(0).random(2000) < 0.7
    whole = assign_parts(table, roles(), DATASET)
    assert np.array_equal(assign_parts(table.take(keep), roles(), DATASET), whole[keep])


def test_the_content_of_a_row_does_not_matter():
    table = plain(2000)
    other = table_of(category("y", ["1", "0"] * 1000), number("x", [5.0] * 2000))
    assert np.array_equal(assign_parts(table, roles(), DATASET), assign_parts(other, roles(), DATASET))


def test_a_person_is_in_one_part_whatever_the_other_rows():
    names = [f"p{i % 300}" for i in range(3000)]
    table = table_of(category("y", ["0", "1"] * 1500), number("x", [0.0] * 3000), category("who", names))
    parts = assign_parts(table, roles(person_id="who"), DATASET)
    assert all(len({int(part) for part in parts[i::300]}) == 1 for i in range(300))
    fewer = table.take(np.arange(3000) % 300 != 7)
    assert np.array_equal(assign_parts(fewer, roles(person_id="who"), DATASET), parts[np.arange(3000) % 300 != 7])


def test_a_test_file_is_the_test_part():
    parts = assign_parts(plain(8000, test_rows=2000), roles(), DATASET)
    assert set(parts[-2000:].tolist()) == {2}
    assert np.bincount(parts[:6000]) / 6000 == pytest.approx([0.75, 0.25], abs=0.02)


def test_a_person_in_both_files_is_refused():
    table = table_of(category("y", ["0", "1"] * 5), number("x", [0.0] * 10), category("who", ["a"] * 10), test_rows=3)
    with pytest.raises(TableProblem, match="both files"):
        assign_parts(table, roles(person_id="who"), DATASET)


def test_rows_without_a_target_are_in_no_part():
    table = table_of(category("y", [None, "0", "1", "1"] * 100), number("x", [0.0] * 400))
    parts = assign_parts(table, roles(), DATASET)
    assert np.array_equal(parts == -1, np.arange(400) % 4 == 0)


def test_too_few_rows_are_refused():
    with pytest.raises(TableProblem, match="too few rows"):
        assign_parts(plain(2), roles(), DATASET)


def test_the_hash_is_uniform_and_uncorrelated_between_neighbours():
    draws = uniform(np.arange(200_000, dtype=np.uint64), 12345)
    counts, _ = np.histogram(draws, bins=50, range=(0, 1))
    assert ((counts - 4000) ** 2 / 4000).sum() < 100
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.01


def test_the_shared_table_splits():
    assert set(assign_parts(make_table(), make_roles(), DATASET).tolist()) == {0, 1, 2}
