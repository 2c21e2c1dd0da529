"""Noise: as wide as claimed, a run's own, and the same however it is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from worker.engine.mechanisms.noise import NoiseStream


def drawn(seeds: list[int], stds: list[float], steps: int = 40, numbers: int = 11, threads: int = 1) -> np.ndarray:
    with NoiseStream(seeds, stds, numbers, threads) as noise:
        return np.stack([noise.next().copy() for _ in range(steps)], 1)


def test_packing_and_threads_change_nothing() -> None:
    alone = drawn([7], [2.0])[0]
    packed = drawn([5, 7, 6], [1.0, 2.0, 0.0], threads=2)
    np.testing.assert_array_equal(packed[1], alone)
    assert not np.array_equal(packed[0] * 2, packed[1])
    assert not packed[2].any()


@pytest.mark.parametrize("block", [1, 3, 16])
def test_the_size_of_a_block_changes_nothing(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn([7], [2.0])
    monkeypatch.setattr("worker.engine.mechanisms.noise._BLOCK_STEPS", block)
    np.testing.assert_array_equal(drawn([7], [2.0]), before)


def test_it_is_normal_with_the_std_asked_for() -> None:
    values = drawn([3], [2.5], steps=400, numbers=1000).ravel() / 2.5
    assert abs(values.mean()) < 5 / np.sqrt(values.size)
    assert abs(values.std() - 1) < 5 / np.sqrt(2 * values.size)
    for cut, share in ((1.0, 0.158655), (2.0, 0.0227501), (3.0, 0.00134990), (4.0, 3.16712e-5)):
        seen = (values > cut).mean()
        assert abs(seen - share) < 5 * np.sqrt(share / values.size)
    lags = values[1:] * values[:-1]
    assert abs(lags.mean()) < 5 / np.sqrt(values.size)


@pytest.mark.proofs
def test_its_tail_does_not_end_early() -> None:
    """A sum beyond the largest possible noise would betray a member: float32 draws that stop at 5.77 are not enough."""
    beyond, total = 0, 0
    with NoiseStream([1, 2], [1.0, 1.0], 1_000_000, 2) as noise:
        for _ in range(400):
            values = np.abs(noise.next())
            beyond, total = beyond + int((values > 5.2).sum()), total + values.size
    expected = total * 1.9929e-7
    assert abs(beyond - expected) < 5 * np.sqrt(expected)
