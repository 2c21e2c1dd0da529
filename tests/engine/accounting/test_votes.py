"""The data-dependent bound against published values."""

from __future__ import annotations

import numpy as np
import pytest

from worker.engine.accounting.votes import epsilon_data_dependent, log_flip_bound


@pytest.mark.parametrize(
    ("votes", "sigma", "queries", "log_q", "epsilon"),
    [
        ((240, 10), 40, 1000, -10.6405, 0.4951),
        ((200, 50), 40, 1000, -5.5202, 2.4854),
        ((130, 120), 40, 1000, -0.8443, 5.9899),
        ((150, 0), 20, 200, -16.6826, 0.4514),
        ((245, 3, 2), 40, 500, -10.9175, 0.4147),
    ],
)
def test_published_values(votes, sigma, queries, log_q, epsilon):
    counts = np.tile(np.array([votes]), (queries, 1))
    assert log_flip_bound(counts[:1], sigma)[0] == pytest.approx(log_q, abs=1e-4)
    assert epsilon_data_dependent(counts, sigma, 1e-5, classic=True) == pytest.approx(epsilon, abs=2e-3)


def test_the_tighter_conversion_is_tighter():
    counts = np.tile(np.array([[200, 50]]), (1000, 1))
    tight, classic = (epsilon_data_dependent(counts, 40.0, 1e-5, classic=kind) for kind in (False, True))
    assert 0 < tight < classic


def test_disagreement_never_costs_more_than_the_worst_case():
    coins = np.random.default_rng(0)
    first = coins.integers(0, 251, 400)
    counts = np.stack([first, 250 - first], 1)
    worst = epsilon_data_dependent(np.tile([[125, 125]], (400, 1)), 40.0, 1e-5)
    assert epsilon_data_dependent(counts, 40.0, 1e-5) <= worst
