"""Plans of the methods, with a calibration that only remembers what it was asked."""

from __future__ import annotations

import pytest

from worker.engine.methods.base import TRAINING_PARAMS, Budget
from worker.engine.methods.dp_sgd import DP_SGD
from worker.engine.methods.non_private import NON_PRIVATE
from worker.engine.results import Calibration, PrivacyEvent, TrainingSize

SIZE = TrainingSize(units=19536, batch_size=256, epochs=20)


def test_dp_sgd_spends_what_calibration_found() -> None:
    asked = []

    def calibrate(epsilon: float, delta: float, q: float, steps: int) -> Calibration:
        asked.append((epsilon, delta, q, steps))
        return Calibration(1.25, 0.999, {"note": "made up"})

    plan = DP_SGD.plan(Budget(1.0, 1e-6), SIZE, {"clip": 4.0}, calibrate)
    assert asked == [(1.0, 1e-6, 1 / 77, 1540)]
    assert plan.events == (PrivacyEvent(1.25, 1 / 77, 1540),)
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
