"""Metrics per group against Fairlearn and scikit-learn, from the logits and from the counts."""

from __future__ import annotations

from dataclasses import replace

import fairlearn.metrics as fairlearn
import numpy as np
import pytest
from sklearn import metrics as sk

from tests.builders import make_data
from worker.engine.audits.execute import run_results
from worker.engine.audits.measure import contributions
from worker.engine.audits.outcomes import Cell, outcomes_of
from worker.engine.catalogue import METRICS
from worker.engine.metrics.base import counts_of
from worker.engine.results import RunSpec

BY_KEY = {metric.key: metric for metric in METRICS}


def _case(seed: int, classes: int = 2):
    data = make_data(900, seed)
    if classes == 3:
        data = replace(data, classes=3, labels=(data.labels + data.row_ids) % 3)
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(1, len(data.labels), 1 if classes == 2 else 3)).round(1).astype(np.float32)
    if classes == 2:
        logits += 0.8 * data.labels[None, :, None].astype(np.float32)
    return data, logits


def _counts(data, logits, group):
    spec = type("Spec", (), {"runs": (RunSpec("r", "non-private", 0, None, 0.0, 0, {}),)})()
    result = run_results(spec, data, (None,), logits)[0]
    return counts_of([[row for row in result.statistics if row.group == group and row.part == "test"]])


def _cell(rows):
    return Cell("", None, rows, None, len(rows), np.ones(len(rows)))


def _calibration_error(truth, score):
    """By its definition, one bin after another."""
    total = 0.0
    for low in np.arange(10) / 10:
        inside = (score >= low) & (score < low + 0.1 + (low > 0.85))
        if inside.any():
            total += inside.mean() * abs(score[inside].mean() - truth[inside].mean())
    return total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("group", ["everyone", "sex=Female", "race=Black"])
def test_two_classes_agree_with_the_libraries(seed, group):
    data, logits = _case(seed)
    test = data.parts == 2
    rows = np.flatnonzero(next(g.member for g in data.groups if g.key == group) & test)
    truth, margin = data.labels[rows], logits[0, rows, 0].astype(float)
    score, said = 1 / (1 + np.exp(-margin)), (margin > 0).astype(int)
    expected = {
        "accuracy": sk.accuracy_score(truth, said),
        "balanced_accuracy": sk.balanced_accuracy_score(truth, said),
        "loss": sk.log_loss(truth, score),
        "brier_score": sk.brier_score_loss(truth, score),
        "calibration_error": _calibration_error(truth, score),
        "selection_rate": fairlearn.selection_rate(truth, said),
        "true_positive_rate": fairlearn.true_positive_rate(truth, said),
        "false_negative_rate": fairlearn.false_negative_rate(truth, said),
        "false_positive_rate": fairlearn.false_positive_rate(truth, said),
        "precision": sk.precision_score(truth, said),
        "auc": sk.roc_auc_score(truth, margin),
    }
    assert set(expected) == set(BY_KEY)
    outcomes, counts = outcomes_of(logits, data.labels, 2), _counts(data, logits, group)
    for key, value in expected.items():
        metric = BY_KEY[key]
        chosen = rows if metric.label is None else rows[truth == metric.label]
        each = contributions(metric, outcomes, _cell(chosen))
        assert each.mean() == pytest.approx(value, abs=1e-9), key
        if metric.counted is not None:
            assert metric.values(counts)[0, 0] == pytest.approx(value, abs=1e-9), key


def test_three_classes_agree_where_they_are_defined():
    data, logits = _case(5, classes=3)
    rows = np.flatnonzero(data.parts == 2)
    truth, said = data.labels[rows], logits[0, rows].argmax(1)
    probability = np.exp(logits[0, rows]) / np.exp(logits[0, rows]).sum(1, keepdims=True)
    expected = {
        "accuracy": sk.accuracy_score(truth, said),
        "balanced_accuracy": sk.balanced_accuracy_score(truth, said),
        "loss": sk.log_loss(truth, probability),
        "brier_score": ((probability - np.eye(3)[truth]) ** 2).sum(1).mean(),
        "calibration_error": _calibration_error(said == truth, probability.max(1)),
    }
    outcomes = outcomes_of(logits, data.labels, 3)
    for key, value in expected.items():
        assert contributions(BY_KEY[key], outcomes, _cell(rows)).mean() == pytest.approx(value, abs=1e-6), key
    assert contributions(BY_KEY["auc"], outcomes, _cell(rows)) == "two_classes_only"


def test_the_spread_of_an_auc_is_that_of_delong():
    """Against the bootstrap over rows, within a tenth."""
    data, logits = _case(7)
    outcomes = outcomes_of(logits, data.labels, 2)
    rows = np.flatnonzero(data.parts == 2)
    each = contributions(BY_KEY["auc"], outcomes, _cell(rows))[0]
    draw = np.random.default_rng(0)
    drawn = [rows[draw.integers(0, len(rows), len(rows))] for _ in range(600)]
    again = [sk.roc_auc_score(data.labels[chosen], logits[0, chosen, 0]) for chosen in drawn]
    assert each.std() / np.sqrt(len(rows)) == pytest.approx(np.std(again), rel=0.1)


def test_the_spread_of_a_precision_is_that_of_the_bootstrap():
    data, logits = _case(8)
    outcomes = outcomes_of(logits, data.labels, 2)
    rows = np.flatnonzero(data.parts == 2)
    each = contributions(BY_KEY["precision"], outcomes, _cell(rows))[0]
    draw = np.random.default_rng(0)
    drawn = [rows[draw.integers(0, len(rows), len(rows))] for _ in range(600)]
    again = [sk.precision_score(data.labels[chosen], logits[0, chosen, 0] > 0) for chosen in drawn]
    assert each.std() / np.sqrt(len(rows)) == pytest.approx(np.std(again), rel=0.1)
