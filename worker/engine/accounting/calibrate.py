"""The least noise that spends no more than a budget: bracketed coarsely, finished with the accountant that counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from worker.engine.accounting.accountant import INTERVAL, check, epsilon_pld
from worker.engine.errors import AccountingProblem
from worker.engine.results import Calibration, PrivacyEvent

CLOSE = 1e-4
"""Epsilon spent lies at most this far below epsilon asked, and never above it."""

_COARSE = 1e-3
_EXCESS = 4.0 / 3.0
"""What cells add to epsilon grows with the square of their width: halving them shows three quarters of it."""

_LEAST, _MOST = math.log(0.05), math.log(1e6)
_TRIES = 25


def calibrate(epsilon: float, delta: float, sampling_probability: float, steps: int) -> Calibration:
    """Noise multiplier (a Python float) for Poisson-sampled Gaussian steps, with what the accountants say of it.

    Takes about a second for an epsilon of a few, three near ten.

    Raises:
        AccountingProblem: no noise in reach meets the budget, or the accountants disagree.
    """
    epsilon, delta = float(epsilon), float(delta)
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise AccountingProblem(_unmet(epsilon, delta, "Ask for a positive epsilon and a delta between 0 and 1"))

    def spent(log_noise: float, interval: float) -> float:
        return epsilon_pld(_events(log_noise, sampling_probability, steps), delta, interval=interval)

    start = _guess(epsilon, delta, sampling_probability, steps)
    coarse = _search(lambda x: spent(x, _COARSE), epsilon, start, -1.5)
    excess = _EXCESS * (coarse.spent - spent(coarse.log_noise, _COARSE / 2))
    start = coarse.log_noise + math.log((epsilon - CLOSE / 2 + excess) / coarse.spent) / coarse.slope
    fine = _search(lambda x: spent(x, INTERVAL), epsilon, start, coarse.slope)
    if fine.spent > epsilon:
        raise AccountingProblem(_unmet(epsilon, delta, "Choose a larger epsilon, or fewer epochs"))
    events = _events(fine.log_noise, sampling_probability, steps)
    return Calibration(events[0].noise_multiplier, fine.spent, check(events, delta, counted=fine.spent))


@dataclass(frozen=True)
class _Found:
    """A point of the search, and d log(epsilon) / d log(noise) near it."""

    log_noise: float
    spent: float
    slope: float


def _search(spent: Callable[[float], float], epsilon: float, start: float, slope: float) -> _Found:
    """Secant steps inside a shrinking bracket, until epsilon - CLOSE <= spent <= epsilon or nothing is left to
    search."""
    low, high, at = _LEAST, _MOST, min(max(start, _LEAST), _MOST)
    last: tuple[float, float] | None = None
    best = _Found(_MOST, math.inf, slope)
    for _ in range(_TRIES):
        value = spent(at)
        size = math.log(max(value, 1e-300))
        if last is not None and at != last[0] and math.isfinite(size) and (size - last[1]) / (at - last[0]) < -0.1:
            slope = (size - last[1]) / (at - last[0])
        if value > epsilon:
            low = at
        else:
            high, best = at, _Found(at, value, slope)
        if epsilon - CLOSE <= value <= epsilon or high - low < 1e-7:
            return replace(best, slope=slope)
        last = (at, size)
        aim = at + (math.log(max(epsilon - CLOSE / 2, epsilon / 2)) - size) / slope
        at = aim if low < aim < high else (low + high) / 2
    return best


def _guess(epsilon: float, delta: float, probability: float, steps: int) -> float:
    """Log noise by the central limit: mu = q sqrt(T (exp(sigma^-2) - 1)), epsilon about mu^2/2 + mu sqrt(2 ln
    1/delta)."""
    tail = math.sqrt(2.0 * math.log(1.0 / delta))
    mu = math.sqrt(tail * tail + 2.0 * epsilon) - tail
    return -0.5 * math.log(math.log1p((mu / probability) ** 2 / steps))


def _events(log_noise: float, probability: float, steps: int) -> tuple[PrivacyEvent, ...]:
    return (PrivacyEvent(math.exp(log_noise), float(probability), int(steps)),)


def _unmet(epsilon: float, delta: float, next_step: str) -> str:
    return (
        f"No noise was found that spends epsilon {epsilon:g} at delta {delta:g}. The run was not planned. {next_step}."
    )
