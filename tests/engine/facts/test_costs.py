"""Costs against brute force over arrays of rows, and the coverage of their intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.builders import make_facts, make_group, statistic
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.intervals import both_spread, sampling_spread, seed_spread, student_quantile
from worker.engine.metrics.accuracy import ACCURACY
from worker.engine.metrics.false_positive_rate import FALSE_POSITIVE_RATE
from worker.engine.metrics.loss import LOSS
from worker.engine.metrics.selection_rate import SELECTION_RATE
from worker.engine.metrics.true_positive_rate import TRUE_POSITIVE_RATE
from worker.engine.results import AuditFacts, MeasurementRow, RunFacts

METRICS = (ACCURACY, LOSS, SELECTION_RATE, TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)


def _find(rows, **wanted):
    return next(row for row in rows if all(getattr(row, key) == value for key, value in wanted.items()))


def _one_seed(labels, base, run, n=None, **changes):
    """Facts of one seed and one group from plain arrays of labels and of who was right."""

    def table(right):
        return tuple(
            statistic("everyone", label, [r for r, known in zip(right, labels, strict=True) if known == label])
            for label in (0, 1)
        )

    runs = (
        RunFacts("b", "non-private", 0, None, None, "finished", table(base)),
        RunFacts("r", "dp-sgd", 0, 1.0, 0.99, "finished", table(run)),
    )
    return AuditFacts((make_group("everyone", n or len(labels)),), runs, seeds_planned=1, **changes)


@pytest.mark.parametrize("seed", range(3))
def test_costs_equal_a_count_over_the_rows(seed):
    draw = np.random.default_rng(seed)
    labels, base, run = (draw.integers(0, 2, 80).tolist() for _ in range(3))
    predicted = {
        name: [label if right else 1 - label for label, right in zip(labels, rights, strict=True)]
        for name, rights in (("base", base), ("run", run))
    }

    def share(name, label=None):
        chosen = [p for p, known in zip(predicted[name], labels, strict=True) if label in (None, known)]
        return sum(chosen) / len(chosen)

    facts = _one_seed(labels, base, run)
    expected = {
        "accuracy": sum(base) / 80 - sum(run) / 80,
        "loss": sum(0.1 if r else 1.0 for r in run) / 80 - sum(0.1 if r else 1.0 for r in base) / 80,
        "selection_rate": share("run") - share("base"),
        "true_positive_rate": share("base", 1) - share("run", 1),
        "false_positive_rate": share("run", 0) - share("base", 0),
    }
    for metric in METRICS:
        row = _find(cost_rows(facts, metric), method="dp-sgd")
        assert row.cost == pytest.approx(expected[metric.key], abs=1e-12)
        assert row.epsilon_spent == 0.99


def test_the_groups_sum_to_everyone():
    facts = make_facts()
    for metric in (ACCURACY, SELECTION_RATE):
        for epsilon in (1.0, 8.0):
            rows = [row for row in cost_rows(facts, metric) if row.epsilon_asked == epsilon]
            whole = _find(rows, group="everyone")
            parts = [row for row in rows if row.group != "everyone"]
            assert sum(row.cost * row.n for row in parts) / whole.n == pytest.approx(whole.cost, abs=1e-12)


def test_the_baseline_comes_first_and_has_no_cost():
    rows = cost_rows(make_facts(), ACCURACY)
    assert [row.method for row in rows[:3]] == ["non-private"] * 3
    assert all(row.cost is None and row.reason == "this is the baseline" for row in rows[:3])
    assert len(rows) == 3 * 3


def test_a_group_below_the_floor_is_withheld_and_still_there():
    rows = cost_rows(make_facts(groups=(("sex=Female", 9), ("sex=Male", 300))), ACCURACY)
    for row in (row for row in rows if row.group == "sex=Female"):
        assert (row.value, row.baseline, row.cost, row.low, row.high) == (None,) * 5
        assert "withheld" in row.reason


def test_a_small_group_keeps_its_numbers_and_is_not_judged():
    row = _find(
        cost_rows(make_facts(groups=(("sex=X", 14), ("sex=Male", 300))), ACCURACY), group="sex=X", method="dp-sgd"
    )
    assert row.cost is not None
    assert row.reason == "n = 14: not enough to judge"


def test_a_rate_without_rows_is_undefined_and_one_with_few_is_not_judged():
    nobody = cost_rows(_one_seed([0] * 40, [1] * 40, [0] * 40), TRUE_POSITIVE_RATE)
    assert all(row.cost is None and "cannot be computed" in row.reason for row in nobody)
    few = _find(cost_rows(_one_seed([0] * 40 + [1] * 4, [1] * 44, [0] * 44), TRUE_POSITIVE_RATE), method="dp-sgd")
    assert few.cost == 1.0
    assert "4 test rows with this label: not enough to judge" in few.reason


def test_diverged_runs_are_left_out_and_counted():
    facts = make_facts()
    runs = tuple(
        replace(run, state="diverged", statistics=()) if run.method == "dp-sgd" and run.seed == 2 else run
        for run in facts.runs
    )
    row = _find(cost_rows(replace(facts, runs=runs), ACCURACY, "seeds"), method="dp-sgd", group="everyone")
    assert row.seeds == 4
    assert "1 of 5 runs diverged" in row.reason
    assert row.low < row.cost < row.high


def test_a_diverged_baseline_takes_its_seed_out():
    facts = make_facts()
    runs = tuple(
        replace(run, state="diverged", statistics=()) if run.method == "non-private" and run.seed == 0 else run
        for run in facts.runs
    )
    assert _find(cost_rows(replace(facts, runs=runs), ACCURACY), method="dp-sgd", group="everyone").seeds == 4


@pytest.mark.parametrize("seeds", [1, 2])
def test_under_three_seeds_only_the_sampling_part_is_given_and_it_says_so(seeds):
    facts = make_facts(seeds=seeds)
    both = _find(cost_rows(facts, ACCURACY, "both"), method="dp-sgd", group="everyone")
    assert both.interval == "sampling"
    assert both.low < both.cost < both.high
    assert "under 3 seeds" in both.reason
    alone = _find(cost_rows(facts, ACCURACY, "seeds"), method="dp-sgd", group="everyone")
    assert alone.low is None
    assert "under 3 seeds" in alone.reason


def test_without_measurements_only_the_seeds_interval_is_known():
    facts = make_facts(measured=False)
    row = _find(cost_rows(facts, ACCURACY, "both"), method="dp-sgd", group="everyone")
    assert row.cost is not None
    assert row.low is None
    assert "still being measured" in row.reason
    assert _find(cost_rows(facts, ACCURACY, "seeds"), method="dp-sgd", group="everyone").low is not None


def test_nothing_finished_is_a_row_with_a_reason():
    facts = make_facts()
    runs = tuple(replace(run, state="waiting", statistics=()) for run in facts.runs)
    assert all(row.cost is None and row.reason for row in cost_rows(replace(facts, runs=runs), ACCURACY))


# -- intervals ------------------------------------------------------------------------------------------------------------


def row_of(each: np.ndarray, sizes: np.ndarray) -> MeasurementRow:
    """The stored sums of differences, shape (seeds, units)."""
    mean = each.mean(axis=0)
    return MeasurementRow(
        method="dp-sgd",
        epsilon=1.0,
        group="everyone",
        label=None,
        part="test",
        quantity="accuracy",
        seeds=tuple(range(len(each))),
        units=each.shape[1],
        rows=int(sizes.sum()),
        total=float(mean.sum()),
        total_squared=float((mean**2).sum()),
        cross=float((mean * sizes).sum()),
        rows_squared=float((sizes**2).sum()),
        total_each_squared=float((each**2).sum(axis=1).mean()),
    )


def test_student_quantiles_are_those_of_the_tables():
    assert student_quantile(0.975, 4) == pytest.approx(2.776, abs=1e-3)
    assert student_quantile(0.975, 9) == pytest.approx(2.262, abs=1e-3)


def test_the_components_equal_an_analysis_of_variance_by_hand():
    draw = np.random.default_rng(1)
    seeds, units = 4, 60
    each = draw.normal(size=(seeds, units)) + draw.normal(size=(seeds, 1)) * 0.5 + draw.normal(size=(1, units))
    row, by_seed = row_of(each, np.ones(units)), each.mean(axis=1)
    of_rows = np.var(each.mean(axis=0), ddof=1) / units
    centred = each - each.mean(axis=0) - by_seed[:, None] + each.mean()
    residual = (centred**2).sum() / ((seeds - 1) * (units - 1)) / (seeds * units)
    assert sampling_spread(row).variance == pytest.approx(of_rows)
    assert seed_spread(by_seed).variance == pytest.approx(np.var(by_seed, ddof=1) / seeds)
    both = both_spread(row, by_seed)
    assert both.variance == pytest.approx(np.var(by_seed, ddof=1) / seeds + of_rows - residual)


def test_both_is_never_narrower_in_variance_than_either_part():
    for seed in range(50):
        each = np.random.default_rng(seed).integers(-1, 2, size=(3, 40)).astype(float)
        row, by_seed = row_of(each, np.ones(40)), each.mean(axis=1)
        both = both_spread(row, by_seed)
        assert both.variance >= max(sampling_spread(row).variance, seed_spread(by_seed).variance) - 1e-15


def coverage(draw, trials, seeds, units, of_seed, of_unit, sizes=None):
    """Share of trials in which the interval holds the true mean difference 0.02."""
    held = 0
    for _ in range(trials):
        n = np.ones(units) if sizes is None else draw.integers(*sizes, units)
        lean = 0.02 + of_seed * draw.normal(size=(seeds, 1)) + of_unit * draw.normal(size=(1, units))
        each = n * lean + np.sqrt(n) * 0.2 * draw.normal(size=(seeds, units))
        by_seed = each.sum(axis=1) / n.sum()
        half = both_spread(row_of(each, n), by_seed).half_width()
        held += abs(by_seed.mean() - 0.02) <= half
    return held / trials


@pytest.mark.parametrize(
    ("seeds", "of_seed", "of_unit"), [(3, 0.01, 0.2), (5, 0.0, 0.3), (5, 0.02, 0.0), (10, 0.01, 0.2)]
)
def test_the_interval_of_both_covers(seeds, of_seed, of_unit):
    found = coverage(np.random.default_rng(seeds), 400, seeds, 200, of_seed, of_unit)
    assert 0.92 <= found <= 1.0


def test_the_interval_covers_where_persons_have_many_rows():
    found = coverage(np.random.default_rng(0), 400, 5, 40, 0.01, 0.3, sizes=(10, 50))
    assert 0.91 <= found <= 1.0


@pytest.mark.proofs
@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
@pytest.mark.parametrize("of_seed", [0.0, 0.005, 0.02])
@pytest.mark.parametrize("of_unit", [0.0, 0.1, 0.4])
def test_the_interval_of_both_covers_everywhere(seeds, of_seed, of_unit):
    found = coverage(np.random.default_rng(7), 4000, seeds, 200, of_seed, of_unit)
    assert 0.925 <= found <= 1.0
