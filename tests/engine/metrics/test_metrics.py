"""Each metric by hand, its direction, and what is undefined."""

from __future__ import annotations

import pytest

from tests.builders import statistic
from worker.engine.catalogue import METRICS
from worker.engine.metrics import reasons
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.auc import AUC
from worker.engine.metrics.balanced_accuracy import BALANCED_ACCURACY
from worker.engine.metrics.false_positive_rate import FALSE_POSITIVE_RATE
from worker.engine.metrics.precision import PRECISION
from worker.engine.metrics.true_positive_rate import TRUE_POSITIVE_RATE
from worker.engine.results import StatisticRow

COUNTED = tuple(metric for metric in METRICS if metric.counted is not None)
# six rows: labels 0 0 0 0 1 1, right 1 1 1 0 1 0, so predicted 0 0 0 1 1 0
ROWS = (statistic("everyone", 0, [1, 1, 1, 0]), statistic("everyone", 1, [1, 0], squared_error=0.6))


def test_values_by_hand():
    assert {metric.key: metric.value(ROWS).value for metric in COUNTED} == {
        "accuracy": 4 / 6,
        "balanced_accuracy": (3 / 4 + 1 / 2) / 2,
        "loss": pytest.approx((4 * 0.1 + 2 * 1.0) / 6, abs=0.2),
        "brier_score": pytest.approx(0.1),
        "selection_rate": 2 / 6,
        "true_positive_rate": 1 / 2,
        "false_negative_rate": 1 / 2,
        "false_positive_rate": 1 / 4,
        "precision": 1 / 2,
    }


def test_a_cost_is_positive_where_privacy_harms():
    harmed = {metric.key: metric.cost(0.75, 0.5) > 0 for metric in METRICS}
    better_when_higher = {"accuracy", "balanced_accuracy", "true_positive_rate", "precision", "auc"}
    assert {key for key, positive in harmed.items() if positive} == better_when_higher


@pytest.mark.parametrize("metric", COUNTED, ids=lambda metric: metric.key)
def test_without_rows_there_is_a_reason_and_no_value(metric):
    found = metric.value(())
    assert found.value is None
    assert found.code in reasons.WORDS
    assert found.reason == reasons.words(found.code)


def test_a_zero_denominator_is_undefined():
    only_negatives = (ROWS[0],)
    assert TRUE_POSITIVE_RATE.value(only_negatives).code == reasons.NO_LABEL
    assert BALANCED_ACCURACY.value(only_negatives).code == reasons.NO_LABEL
    assert FALSE_POSITIVE_RATE.value(only_negatives).value == 1 / 4
    nobody = (statistic("everyone", 0, [1, 1]), statistic("everyone", 1, [0, 0]))
    assert PRECISION.value(nobody).code == reasons.NOBODY_PREDICTED
    assert TRUE_POSITIVE_RATE.value(nobody).value == 0.0


def test_with_three_classes_what_needs_two_is_undefined():
    rows = [StatisticRow("everyone", label, "test", 10, (5, 3, 2), 1.0, 0.0, 0.0, 0.0) for label in range(3)]
    assert ACCURACY.value(rows).value == 10 / 30
    assert BALANCED_ACCURACY.value(rows).value == pytest.approx(10 / 30)
    assert TRUE_POSITIVE_RATE.value(rows).value == 3 / 10
    assert FALSE_POSITIVE_RATE.value(rows).code == reasons.TWO_CLASSES


def test_a_metric_from_logits_is_not_made_from_counts():
    with pytest.raises(ValueError, match="cannot be computed from counts"):
        AUC.value(ROWS)


def test_keys_are_unique_and_helps_are_sentences():
    assert len({metric.key for metric in METRICS}) == len(METRICS)
    assert all(metric.help.endswith(".") and metric.gap_title for metric in METRICS)
