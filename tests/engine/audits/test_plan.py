"""Questions: every bad field, the default delta, seeds, stacks, forecasts and the events of all runs together."""

from __future__ import annotations

import json
import math
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import make_group
from worker.engine.audits.plan import (
    Question,
    check_question,
    claim,
    default_delta,
    forecast,
    plan_stacks,
    published_events,
    smallest_detectable,
    stack_spec,
)
from worker.engine.audits.power import detectable
from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.results import PrivacyEvent

SUMMARY = {
    "units": 19396,
    "unit": "row",
    "train": 19396,
    "validation": 6595,
    "test": 6570,
    "features": 100,
    "classes": 2,
    "left_out": 0,
}
AUDIT = "a" * 32


def check(**changes):
    body = {"dataset": "d" * 32, "methods": ["dp-sgd"]} | changes
    return check_question(body, summary=SUMMARY, methods=METHODS, networks=NETWORKS, run_limit=20_000)


GLOBAL = {"methods": ["dp-sgd-global"]}


def ask(**changes) -> Question:
    question, found = check(**changes)
    assert found == ()
    assert question is not None
    return question


def test_defaults_fill_everything_in():
    question = ask()
    assert question.epsilons == (0.5, 1.0, 2.0, 4.0, 8.0)
    assert (question.seeds, question.delta, question.runs) == (5, 1e-6, 30)
    assert question.network.hidden == (64,)
    assert set(question.parameters) == {"non-private", "dp-sgd"}
    assert question.parameters["non-private"]["learning_rate"] != question.parameters["dp-sgd"]["learning_rate"]


def test_a_question_survives_json_and_asks_itself_again():
    question = ask(epsilons=[8, 0.5], parameters={"dp-sgd": {"clip": 2}, "non-private": {"learning_rate": 0.1}})
    assert question.epsilons == (0.5, 8.0)
    stored = json.loads(json.dumps(question.to_json()))
    assert Question.from_json(stored) == question
    assert ask(**stored) == question


