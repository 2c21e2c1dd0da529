"""Statistics against counting by hand, and sums of groups against the whole."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.engine.builders import make_data, make_spec
from worker.engine.audits import logits as files
from worker.engine.audits.execute import execute_stack, run_results
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.observer import Silent
from worker.engine.results import PARTS, EncodedData, StatisticRow

RUNS = [
    ("non-private", 0.0, {"learning_rate": 0.5}),
    ("dp-sgd", 1.0, {"learning_rate": 0.2, "clip": 1.0}),
    ("dp-sgd", 0.0, {"learning_rate": 1e30, "clip": 1.0}),
]


def by_hand(data: EncodedData, logits: np.ndarray, cell: StatisticRow) -> list[tuple[int, float, list[float]]]:
    """(predicted, loss, probabilities) of each row of a cell."""
    member = next(group.member for group in data.groups if group.key == cell.group)
    found = []
    for row in range(len(data.labels)):
        if member[row] and data.labels[row] == cell.label and PARTS[data.parts[row]] == cell.part:
            scores = [float(score) for score in logits[row]]
            scores = [0.0, *scores] if len(scores) == 1 else scores
            total = sum(math.exp(score) for score in scores)
            shares = [math.exp(score) / total for score in scores]
            found.append((scores.index(max(scores)), -math.log(shares[cell.label]), shares))
    return found


@pytest.mark.parametrize("classes", [2, 3])
def test_statistics_are_what_counting_by_hand_gives(classes: int) -> None:
    data = make_data(n=90, classes=classes)
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(2, 90, 1 if classes == 2 else classes)).astype(np.float32)
    results = run_results(make_spec(data, RUNS[:2]), data, [None, None], logits)
    assert len(results[0].statistics) == len(data.groups) * classes * len(PARTS)
    for before, row in zip(results[0].statistics, results[1].statistics, strict=True):
        base, run = by_hand(data, logits[0], row), by_hand(data, logits[1], row)
        assert (row.n, before.n) == (len(run), len(base))
        assert row.predicted == tuple(sum(r[0] == c for r in run) for c in range(classes))
        assert row.loss == pytest.approx(sum(r[1] for r in run))
        assert row.loss_squared == pytest.approx(sum(r[1] ** 2 for r in run))
        target = [float(c == row.label) for c in range(classes)]
        brier = [sum((p - t) ** 2 for p, t in zip(r[2], target, strict=True)) for r in run]
        assert row.squared_error == pytest.approx(sum(brier) / (2 if classes == 2 else 1))
        assert row.score == pytest.approx(sum(r[2][1 if classes == 2 else row.label] for r in run))
        right = [(b[0] == row.label, r[0] == row.label) for b, r in zip(base, run, strict=True)]
        counts = (row.both_right, row.baseline_only_right, row.run_only_right, row.both_wrong)
        assert counts == tuple(
            right.count(pair) for pair in [(True, True), (True, False), (False, True), (False, False)]
        )
        differences = [b[1] - r[1] for b, r in zip(base, run, strict=True)]
        assert row.loss_difference == pytest.approx(sum(differences))
        assert row.loss_difference_squared == pytest.approx(sum(d * d for d in differences))
        assert before.both_right is None
        assert before.loss_difference is None


def test_groups_add_up_to_the_whole() -> None:
    data = make_data(n=300)
    result = execute_stack(make_spec(data, RUNS[:2]), data, METHODS, NETWORKS, Silent())
    for run in result.runs:
        assert sum(row.n for row in run.statistics if row.group == "everyone") == 300
        for label in (0, 1):
            for part in PARTS:
                rows = {row.group: row for row in run.statistics if (row.label, row.part) == (label, part)}
                whole, a, b = rows["everyone"], rows["sex=a"], rows["sex=b"]
                assert whole.n == a.n + b.n == sum(whole.predicted)
                assert whole.predicted == tuple(x + y for x, y in zip(a.predicted, b.predicted, strict=True))
                assert whole.loss == pytest.approx(a.loss + b.loss, rel=1e-12)


def test_diverged_runs_have_a_reason_and_no_statistics() -> None:
    data = make_data(n=300)
    result = execute_stack(make_spec(data, RUNS, activation="relu"), data, METHODS, NETWORKS, Silent())
    assert [run.state for run in result.runs] == ["finished", "finished", "diverged"]
    assert result.runs[2].reason == (
        "Diverged at step 10. A weight grew beyond a million. Choose a smaller learning rate."
    )
    assert result.runs[2].statistics == ()
    assert result.runs[1].statistics[0].both_right is not None


def test_without_a_baseline_there_is_nothing_to_join() -> None:
    data = make_data(n=60)
    logits = np.zeros((2, 60, 1), np.float32)
    results = run_results(make_spec(data, RUNS[:2]), data, [10, None], logits)
    assert results[0].state == "diverged"
    assert results[1].statistics[0].both_right is None


def test_empty_groups_keep_their_rows() -> None:
    data = make_data(n=60)
    none = replace(data.groups[1], key="sex=c", member=np.zeros(60, bool))
    results = run_results(
        make_spec(data), replace(data, groups=(*data.groups, none)), [None], np.zeros((1, 60, 1), np.float32)
    )
    empty = [row for row in results[0].statistics if row.group == "sex=c"]
    assert len(empty) == 6
    assert all(row.n == 0 and row.loss == 0.0 and row.predicted == (0, 0) for row in empty)


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_survive_the_file(classes: int) -> None:
    data = make_data(n=200, classes=classes)
    result = execute_stack(make_spec(data, RUNS, activation="relu"), data, METHODS, NETWORKS, Silent())
    assert result.logits.shape == (3, 80, 1 if classes == 2 else 3)
    np.testing.assert_array_equal(result.rows, data.row_ids[data.parts != 0])
    table = files.from_bytes(files.to_bytes(result, ["a1", "b2", "c3"]))
    np.testing.assert_array_equal(table.rows, result.rows)
    assert set(table.logits) == {
        run for run, done in zip(["a1", "b2", "c3"], result.runs, strict=True) if done.state == "finished"
    }
    np.testing.assert_array_equal(table.logits["b2"], result.logits[1])
    assert table.logits["b2"].dtype == np.float32


def test_extreme_logits_stay_finite() -> None:
    values = np.array([[[1e4], [-1e4], [0.0]]], np.float32)
    logs = files.log_probabilities(values)
    loss = files.losses(logs, np.array([0, 0, 1]))
    np.testing.assert_allclose(loss, [[-math.log(1e-12), 0.0, math.log(2)]])
    np.testing.assert_array_equal(files.predictions(values), [[1, 0, 0]])
    assert np.isfinite(np.exp(logs)).all()
