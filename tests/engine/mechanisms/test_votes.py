"""Teachers' votes: shards, noise, labels and what they spend."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from worker.engine.accounting.accountant import check, epsilon_pld
from worker.engine.accounting.calibrate import calibrate
from worker.engine.mechanisms import votes


def test_a_unit_keeps_its_teacher_whoever_else_is_there():
    ids = np.arange(5000)
    whole = votes.teacher_of(ids, 50, seed=7)
    assert (votes.teacher_of(np.delete(ids, 1234), 50, seed=7) == np.delete(whole, 1234)).all()
    counts = np.bincount(whole, minlength=50)
    assert counts.sum() == 5000
    assert counts.min() > 50
    assert counts.max() < 160
    assert (votes.teacher_of(ids, 50, seed=8) != whole).mean() > 0.9


def test_counting_votes():
    predicted = np.array([[0, 1, 2], [0, 1, 1], [0, 2, 1]])
    assert votes.count_votes(predicted, 3).tolist() == [[3, 0, 0], [0, 2, 1], [0, 2, 1]]


def test_one_unit_moves_the_counts_of_a_query_by_the_stated_sensitivity():
    coins = np.random.default_rng(1)
    predicted = coins.integers(0, 4, (20, 500))
    moved = predicted.copy()
    moved[3] = (moved[3] + coins.integers(0, 4, 500)) % 4
    change = votes.count_votes(moved, 4) - votes.count_votes(predicted, 4)
    longest = np.sqrt((change**2).sum(1)).max()
    assert longest == pytest.approx(votes.SENSITIVITY)


def test_noise_has_its_size_and_is_whole():
    clean = np.tile([[120, 30]], (40_000, 1))
    noisy = votes.noisy_counts(clean, 25.0, seed=3)
    assert noisy.dtype == np.int64
    assert abs((noisy - clean).mean()) < 4 * 25.0 / np.sqrt(80_000)
    assert (noisy - clean).std() == pytest.approx(25.0, rel=0.02)
    assert abs(np.corrcoef(noisy.T)[0, 1]) < 0.02
    assert (votes.noisy_counts(clean, 25.0, seed=3) == noisy).all()
    assert (votes.noisy_counts(clean, 0.0, seed=3) == clean).all()


def test_flip_probabilities_of_the_paper_and_of_drawn_noise():
    found = [
        votes.flip_probability(np.array([[(k + g) // 2, (k - g) // 2]]), sigma)[0]
        for k, g, sigma in ((150, 150, 50), (150, 50, 50), (150, 20, 50), (150, 2, 50), (250, 100, 40))
    ]
    assert found == pytest.approx([0.016947, 0.239750, 0.388649, 0.488717, 0.038550], abs=1e-6)
    clean = np.tile([[100, 50]], (100_000, 1))
    flipped = votes.noisy_counts(clean, 50.0, seed=5).argmax(1) == 1
    assert flipped.mean() == pytest.approx(0.239750, abs=0.006)


def test_many_classes_bound_the_flips_that_happen():
    clean = np.tile([[60, 50, 40]], (50_000, 1))
    flipped = (votes.noisy_counts(clean, 10.0, seed=6).argmax(1) != 0).mean()
    bound = votes.flip_probability(clean[:1], 10.0)[0]
    assert flipped <= bound <= flipped + 0.1
    assert votes.flip_probability(np.array([[5, 5, 5]]), 1e9)[0] == pytest.approx(2 / 3)


def test_labels():
    counts = np.array([[30, -10], [7, 7], [-5, -6]])
    assert votes.hard_labels(counts).tolist() == [[1, 0], [1, 0], [1, 0]]
    assert votes.soft_labels(counts, 20, "raw")[0].tolist() == [1.5, -0.5]
    summed = votes.soft_labels(counts, 20)
    assert summed.sum(1) == pytest.approx(np.ones(3))
    assert summed[0, 0] == pytest.approx(0.5 + (30 + 10) / 40)
    clipped = votes.soft_labels(counts, 20, "clipped")
    assert clipped.tolist() == [[1, 0], [0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(ValueError, match="no projection"):
        votes.soft_labels(counts, 20, "rounded")


def test_projecting_on_sum_one_is_unbiased_and_saves_its_share_of_the_noise():
    clean = np.tile([[90, 40, 20]], (60_000, 1))
    noisy = votes.noisy_counts(clean, 30.0, seed=9)
    raw, summed = votes.soft_labels(noisy, 150, "raw"), votes.soft_labels(noisy, 150)
    assert summed.mean(0) == pytest.approx(clean[0] / 150, abs=0.004)
    assert summed.var(0).sum() / raw.var(0).sum() == pytest.approx(1 - 1 / 3, abs=0.02)


def analytic(noise_std: float, queries: int, delta: float) -> float:
    mu = np.sqrt(2.0 * queries) / noise_std
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        spent = norm.cdf(-middle / mu + mu / 2) - np.exp(middle) * norm.cdf(-middle / mu - mu / 2)
        low, high = (middle, high) if spent > delta else (low, middle)
    return high


@pytest.mark.parametrize(
    ("queries", "sigma", "delta", "exact", "rdp"),
    [
        (100, 50, 1e-5, 1.0608, 1.1581),
        (500, 50, 1e-5, 2.5944, 2.8137),
        (1000, 100, 1e-5, 1.7601, 1.9143),
        (1000, 40, 1e-6, 5.5509, 5.9268),
        (5000, 200, 1e-5, 1.9931, 2.1657),
        (200, 20, 1e-5, 4.3772, 4.7285),
    ],
)
def test_the_claim_is_the_analytic_gaussian(queries, sigma, delta, exact, rdp):
    events = votes.vote_events(sigma, queries)
    assert analytic(sigma, queries, delta) == pytest.approx(exact, abs=1e-4)
    assert epsilon_pld(events, delta) == pytest.approx(exact, abs=1e-3)
    found = check(events, delta)
    assert found["rdp"] == pytest.approx(rdp, abs=1e-3)


def test_the_noise_found_for_a_budget_spends_it_and_no_more():
    found = calibrate(2.0, 1e-5, 1.0, 300)
    spent = analytic(votes.noise_std_of(found.noise_multiplier), 300, 1e-5)
    assert spent <= 2.0 + 1e-6
    assert spent == pytest.approx(2.0, abs=2e-3)


def test_no_query_spends_nothing():
    assert votes.vote_events(10.0, 0) == ()
