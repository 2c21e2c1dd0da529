"""Clipping rules keep their bound, and a mechanism's event says what its noise and coins are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from worker.engine.mechanisms.clipping import ROUNDING, FlatClip, NoClip
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.results import TrainingSize

SIZE = TrainingSize(units=1000, batch_size=64, epochs=3)


@given(st.floats(1e-3, 1e3), st.floats(0, 2.0**60, width=32), st.sampled_from([torch.float32, torch.float64]))
def test_a_clipped_gradient_is_no_longer_than_the_sensitivity(clip: float, norm: float, dtype: torch.dtype) -> None:
    scale = FlatClip(clip).scale(torch.tensor([[norm]], dtype=dtype))
    assert norm * float(scale) <= FlatClip(clip).sensitivity
    assert 0 < float(scale) <= 1
    if norm <= clip:
        assert float(scale) == pytest.approx(1.0, rel=1e-6)


def test_a_clip_on_half_the_norm_halves() -> None:
    np.testing.assert_allclose(FlatClip(2.0).scale(torch.tensor([[4.0, 1.0, 0.0]])).numpy(), [[0.5, 1.0, 1.0]])


def test_the_event_says_what_is_drawn() -> None:
    mechanism = Mechanism.of(FlatClip(3.0), np.float32(1.5), SIZE)  # type: ignore[arg-type] # a wrong type on purpose
    (event,) = mechanism.events
    assert type(event.noise_multiplier) is float
    assert (event.noise_multiplier, event.sampling_probability, event.steps) == (1.5, 1 / 16, 48)
    assert mechanism.noise_std == pytest.approx(4.5 * (1 + ROUNDING), rel=1e-12)


def test_nothing_bounded_means_nothing_claimed() -> None:
    mechanism = Mechanism.of(NoClip(), 0.0, SIZE)
    assert mechanism.events == ()
    assert mechanism.noise_std == 0.0
    assert math.isinf(mechanism.rule.sensitivity)
