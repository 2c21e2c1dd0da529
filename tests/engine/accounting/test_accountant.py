"""Epsilon against published values and exact formulas (METHODS.md 5.3, 5.4)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from worker.engine.accounting import accountant
from worker.engine.errors import AccountingProblem
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.methods.dp_sgd_global_adapt import ScaleBelow
from worker.engine.results import PrivacyEvent

VECTORS = {  # id: sigma, steps, delta, q, Opacus RDP, Opacus PRV, PLD
    "A": (1.12, 14063, 1e-5, 256 / 60000, 2.5187, 2.3203, 2.3103),
    "B": (0.8, 12840, 1e-6, 1 / 214, 5.9025, 5.4318, 5.4216),
    "C": (1.0, 1840, 1e-6, 1 / 92, 3.4078, 3.1138, 3.1037),
    "D": (1.0, 2520, 1e-6, 1 / 126, 2.8418, 2.5909, 2.5808),
    "E": (0.8, 38160, 1e-6, 1 / 636, 3.2126, 2.8912, 2.8813),
    "F": (1.0, 1000, 1e-5, 0.01, 2.1014, 1.8384, 1.8282),
    "G": (2.0, 10000, 1e-5, 0.01, 2.3529, 2.1728, 2.1628),
    "H": (0.7, 20000, 1e-6, 0.001, 2.7677, 2.0313, 2.0212),
    "I": (4.0, 1000, 1e-5, 0.1, 3.7362, 3.4545, 3.4443),
    "J": (10.0, 100, 1e-5, 1.0, 4.7285, 4.3874, 4.3772),
    "K": (3.730631634944469, 1, 1e-5, 1.0, 1.0926, 1.0101, 1.0000),
    "L": (8.0, 500, 1e-6, 0.05, 0.6243, 0.5866, 0.5765),
    "M": (0.5, 200, 1e-5, 0.02, 14.3521, 12.2149, 12.2040),
    "N": (70.71067811865476, 300, 1e-5, 1.0, 0.9901, 0.9159, 0.9058),
    "O": (0.8, 12809, 1e-6, 1 / 213.4736, 5.9111, 5.4398, 5.4296),
}
QUICK = ("C", "F", "K", "L")
ALL = [pytest.param(key, marks=() if key in QUICK else pytest.mark.proofs) for key in VECTORS]


@pytest.mark.parametrize("key", ALL)
def test_published_values(key: str) -> None:
    sigma, steps, delta, q, rdp, prv, pld = VECTORS[key]
    said = accountant.check((PrivacyEvent(sigma, q, steps),), delta)
    assert said["pld"] == pytest.approx(pld, abs=1e-3)
    assert said["rdp"] == pytest.approx(rdp, abs=1e-3 if key != "M" else 7e-3)  # our extra orders may only lower it
    assert said["prv_upper"] == pytest.approx(prv, abs=1e-3)
    assert said["rdp"] <= rdp + 1e-3


JOINT = {  # sigma of the gradients, of the counts, steps, delta, q, then RDP and PLD of the joint event
    "MNIST, count noise 10": (0.8, 10.0, 12840, 1e-6, 1 / 214, 5.9509, 5.4648),
    "MNIST, count noise 8": (0.8, 8.0, 12840, 1e-6, 1 / 214, 5.9787, 5.4893),
    "Adult": (1.0, 10.0, 1840, 1e-6, 1 / 92, 3.4436, 3.1349),
    "Dutch": (1.0, 10.0, 2520, 1e-6, 1 / 126, 2.8719, 2.6065),
    "CelebA": (0.8, 10.0, 38160, 1e-6, 1 / 636, 3.2389, 2.9038),
    "counts of 10": (1.0, 10.0, 1000, 1e-5, 0.01, 2.1253, 1.8474),
    "counts of 2": (1.0, 2.0, 1000, 1e-5, 0.01, 2.7488, 2.3515),
    "counts of 1": (1.0, 1.0, 1000, 1e-5, 0.01, 5.2595, 4.4808),
    "counts of 0.5": (1.0, 0.5, 1000, 1e-5, 0.01, 22.0836, 19.2384),
    "full batch": (10.0, 10.0, 100, 1e-5, 1.0, 7.0774, 6.5730),
}
QUICK_JOINT = ("Adult", "counts of 1", "full batch")


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=() if key in QUICK_JOINT else pytest.mark.proofs) for key in JOINT]
)
def test_a_count_on_the_same_batch_is_charged_jointly(key: str) -> None:
    """The event of DPSGD-Global-Adapt, as planned, against METHODS.md 5.3."""
    gradients, counts, steps, delta, q, rdp, pld = JOINT[key]
    rule = ScaleBelow(1.0, 50.0, 0.1, 1.0, side_noise=counts / gradients)
    joint = (gradients**-2 + counts**-2) ** -0.5
    mechanism = Mechanism(rule, joint, q, steps)
    assert mechanism.sum_multiplier == pytest.approx(gradients)
    assert mechanism.side_multiplier == pytest.approx(counts)
    assert accountant.epsilon_pld(mechanism.events, delta) == pytest.approx(pld, abs=1e-3)
    found = accountant.epsilon_rdp(mechanism.events, delta)
    assert found <= rdp + 1e-3
    assert found == pytest.approx(rdp, abs=1e-3 if rdp < 10 else 0.05)  # our extra orders may only lower it
    apart = (PrivacyEvent(gradients, q, steps), PrivacyEvent(counts, q, steps))
    if q < 1:
        assert accountant.epsilon_pld(apart, delta) < pld - 5e-3, "two events would have counted too little"


@pytest.mark.parametrize(("noise", "probability", "expected"), [(1.0, 0.01, 1.8282)])
@pytest.mark.parametrize("number", [int, np.int64, np.float32, np.float64, float])
def test_the_type_of_a_multiplier_does_not_matter(
    number: type, noise: float, probability: float, expected: float
) -> None:
    event = PrivacyEvent(number(noise), probability, 1000)
    assert accountant.epsilon_pld((event,), 1e-5) == pytest.approx(expected, abs=1e-3)
    shared = accountant.joint((event, PrivacyEvent(number(10), probability, 1000)))
    assert type(shared.noise_multiplier) is float
    assert accountant.epsilon_pld((shared,), 1e-5) == pytest.approx(1.8474, abs=1e-3)


@pytest.mark.proofs
def test_the_library_still_needs_floats() -> None:
    """Why every multiplier is made a Python float. If this fails, the library was mended."""
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    def epsilon(noise: float) -> float:
        step = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(1.0), dp_accounting.GaussianDpEvent(noise)])
        told = RdpAccountant().compose(dp_accounting.PoissonSampledDpEvent(0.01, step), 1000)
        return float(told.get_epsilon(1e-5))

    assert epsilon(10.0) == pytest.approx(2.1253, abs=1e-3)
    assert epsilon(10) == pytest.approx(0.1097, abs=1e-3)


@pytest.mark.parametrize(("other", "pld"), [(10.0, 1.8474), (2.0, 2.3515), (1.0, 4.4808)])
def test_runs_that_share_batches_are_one_joint_event(other: float, pld: float) -> None:
    joint = accountant.joint((PrivacyEvent(1.0, 0.01, 1000), PrivacyEvent(other, 0.01, 1000)))
    assert accountant.epsilon_pld((joint,), 1e-5) == pytest.approx(pld, abs=1e-3)
    with pytest.raises(ValueError, match="batches"):
        accountant.joint((PrivacyEvent(1.0, 0.01, 1000), PrivacyEvent(1.0, 0.02, 1000)))


def test_all_runs_published_cost_far_more_than_one() -> None:
    """Five runs a seed that share batches, five seeds: 74 by PLD where each run alone claims 3.1 (METHODS.md 5.5)."""
    run = PrivacyEvent(1.0, 1 / 92, 1840)
    assert accountant.epsilon_all_published([[run] * 5], 1e-6) == pytest.approx(30.8, abs=0.1)
    assert accountant.epsilon_all_published([[run] * 5] * 5, 1e-6) == pytest.approx(74.1, abs=0.2)
    assert accountant.epsilon_rdp([accountant.joint([run] * 5)], 1e-6) == pytest.approx(34.7, abs=0.5)


def test_small_losses_get_narrower_cells() -> None:
    """At 1e-4 PLD counts 0.0099 here, above the RDP bound: cells wider than the loss of a step count too much."""
    said = accountant.check((PrivacyEvent(160.0, 1 / 214, 12840),), 1e-6)
    assert 0.005 < float(said["pld"]) < float(said["rdp"]) + 1e-4


def test_edges() -> None:
    assert accountant.epsilon_pld((), 1e-5) == 0.0
    assert math.isinf(accountant.epsilon_pld((PrivacyEvent(0.0, 0.1, 10),), 1e-5))
    two = accountant.epsilon_pld((PrivacyEvent(1.0, 0.01, 400), PrivacyEvent(1.0, 0.01, 600)), 1e-5)
    assert two == pytest.approx(1.8282, abs=1e-3)


EVENT = (PrivacyEvent(1.0, 0.01, 1000),)


@pytest.mark.parametrize("counted", [2.2, 1.7])
def test_accountants_that_disagree_refuse_the_claim(counted: float) -> None:
    with pytest.raises(AccountingProblem, match="disagree"):
        accountant.check(EVENT, 1e-5, counted=counted)


def test_a_prv_that_raises_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> tuple[float, float]:
        raise RuntimeError("Discrete mean differs significantly from continuous mean.")

    monkeypatch.setattr(accountant, "epsilon_prv", broken)
    said = accountant.check(EVENT, 1e-5)
    assert "RuntimeError" in str(said["note"])
    assert "prv_lower" not in said


@pytest.mark.parametrize(("tries", "expected"), [(2, 4.119), (5, 5.165), (10, 6.767), (25, 11.31)])
def test_a_choice_paid_for_by_random_tries_costs_what_the_paper_says(tries, expected):
    """METHODS.md 5.5: the Adult setting, one run 3.4078 by RDP, the number of tries Poisson."""
    run = PrivacyEvent(1.0, 1 / 92, 1840)
    assert accountant.epsilon_of_choice([run], tries, 1e-6) == pytest.approx(expected, rel=2e-3)
