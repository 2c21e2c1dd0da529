"""Calibration: never above what was asked, close to it, and equal to published multipliers."""

from __future__ import annotations

import math

import pytest

from worker.engine.accounting.accountant import epsilon_pld
from worker.engine.accounting.calibrate import CLOSE, calibrate
from worker.engine.errors import AccountingProblem
from worker.engine.results import PrivacyEvent

PUBLISHED = [  # epsilon, q, steps, delta, multiplier by PLD (METHODS.md 5.4)
    pytest.param(1, 1 / 92, 1840, 1e-6, 2.1336),
    pytest.param(3, 1 / 92, 1840, 1e-6, 1.0173),
    pytest.param(2, 0.01, 1000, 1e-5, 0.9591),
    pytest.param(0.5, 0.1, 200, 1e-5, 10.074),
    pytest.param(8, 1 / 92, 1840, 1e-6, 0.6843, marks=pytest.mark.proofs),
    pytest.param(3, 1 / 214, 12840, 1e-6, 1.0653, marks=pytest.mark.proofs),
    pytest.param(8, 1 / 214, 12840, 1e-6, 0.6941, marks=pytest.mark.proofs),
    pytest.param(3, 1 / 126, 2520, 1e-6, 0.9304, marks=pytest.mark.proofs),
    pytest.param(1, 0.01, 1000, 1e-5, 1.4146, marks=pytest.mark.proofs),
]


@pytest.mark.parametrize(("epsilon", "q", "steps", "delta", "multiplier"), PUBLISHED)
def test_published_multipliers(epsilon: float, q: float, steps: int, delta: float, multiplier: float) -> None:
    found = calibrate(epsilon, delta, q, steps)
    assert type(found.noise_multiplier) is float
    assert found.noise_multiplier == pytest.approx(multiplier, rel=5e-4)
    assert epsilon - CLOSE <= found.epsilon_spent <= epsilon
    again = epsilon_pld((PrivacyEvent(found.noise_multiplier, q, steps),), delta)
    assert again == found.epsilon_spent


@pytest.mark.parametrize(("epsilon", "steps"), [(0.01, 1540), (0.1, 1540), (0.1, 7)])
def test_small_budgets_are_met(epsilon: float, steps: int) -> None:
    found = calibrate(epsilon, 1e-6, 1 / 77, steps)
    assert epsilon - CLOSE <= found.epsilon_spent <= epsilon


def test_the_exact_gaussian() -> None:
    """One full-batch release: epsilon 1 at delta 1e-5 has multiplier 3.730632 exactly."""
    found = calibrate(1.0, 1e-5, 1.0, 1)
    assert found.noise_multiplier == pytest.approx(3.730632, abs=3e-4)
    assert found.noise_multiplier >= 3.730632


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (math.inf, 1e-5), (1.0, 0.0), (1.0, 1.0)]
)
def test_budgets_that_cannot_be_met_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(AccountingProblem, match="Ask for"):
        calibrate(epsilon, delta, 0.01, 100)
