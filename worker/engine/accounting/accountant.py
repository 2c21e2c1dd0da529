"""What a list of events cost: counted one way, checked two others.

dp-accounting's PLD counts. Opacus checks: PLD must not exceed its RDP bound, nor lie below the lower estimate of its
PRV. Every multiplier goes in as a Python float: dp-accounting 0.6.0 silently returns a wrong epsilon for other number
types inside a composed event (METHODS.md 5.3).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

from worker.engine.errors import AccountingProblem
from worker.engine.results import PrivacyEvent

INTERVAL = 1e-4
"""Width of the cells into which PLD cuts the privacy loss."""

TOLERANCE = 1e-3
"""How far PLD may exceed RDP before a claim is refused."""

_CELLS = 0.2
_WIDE = 1e-2
_PRV_ERROR = 0.01
_ORDERS = [1.005, 1.01, 1.02, 1.03, 1.05, 1.07]
_HIGH_ORDERS = [72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 768, 1024]


def epsilon_pld(events: Sequence[PrivacyEvent], delta: float, *, interval: float = INTERVAL) -> float:
    """Epsilon that the events spend at this delta, by privacy loss distributions; add-or-remove adjacency.

    No event spends 0; an event without noise spends infinity. Cells are ``interval`` wide, or narrower where the loss
    of one step hardly spreads over one cell: there, wide cells count far too much.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    plain = _merged(events)
    if any(noise <= 0 for noise, _, _ in plain):
        return math.inf
    total = None
    for noise, probability, steps in plain:
        width = min(interval, _CELLS * _spread(noise, probability))
        one = pld.from_gaussian_mechanism(noise, sampling_prob=probability, value_discretization_interval=width)
        composed = one.self_compose(steps)
        total = composed if total is None else total.compose(composed)
    return 0.0 if total is None else float(total.get_epsilon_for_delta(float(delta)))


def epsilon_rdp(events: Sequence[PrivacyEvent], delta: float) -> float:
    """Epsilon by Opacus' RDP accountant, with more orders than its default for very small and very large epsilons."""
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = [_plain(event) for event in events]
    orders = [*_ORDERS, *RDPAccountant.DEFAULT_ALPHAS, *_HIGH_ORDERS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when the first or last order is best; the bound stays valid
        return float(accountant.get_epsilon(float(delta), alphas=orders))


def epsilon_prv(events: Sequence[PrivacyEvent], delta: float) -> tuple[float, float]:
    """Lower and upper estimate of epsilon by Opacus' PRV accountant. It raises at some ordinary settings."""
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [_plain(event) for event in events]
    error = float(delta) / 1000.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow in the far tail; what matters is checked below
        composed = accountant._get_dprv(eps_error=_PRV_ERROR, delta_error=error)
        lower, _, upper = composed.compute_epsilon(float(delta), error, _PRV_ERROR)
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise ArithmeticError("The PRV accountant found no finite estimate.")
    return float(lower), float(upper)


def check(events: Sequence[PrivacyEvent], delta: float, *, counted: float | None = None) -> Mapping[str, float | str]:
    """What all accountants say, under ``pld``, ``rdp``, ``prv_lower``, ``prv_upper``, ``delta`` and ``note``.

    ``counted`` is the PLD epsilon of these events where the caller has it already.

    Raises:
        AccountingProblem: PLD exceeds RDP by more than 1e-3, or lies below PRV's lower estimate.
    """
    counted = epsilon_pld(events, delta) if counted is None else counted
    bound = epsilon_rdp(events, delta)
    found: dict[str, float | str] = {"pld": counted, "rdp": bound, "delta": float(delta)}
    if counted > bound + TOLERANCE:
        raise AccountingProblem(_disagreement(f"PLD says {counted:.4f}, more than the RDP bound {bound:.4f}"))
    try:
        lower, upper = epsilon_prv(events, delta)
    except Exception as problem:  # whatever it raises, PRV is only the second check
        found["note"] = f"PRV gave no answer ({type(problem).__name__}); checked by RDP alone."
        return found
    if counted < lower:
        raise AccountingProblem(_disagreement(f"PLD says {counted:.4f}, less than PRV's lower estimate {lower:.4f}"))
    return {**found, "prv_lower": lower, "prv_upper": upper, "note": "PLD counted; RDP and PRV agree."}


def joint(events: Sequence[PrivacyEvent]) -> PrivacyEvent:
    """The one event that several runs amount to when they share their Poisson batches and each draws its own noise.

    sigma_eff = (sum of sigma^-2)^(-1/2) (METHODS.md 5.2, 5.5). Raises ValueError where the batches are not the same.
    """
    first = events[0]
    if any((e.sampling_probability, e.steps) != (first.sampling_probability, first.steps) for e in events):
        raise ValueError("Only runs that share their batches are one joint event. Join them by stack.")
    if any(event.noise_multiplier <= 0 for event in events):
        return PrivacyEvent(0.0, first.sampling_probability, first.steps)
    effective = sum(float(event.noise_multiplier) ** -2 for event in events) ** -0.5
    return PrivacyEvent(effective, first.sampling_probability, first.steps)


def epsilon_all_published(stacks: Sequence[Sequence[PrivacyEvent]], delta: float) -> float:
    """Epsilon if every private run of every stack were published: joint within a stack, composed over stacks, by PLD.

    ``stacks`` holds the events of each stack's private runs. The cells are wide, since epsilon may be large here; wide
    cells only ever count too much.
    """
    return epsilon_pld([joint(events) for events in stacks if events], delta, interval=_WIDE)


def epsilon_of_choice(events: Sequence[PrivacyEvent], tries: float, delta: float) -> float:
    """Epsilon if the number of tries is drawn beforehand (Poisson, mean ``tries``) and only the best run is published.

    By RDP (Papernot and Steinke 2022, Theorem 6). Holds where every try has batches and noise of its own, ``events`` are
    those of the costliest try, and the score comes from rows outside training. Infinite for an event without noise.
    """
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    plain = _merged(events)
    if any(noise <= 0 for noise, _, _ in plain):
        return math.inf
    steps = [
        dp_event.SelfComposedDpEvent(
            dp_event.PoissonSampledDpEvent(probability, dp_event.GaussianDpEvent(noise)), count
        )
        for noise, probability, count in plain
    ]
    accountant = RdpAccountant()
    accountant.compose(dp_event.RepeatAndSelectDpEvent(dp_event.ComposedDpEvent(steps), float(tries), math.inf))
    return float(accountant.get_epsilon(float(delta)))


def _spread(noise: float, probability: float) -> float:
    """Standard deviation of one step's privacy loss, roughly: q sqrt(exp(sigma^-2) - 1)."""
    return probability * math.sqrt(math.expm1(min(noise**-2, 50.0)))


def _plain(event: PrivacyEvent) -> tuple[float, float, int]:
    return float(event.noise_multiplier), float(event.sampling_probability), int(event.steps)


def _merged(events: Sequence[PrivacyEvent]) -> list[tuple[float, float, int]]:
    """Events with the same noise and coins as one, with all their steps; order does not matter to what is spent."""
    steps: dict[tuple[float, float], int] = {}
    for noise, probability, count in map(_plain, events):
        steps[noise, probability] = steps.get((noise, probability), 0) + count
    return [(noise, probability, count) for (noise, probability), count in steps.items()]


def _disagreement(what: str) -> str:
    return (
        f"The accountants disagree: {what}. No claim can be made for this run. Choose another epsilon or other steps."
    )