def test_the_baseline_never_moves_with_the_private_learning_rate():
    one, other = ask(), ask(training={"learning_rate": 7.0})
    assert one.parameters["non-private"] == other.parameters["non-private"]
    assert other.parameters["dp-sgd"]["learning_rate"] == 7.0


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"epsilons": [1, 0]}, "epsilons[1]"),
        ({"epsilons": [-1]}, "epsilons[0]"),
        ({"epsilons": [math.nan]}, "epsilons[0]"),
        ({"epsilons": [math.inf]}, "epsilons[0]"),
        ({"epsilons": ["1"]}, "epsilons[0]"),
        ({"epsilons": [True]}, "epsilons[0]"),
        ({"epsilons": [None]}, "epsilons[0]"),
        ({"epsilons": [10**400]}, "epsilons[0]"),
        ({"epsilons": [1, 2, 1.0]}, "epsilons[2]"),
        ({"epsilons": []}, "epsilons"),
        ({"epsilons": 1}, "epsilons"),
        ({"epsilons": [1] * 1000}, "epsilons"),
        ({"delta": 1 / 19396}, "delta"),
        ({"delta": 0.5}, "delta"),
        ({"delta": 0}, "delta"),
        ({"delta": -1e-6}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"delta": "x"}, "delta"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": -1}, "seeds"),
        ({"seeds": 2.5}, "seeds"),
        ({"seeds": 10_000_000}, "seeds"),
        ({"seeds": 1000, "epsilons": list(range(1, 60))}, "seeds"),
        ({"methods": []}, "methods"),
        ({"methods": "dp-sgd"}, "methods"),
        ({"methods": ["non-private"]}, "methods"),
        ({"methods": ["dp-sgd", "magic"]}, "methods[1]"),
        ({"methods": ["dp-sgd", "dp-sgd"]}, "methods[1]"),
        ({"methods": [{}]}, "methods[0]"),
        ({"methods": ["dp-sgd"] * 10**5}, "methods"),
        ({"network": 3}, "network"),
        ({"network": {"kind": "cnn"}}, "network.kind"),
        ({"network": {"kind": []}}, "network.kind"),
        ({"network": {"kind": "mlp", "hidden": []}}, "network.hidden"),
        ({"network": {"kind": "mlp", "hidden": 64}}, "network.hidden"),
        ({"network": {"kind": "mlp", "hidden": [64, 0]}}, "network.hidden[1]"),
        ({"network": {"kind": "mlp", "hidden": [10**9]}}, "network.hidden[0]"),
        ({"network": {"kind": "mlp", "hidden": [1] * 9}}, "network.hidden"),
        ({"network": {"kind": "logistic", "hidden": [4]}}, "network.hidden"),
        ({"network": {"kind": "mlp", "depth": 3}}, "network.depth"),
        ({"training": 3}, "training"),
        ({"training": {"epochs": 0}}, "training.epochs"),
        ({"training": {"epochs": 1.5}}, "training.epochs"),
        ({"training": {"batch_size": 0}}, "training.batch_size"),
        ({"training": {"batch_size": 19397}}, "training.batch_size"),
        ({"training": {"learning_rate": 0}}, "training.learning_rate"),
        ({"training": {"learning_rate": math.nan}}, "training.learning_rate"),
        ({"training": {"clip": -1}}, "training.clip"),
        ({"training": {"clip": "4"}}, "training.clip"),
        ({"training": {"optimizer": "lion"}}, "training.optimizer"),
        ({"training": {"optimizer": 3}}, "training.optimizer"),
        (
            {"training": {"optimizer": "adam"}, "parameters": {"dp-sgd": {"momentum": 0.9}}},
            "parameters.dp-sgd.momentum",
        ),
        ({"network": {"kind": "mlp", "activation": "sigmoid"}}, "network.activation"),
        ({"network": {"kind": "mlp", "activation": []}}, "network.activation"),
        ({"methods": ["magnitude-error"]}, "methods"),
        (GLOBAL | {"parameters": {"dp-sgd-global": {"bound": 3.9}}}, "parameters.dp-sgd-global.bound"),
        (GLOBAL | {"training": {"clip": 60}}, "parameters.dp-sgd-global.bound"),
        (GLOBAL | {"parameters": {"dp-sgd-global": {"clip": 51}}}, "parameters.dp-sgd-global.bound"),
        ({"references": ["magnitude-error"]}, "references"),
        ({"training": {"momentum": 0.9}}, "training.momentum"),
        ({"parameters": []}, "parameters"),
        ({"parameters": 4}, "parameters"),
        ({"parameters": {"pate": {}}}, "parameters.pate"),
        ({"parameters": {"dp-sgd": 3}}, "parameters.dp-sgd"),
        ({"parameters": {"dp-sgd": {"foo": 1}}}, "parameters.dp-sgd.foo"),
        ({"parameters": {"dp-sgd": {"clip": 0}}}, "parameters.dp-sgd.clip"),
        ({"tuning": {"clips": [1]}}, "tuning"),
        ({"epsilon": 1}, "epsilon"),
    ],
)
def test_each_mistake_is_told_at_its_field(changes, field):
    question, found = check(**changes)
    assert (question is None) == bool(found)
    assert [error.field for error in found][:1] == ([field] if field else [])
    assert all(error.message.endswith(".") for error in found)


