"""Brute force: adding or removing one row, however hostile, moves the sum before noise by no more than is charged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.engine import judge
from tests.engine.builders import make_data, make_spec
from tests.laws.test_every_method import values
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.mechanisms.clipping import ROUNDING
from worker.engine.methods.base import Method
from worker.engine.networks.rows import Rows
from worker.engine.results import EncodedData
from worker.engine.training import add_batch, build_network, mechanism_of, shared_rules

PRIVATE = pytest.mark.parametrize("method", [m for m in METHODS if m.private], ids=lambda method: method.key)
SHAPES = [("logistic", (), "tanh", 2), ("mlp", (8,), "tanh", 2), ("mlp", (8, 5), "relu", 2), ("mlp", (8,), "relu", 3)]
HOSTILE = [0.0, 1e-30, 1e3, 1e18, 1e30, -3e38, np.nan, np.inf, -np.inf]
DTYPES = [(torch.float64, 1e-12), (torch.float32, ROUNDING)]


def with_hostile_rows(data: EncodedData) -> EncodedData:
    """Rows 0 .. 17 are hostile: a value in one column, and in all of them."""
    features = data.features.copy()
    for number, value in enumerate(HOSTILE):
        features[2 * number, 3] = value
        features[2 * number + 1] = value
    return replace(data, features=features)


def sums(
    data: EncodedData, method: Method, shape: tuple[str, tuple[int, ...], str, int], dtype: torch.dtype, clip: float
) -> tuple[float, list[np.ndarray]]:
    """Sensitivity, and the sum before noise of a batch without each row, then of the whole batch."""
    kind, hidden, activation, _ = shape
    runs = [(method.key, 1.0, values(method, clip=clip))] * 2
    spec = make_spec(data, runs, kind=kind, hidden=hidden, activation=activation)
    mechanisms = [mechanism_of(run, spec, METHODS) for run in spec.runs]
    network, rows = build_network(spec, data, NETWORKS, "cpu", dtype), Rows.of(data, "cpu", dtype)
    batch, found = np.arange(40), []
    for left_out in range(len(batch) + 1):
        network.load_release(torch.zeros(2, network.numbers, dtype=dtype))
        add_batch(
            network,
            rows,
            torch.as_tensor(np.delete(batch, left_out) if left_out < 40 else batch),
            shared_rules(mechanisms),
        )
        found.append(judge.of_run(network.release, 1))
    return mechanisms[0].rule.sensitivity, found


@PRIVATE
@pytest.mark.parametrize(("dtype", "rounding"), DTYPES, ids=["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("clip", [0.05, 4.0])
def test_one_row_moves_the_sum_by_at_most_the_sensitivity(
    method: Method, shape: tuple[str, tuple[int, ...], str, int], clip: float, dtype: torch.dtype, rounding: float
) -> None:
    data = with_hostile_rows(make_data(n=60, classes=shape[3]))
    sensitivity, (*others, whole) = sums(data, method, shape, dtype, clip)
    assert np.isfinite(whole).all()
    moves = [float(np.linalg.norm(whole - other)) for other in others]
    assert max(moves) <= clip * (1 + rounding)
    assert max(moves) <= sensitivity
    assert max(moves) > 0.9 * min(clip, 0.3)


@PRIVATE
def test_a_row_that_is_not_finite_adds_nothing_at_all(method: Method) -> None:
    data = with_hostile_rows(make_data(n=60))
    _, (*others, whole) = sums(data, method, SHAPES[1], torch.float32, 1.0)
    for row, value in enumerate(np.repeat(HOSTILE, 2)):
        if not np.isfinite(value):
            np.testing.assert_allclose(whole, others[row], atol=1e-6)


def test_this_test_would_see_a_missing_clip() -> None:
    data = with_hostile_rows(make_data(n=60))
    baseline = next(method for method in METHODS if not method.private)
    _, (*others, whole) = sums(data, baseline, SHAPES[0], torch.float64, 1.0)
    assert max(np.linalg.norm(whole - other) for other in others) > 100
