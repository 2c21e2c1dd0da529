"""Each metric by hand, its direction, and what is undefined."""

from __future__ import annotations

import pytest

from tests.builders import statistic
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.false_positive_rate import FALSE_POSITIVE_RATE
from worker.engine.metrics.loss import LOSS
from worker.engine.metrics.selection_rate import SELECTION_RATE
from worker.engine.metrics.true_positive_rate import TRUE_POSITIVE_RATE
from worker.engine.results import StatisticRow

ALL = (ACCURACY, LOSS, SELECTION_RATE, TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)
# six rows: labels 0 0 0 0 1 1, right 1 1 1 0 1 0, so predicted 0 0 0 1 1 0
ROWS = (statistic("everyone", 0, [1, 1, 1, 0]), statistic("everyone", 1, [1, 0]))


def test_values_by_hand():
    found = {metric.key: metric.value(ROWS).value for metric in ALL}
    assert found == {
        "accuracy": 4 / 6,
        "loss": pytest.approx((4 * 0.1 + 2 * 1.0) / 6),
        "selection_rate": 2 / 6,
        "true_positive_rate": 1 / 2,
        "false_positive_rate": 1 / 4,
    }


def test_a_cost_is_positive_where_privacy_harms():
    costs = {metric.key: metric.cost(0.75, 0.5) for metric in ALL}
    assert costs == {
        "accuracy": 0.25,
        "loss": -0.25,
        "selection_rate": -0.25,
        "true_positive_rate": 0.25,
        "false_positive_rate": -0.25,
    }


@pytest.mark.parametrize("metric", ALL)
def test_without_rows_there_is_a_reason_and_no_value(metric):
    found = metric.value(())
    assert found.value is None
    assert found.reason


def test_a_zero_denominator_is_undefined():
    only_negatives = (ROWS[0],)
    assert TRUE_POSITIVE_RATE.value(only_negatives).value is None
    assert FALSE_POSITIVE_RATE.value(only_negatives).value == 1 / 4


def test_with_three_classes_the_false_positive_rate_is_undefined():
    rows = [StatisticRow("everyone", label, "test", 10, (5, 3, 2), 1.0, 0.0, 0.0, 0.0) for label in range(3)]
    assert ACCURACY.value(rows).value == 10 / 30
    assert TRUE_POSITIVE_RATE.value(rows).value == 3 / 10
    assert FALSE_POSITIVE_RATE.value(rows).reason == "cannot be computed: it is defined for two classes only"


def test_keys_are_unique_and_helps_are_sentences():
    assert len({metric.key for metric in ALL}) == len(ALL)
    assert all(metric.help.endswith(".") for metric in ALL)
