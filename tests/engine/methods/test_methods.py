"""Plans of the methods, with a calibration that only remembers what it was asked."""

from __future__ import annotations

import pytest

from worker.engine.catalogue import METHODS
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.methods.base import TRAINING_PARAMS, Budget, Method
from worker.engine.methods.dp_sgd import DP_SGD
from worker.engine.methods.non_private import NON_PRIVATE
from worker.engine.results import Calibration, PrivacyEvent, Release, TrainingSize

SIZE = TrainingSize(units=19536, batch_size=256, epochs=20)


def test_dp_sgd_spends_what_calibration_found() -> None:
    asked = []

    def calibrate(epsilon: float, delta: float, q: float, steps: int) -> Calibration:
        asked.append((epsilon, delta, q, steps))
        return Calibration(1.25, 0.999, {"note": "made up"})

    plan = DP_SGD.plan(Budget(1.0, 1e-6), SIZE, {"clip": 4.0}, calibrate)
    assert asked == [(1.0, 1e-6, 1 / 77, 1540)]
    releases = (Release("sum of scaled gradients", 1.25),)
    assert plan.events == (PrivacyEvent(1.25, 1 / 77, 1540, releases=releases),)
    assert (plan.noise_multiplier, plan.epsilon_spent, plan.check) == (1.25, 0.999, {"note": "made up"})


def test_dp_sgd_without_epsilon_is_refused() -> None:
    with pytest.raises(ValueError, match="epsilon"):
        DP_SGD.plan(Budget(None, 1e-6), SIZE, {"clip": 4.0}, lambda *_: pytest.fail("asked for noise"))


def test_the_baseline_claims_nothing() -> None:
    plan = NON_PRIVATE.plan(Budget(None, 1e-6), SIZE, {}, lambda *_: pytest.fail("asked for noise"))
    assert (plan.noise_multiplier, plan.epsilon_spent, plan.events) == (0.0, None, ())


def test_defaults_lie_in_their_ranges() -> None:
    for param in (*TRAINING_PARAMS, *NON_PRIVATE.params, *DP_SGD.params):
        assert param.problem(param.default) is None
    assert [param.key for param in TRAINING_PARAMS] == ["epochs", "batch_size", "learning_rate", "clip"]


COUNTING = [method for method in METHODS if any(param.key == "count_noise" for param in method.params)]


@pytest.mark.parametrize("method", COUNTING, ids=lambda method: method.key)
def test_releases_of_one_batch_are_one_event_with_the_joint_multiplier(method: Method) -> None:
    """What is drawn for the sum and for each side release adds up to what is charged (METHODS.md 5.2)."""
    values = {param.key: param.default for param in (*TRAINING_PARAMS, *method.params)} | {"count_noise": 3.0}
    plan = method.plan(Budget(1.0, 1e-6), SIZE, values, lambda *_: Calibration(1.25, 0.999, {}))
    [event] = plan.events
    assert len(event.releases) > 1
    assert event.noise_multiplier == 1.25
    together = sum(release.noise_multiplier**-2 for release in event.releases) ** -0.5
    assert together == pytest.approx(1.25, rel=1e-12)
    first, *others = event.releases
    mechanism = Mechanism.of(method.rule(values), 1.25, SIZE)
    assert mechanism.noise_std / mechanism.rule.sensitivity == pytest.approx(first.noise_multiplier)
    for other in others:
        assert other.noise_multiplier == pytest.approx(3.0 * first.noise_multiplier)
        assert mechanism.side_std == pytest.approx(other.noise_multiplier, rel=1.1e-5)
        assert mechanism.side_std >= other.noise_multiplier


def test_sigma_of_the_published_run_is_one_for_the_gradients() -> None:
    """Global-Adapt with sigma 1 and count noise 10 is charged as 0.99504 (METHODS.md 5.3)."""
    method = next(method for method in METHODS if method.key == "dp-sgd-global-adapt")
    values = {param.key: param.default for param in (*TRAINING_PARAMS, *method.params)}
    mechanism = Mechanism.of(method.rule(values), (1 + 10**-2) ** -0.5, SIZE)
    assert mechanism.noise_multiplier == pytest.approx(0.99504, abs=1e-5)
    assert mechanism.sum_multiplier == pytest.approx(1.0)
    assert mechanism.side_multiplier == pytest.approx(10.0)


@pytest.mark.parametrize("method", [m for m in METHODS if not m.private], ids=lambda method: method.key)
def test_methods_without_a_claim_say_so(method: Method) -> None:
    plan = method.plan(Budget(None, 1e-6), SIZE, {}, lambda *_: pytest.fail("asked for noise"))
    assert (plan.noise_multiplier, plan.epsilon_spent, plan.events) == (0.0, None, ())
    assert "privacy" in method.title
