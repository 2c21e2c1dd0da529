"""The acceptance bands of METHODS.md 4.6: the published protocol on Adult and Dutch, five seeds, beside the published
rows. ``make proofs DATA=folder`` names the folder of the tables; the figures are printed."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from tests.privacy.published import Published, adult, dutch
from tests.privacy.two_logits import TWO_LOGITS
from worker.engine.accounting.accountant import epsilon_pld, epsilon_rdp
from worker.engine.audits.execute import execute_stack
from worker.engine.catalogue import METHODS
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.methods.base import TRAINING_PARAMS
from worker.engine.observer import Silent
from worker.engine.results import NetworkSpec, RunSpec, StackSpec, TrainingSize

pytestmark = pytest.mark.proofs
SEEDS = range(5)
SIGMA, CLIP, RATE, DELTA = 1.0, 0.5, 0.01, 1e-6
Accuracies = dict[str, np.ndarray]
"""By method: shape (seeds, 2), men and women, in percent."""


def runs_of(table: Published, seed: int, size: TrainingSize) -> tuple[RunSpec, ...]:
    """Every method with sigma 1 for its gradients and 10 for its counts, and the rates of the paper."""
    found = []
    for method in METHODS:
        values = {param.key: param.default for param in (*TRAINING_PARAMS, *method.params)}
        values |= {"learning_rate": table.global_rate if "global" in method.key else RATE, "clip": CLIP}
        values |= {key: 1.0 for key in ("alignment", "boundary") if key in values}
        joint = SIGMA / Mechanism.of(method.rule(values), 1.0, size).sum_multiplier if method.private else 0.0
        found.append(RunSpec(method.key, method.key, seed, None, joint, 100 * seed + len(found), values))
    return tuple(found)


def accuracies(table: Published) -> Accuracies:
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in SEEDS:
        data = table.data(seed)
        size = TrainingSize(int((data.parts == 0).sum()), 256, 20)
        runs = runs_of(table, seed, size)
        network = NetworkSpec(TWO_LOGITS.key, (256, 256), "tanh")
        spec = StackSpec(runs, network, size, 1000 + seed, 2000 + seed, "eager-cpu", 2)
        for result in execute_stack(spec, data, METHODS, (TWO_LOGITS,), Silent()).runs:
            assert result.state == "finished", result.reason
            rows = [row for row in result.statistics if row.part == "test"]
            right = {key: sum(row.predicted[row.label] for row in rows if row.group == key) for key in ("men", "women")}
            n = {key: sum(row.n for row in rows if row.group == key) for key in right}
            found.setdefault(result.run, []).append((100 * right["men"] / n["men"], 100 * right["women"] / n["women"]))
    return {key: np.array(each) for key, each in found.items()}


def show(table: Published, found: Accuracies) -> None:
    print(f"\n{table.name}: accuracy of men and women in percent, mean and deviation of {len(SEEDS)} seeds; published")
    for key, each in found.items():
        means, spread = each.mean(0), each.std(0, ddof=1)
        printed = "{:.1f} / {:.1f}".format(*table.rows[key]) if key in table.rows else "not published"
        print(f"  {key:24} {means[0]:6.2f} +- {spread[0]:.2f} / {means[1]:6.2f} +- {spread[1]:.2f}   {printed}")
    print(
        json.dumps(
            {"table": table.name, "accuracy": {key: each.mean(0).round(2).tolist() for key, each in found.items()}}
        )
    )


def measured(read: Callable[[], Published | None], name: str) -> Accuracies:
    table = read()
    if table is None:
        pytest.fail(f"The table {name} is not there. Name its folder: make proofs DATA=/folder/of/tables.")
    found = accuracies(table)
    show(table, found)
    for key in ("dp-sgd-global-adapt", "dp-sgd-global"):
        assert np.abs(found[key].mean(0) - table.rows[key]).max() < 1.5, key
    gap = found["dp-sgd-global-adapt"].mean(0) - found["non-private"].mean(0)
    assert np.abs(gap).max() < 1.0, "Global-Adapt lies within 1 point of the baseline"
    assert np.abs(found["non-private"].mean(0) - table.rows["non-private"]).max() < 1.0
    assert np.abs(found["dp-sgd-f"].mean(0) - table.rows["dp-sgd-f"]).max() < 1.5
    return found


def test_adult_lies_in_the_acceptance_bands() -> None:
    men, women = measured(adult, "adult")["dp-sgd"].mean(0)
    assert abs(men - 70.2) < 1.6
    assert abs(women - 88.8) < 1.0


def test_dutch_lies_in_the_acceptance_bands() -> None:
    men, women = measured(dutch, "dutch_census_2001")["dp-sgd"].mean(0)
    assert abs(men - 74.2) < 1.2
    assert abs(women - 62.0) < 5.0


@pytest.mark.parametrize(
    ("batches", "printed"), [(92, (3.4078, 3.1037, 3.4436, 3.1349)), (126, (2.8418, 2.5808, 2.8719, 2.6065))]
)
def test_epsilons_of_the_published_runs_to_four_digits(batches: int, printed: tuple[float, ...]) -> None:
    """Gradients alone, and together with a count of sigma 10: by Opacus' RDP, and by PLD."""
    size = TrainingSize(256 * batches, 256, 20)
    found: list[float] = []
    for key in ("dp-sgd", "dp-sgd-global-adapt"):
        method = next(method for method in METHODS if method.key == key)
        values = {param.key: param.default for param in (*TRAINING_PARAMS, *method.params)}
        joint = SIGMA / Mechanism.of(method.rule(values), 1.0, size).sum_multiplier
        events = Mechanism.of(method.rule(values), joint, size).events
        found += [epsilon_rdp(events, DELTA), epsilon_pld(events, DELTA)]
    print("\nepsilon, RDP and PLD, gradients alone and joint:", [round(value, 4) for value in found])
    np.testing.assert_allclose(found, printed, atol=1e-4)
