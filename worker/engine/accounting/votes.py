"""The data-dependent bound on what hard votes spend (Papernot et al. 2018, Theorem 6): audit-only.

Where teachers agree, the label hardly depends on one of them, and less is spent than the worst case charges. That
figure is itself a function of the private rows, and smaller for groups on whom teachers agree: it is shown to the
audit team and never claimed. Soft labels have no such bound, since a released count has no stable outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ORDERS = np.concatenate([np.arange(1.1, 65.0, 0.1), np.arange(65.0, 1025.0, 5.0)])
"""Renyi orders at which the bound is taken."""


def epsilon_data_dependent(votes: NDArray[np.int64], noise_std: float, delta: float, *, classic: bool = False) -> float:
    """Epsilon of answering these queries with hard labels, at this delta.

    Args:
        votes: int64, shape (m, classes), before noise.
        noise_std: of the noise on each count.
        classic: convert by Mironov's formula, as published code does, instead of the tighter one of Balle et al. 2020.
    """
    total = rdp_data_dependent(votes, noise_std).sum(0)
    usual = total - np.log(delta) / (ORDERS - 1.0)
    if classic:
        return float(usual.min())
    tight = usual - np.log(ORDERS) / (ORDERS - 1.0) + np.log1p(-1.0 / ORDERS)
    return float(max(tight.min(), 0.0))


def rdp_data_dependent(votes: NDArray[np.int64], noise_std: float) -> NDArray[np.float64]:
    """Renyi divergence of each query at each of ``ORDERS``, shape (m, orders): the lesser of bound and alpha / sigma^2."""
    variance = float(noise_std) ** 2
    usual = ORDERS / variance
    log_q = log_flip_bound(votes, noise_std)[:, None]
    with np.errstate(all="ignore"):
        mu2 = np.sqrt(-variance * log_q)
        mu1 = mu2 + 1.0
        e1, e2 = mu1 / variance, mu2 / variance
        limit = (mu2 - 1.0) * e2 - mu2 * (np.log1p(1.0 / (mu1 - 1.0)) + np.log1p(1.0 / (mu2 - 1.0)))
        fits = (mu1 > ORDERS) & (mu2 > 1.0) & (-log_q > e2) & (log_q <= limit)
        log_rest = np.log1p(-np.exp(log_q))
        log_a = log_rest - np.log1p(-np.exp((log_q + e2) * (mu2 - 1.0) / mu2))
        log_b = e1 - log_q / (mu1 - 1.0)
        terms = (log_rest + (ORDERS - 1.0) * log_a, log_q + (ORDERS - 1.0) * log_b)
        bound = np.logaddexp(*terms) / (ORDERS - 1.0)
    return np.where(fits & np.isfinite(bound), np.minimum(bound, usual), usual)


def log_flip_bound(votes: NDArray[np.int64], noise_std: float) -> NDArray[np.float64]:
    """Natural logarithm of q~, shape (m,): the bound on the probability of another label, at most 1 - 1/classes."""
    from scipy.special import log_ndtr  # here, since only the worker calls this

    first = votes.argmax(1)
    behind = np.take_along_axis(votes, first[:, None], 1) - votes
    logs = log_ndtr(-behind / (np.sqrt(2.0) * noise_std))
    np.put_along_axis(logs, first[:, None], -np.inf, 1)
    return np.asarray(np.minimum(np.logaddexp.reduce(logs, axis=1), np.log1p(-1.0 / votes.shape[1])))
