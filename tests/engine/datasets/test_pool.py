"""The public pool: where a unit lies, and that counts beforehand are what is taken."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.builders import make_data
from worker.engine.datasets.pool import PUBLIC_PART, SLICES, count_slices, share_problem, slice_of, units_in, with_pool


def test_a_unit_keeps_its_place_whoever_else_is_there():
    ids = np.arange(20_000)
    whole = slice_of(ids, "a")
    assert (slice_of(np.delete(ids, 77), "a") == np.delete(whole, 77)).all()
    assert np.bincount(whole, minlength=SLICES).min() > 850
    assert (slice_of(ids, "b") != whole).mean() > 0.9


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.5])
def test_what_was_counted_is_what_is_taken(share):
    data = make_data(3000)
    counted = count_slices(data, "x")
    pooled = with_pool(data, share, "x")
    public = pooled.parts == PUBLIC_PART
    assert public.sum() == units_in(counted["everyone"], share)
    assert (data.parts[public] == 0).all()
    assert (pooled.parts[~public] == data.parts[~public]).all()
    member = data.groups[1].member
    assert (public & member).sum() == units_in(counted[data.groups[1].key], share)


def test_a_larger_pool_holds_the_smaller_one():
    data = make_data(3000)
    small, large = (with_pool(data, share, "x").parts == PUBLIC_PART for share in (0.1, 0.3))
    assert large[small].all()


@pytest.mark.parametrize("share", [-0.05, 0.07, 0.55, 1.0])
def test_shares_that_cannot_be_used(share):
    assert share_problem(share) is not None


@pytest.mark.parametrize("share", [0.0, 0.05, 0.15, 0.3, 0.5])
def test_shares_that_can_be_used(share):
    assert share_problem(share) is None