def test_a_huge_grid_is_refused_before_anything_is_laid_out():
    tracemalloc.start()
    question, found = check(seeds=1000, epsilons=[float(value) for value in range(1, 100)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert question is None
    assert found[0].field == "seeds"
    assert "99000" in found[0].message.replace(",", "") or "100000" in found[0].message
    assert peak < 1_000_000


@given(st.integers(1, 10**9))
def test_the_default_delta_is_the_largest_power_of_ten_not_above_a_tenth_of_one_over_n(units):
    power = Fraction(1)
    while power > Fraction(1, 10 * units):
        power /= 10
    assert default_delta(units) == float(power)


def test_a_batch_larger_than_the_training_part_is_the_whole_of_it_by_default():
    question, found = check_question(
        {"methods": ["dp-sgd"]}, summary=SUMMARY | {"units": 100}, methods=METHODS, networks=NETWORKS, run_limit=100
    )
    assert found == ()
    assert question.training["batch_size"] == 100


# -- stacks ---------------------------------------------------------------------------------------------------------------


def specs(audit=AUDIT, **changes):
    question = ask(**changes)
    plans = plan_stacks(question, SUMMARY, "eager-cpu", 2)
    made = []
    for plan in plans:
        names = [f"{plan.number}-{run.position}" for run in plan.runs]
        made.append(stack_spec(question, audit, plan, SUMMARY, names, [0.0] + [1.0] * (len(names) - 1)))
    return plans, made


def test_one_stack_a_seed_with_the_baseline_first():
    plans, _ = specs()
    assert [plan.seed for plan in plans] == [0, 1, 2, 3, 4]
    assert [(run.method, run.epsilon) for run in plans[0].runs][:2] == [("non-private", None), ("dp-sgd", 0.5)]
    assert [run.position for run in plans[0].runs] == list(range(6))
    assert plans[0].steps == 20 * math.ceil(19396 / 256)


def test_seeds_are_repeatable_and_all_different():
    _, first = specs()
    assert specs()[1] == first
    numbers = [
        number for spec in first for number in (spec.weight_seed, spec.batch_seed, *(r.noise_seed for r in spec.runs))
    ]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= number < 2**63 for number in numbers)
    assert not {spec.batch_seed for spec in specs("b" * 32)[1]} & set(numbers)


def test_a_runs_noise_does_not_depend_on_what_else_is_in_the_stack():
    def noise(made):
        return {
            (run.epsilon, run.seed): run.noise_seed for spec in made for run in spec.runs if run.epsilon is not None
        }

    few, many = noise(specs(epsilons=[2], seeds=2)[1]), noise(specs()[1])
    assert few.items() <= many.items()


def test_a_forecast_counts_runs_and_grows_with_the_work():
    question = ask()
    plans = plan_stacks(question, SUMMARY, "eager-cpu", 2)
    groups = [make_group("everyone", 6570), make_group("sex=X", 5, reason="withheld: fewer than 10 test rows")]
    small = forecast(question, plans, SUMMARY, groups, 0.0002)
    assert (small.runs, small.stacks, small.steps) == (30, 5, 5 * 1520)
    assert 30 * 1520 * 0.0002 < small.seconds < 120
    withheld = small.detectable[1]
    assert (withheld.group, withheld.cost, withheld.reason) == ("sex=X", None, "withheld: fewer than 10 test rows")
    assert forecast(question, plans, SUMMARY, groups, 0.002).seconds > small.seconds
    wide = forecast(question, plans, SUMMARY | {"features": 1000}, groups, 0.0002)
    assert wide.seconds > small.seconds
    assert wide.memory_bytes > small.memory_bytes


def test_the_smallest_detectable_cost_falls_with_rows_and_seeds():
    assert smallest_detectable(0, 5) is None
    assert smallest_detectable(1, 5) <= 1
    assert smallest_detectable(1000, 5) == pytest.approx(2.8016 * math.sqrt(0.05 / 1000 * 1.2), rel=1e-4)
    assert smallest_detectable(4000, 5) < smallest_detectable(1000, 5) < smallest_detectable(1000, 1)


def test_where_rows_belong_to_persons_persons_count():
    rows, persons = (detectable(make_group("sex=X", 1200, units=units), 5) for units in (None, 60))
    assert (rows.units, persons.units) == (1200, 60)
    assert persons.cost == smallest_detectable(60, 5) > rows.cost


@pytest.mark.parametrize(("units", "seeds"), [(50, 3), (400, 5), (6570, 20)])
def test_so_many_units_halve_it_and_no_number_of_seeds_does(units, seeds):
    found = detectable(make_group("sex=X", units), seeds)
    assert found.units_to_halve == 4 * units
    assert (
        smallest_detectable(found.units_to_halve, seeds) <= found.cost / 2 < smallest_detectable(4 * units - 1, seeds)
    )
    assert found.seeds_to_halve is None
    assert found.with_endless_seeds > found.cost / 2


# -- the claim ------------------------------------------------------------------------------------------------------------


def event(noise, probability=0.01, steps=100):
    return PrivacyEvent(noise, probability, steps)


def test_all_runs_published_are_one_release_a_step_on_each_seeds_batch():
    (found,) = published_events([[event(3.4)] for _ in range(4)], seeds=5)
    assert found == PrivacyEvent(pytest.approx(1.7), 0.01, 500)
    assert type(found.noise_multiplier) is float
    assert published_events([], 5) == ()


def test_runs_that_do_not_share_batches_are_no_one_release():
    with pytest.raises(ValueError, match="share"):
        published_events([[event(1.0)], [event(1.0, steps=3)]], 2)


def test_the_claim_is_json_and_states_its_constants():
    question = ask(delta=2e-6)
    found = json.loads(json.dumps(claim(question, SUMMARY), allow_nan=False))
    assert found["delta_times_units"] == pytest.approx(2e-6 * 19396)
    assert found["delta_note"]
    assert found["mechanism"]["steps"] == 1520
    assert found["epsilons"]["choice_paid"] == {
        "what": "with the choice of settings paid for",
        "value": None,
        "reason": found["epsilons"]["choice_paid"]["reason"],
        "options_looked_at": 5,
        "forecast": None,
        "forecast_what": found["epsilons"]["choice_paid"]["forecast_what"],
    }
    paid = claim(question, SUMMARY, choice_epsilon=4.2)["epsilons"]["choice_paid"]
    assert (paid["value"], paid["forecast"]) == (None, 4.2)
    assert found["epsilons"]["all_runs"]["runs"] == 25
    assert "bounds read from the data, not accounted for" in found["open_items"]


def test_no_word_promises_too_much():
    text = json.dumps(claim(ask(), SUMMARY)).lower()
    assert not any(word in text for word in ("secure", "anonymous", "safe"))


def test_references_run_once_a_seed_and_have_no_epsilon():
    question = ask(methods=["magnitude-error", "dp-sgd", "fairness-lens-original"], epsilons=[1, 2], seeds=3)
    assert question.methods == ("dp-sgd",)
    assert question.references == ("magnitude-error", "fairness-lens-original")
    assert question.points == (
        ("non-private", None),
        ("dp-sgd", 1.0),
        ("dp-sgd", 2.0),
        ("magnitude-error", None),
        ("fairness-lens-original", None),
    )
    assert question.runs == 15
    stored = json.loads(json.dumps(question.to_json()))
    assert Question.from_json(stored) == question
    assert check(**stored)[0] == question


@pytest.mark.parametrize(("optimizer", "rate", "baseline"), [("sgd", 0.1, 0.5), ("adam", 0.002, 0.005)])
def test_the_learning_rate_left_out_is_the_optimizers(optimizer, rate, baseline):
    question = ask(training={"optimizer": optimizer}, network={"kind": "mlp", "activation": "relu"})
    assert question.optimizer == optimizer
    assert question.network.activation == "relu"
    assert question.training["learning_rate"] == question.parameters["dp-sgd"]["learning_rate"] == rate
    assert question.parameters["non-private"]["learning_rate"] == baseline
    given = ask(training={"optimizer": optimizer, "learning_rate": 0.7})
    assert given.parameters["dp-sgd"]["learning_rate"] == 0.7
    assert given.parameters["non-private"]["learning_rate"] == baseline
    assert Question.from_json(json.loads(json.dumps(question.to_json()))) == question


def test_a_question_stored_before_there_was_a_choice_is_read_as_it_was_asked():
    stored = ask().to_json()
    del stored["references"], stored["training"]["optimizer"], stored["network"]["activation"]
    again = Question.from_json(stored)
    assert again == ask()
    assert (again.optimizer, again.network.activation, again.references) == ("sgd", "tanh", ())
