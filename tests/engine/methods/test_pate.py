"""PATE from shards to student, against slow loops and against what it must not depend on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from tests.engine.builders import make_data
from worker.engine.accounting.calibrate import calibrate
from worker.engine.datasets.split import mixed
from worker.engine.ensemble import Ensemble
from worker.engine.mechanisms import votes
from worker.engine.methods.base import Budget
from worker.engine.methods.pate import PATE, PATE_SOFT, Lessons, Taught, asked_rows
from worker.engine.results import EncodedData, NetworkSpec, RunSpec, TrainingSize

METHODS = {method.key: method for method in (PATE, PATE_SOFT)}
MLP, LOGISTIC = NetworkSpec("mlp", (5,), "tanh"), NetworkSpec("logistic")


def values(method: str = "pate", **changes: float) -> dict[str, float]:
    found = {param.key: param.default for param in METHODS[method].params}
    return found | {"teachers": 7, "queries": 40, "teacher_steps": 20, "student_steps": 50} | changes


def run(method: str = "pate", noise: float = 0.0, seed: int = 1, **changes: float) -> RunSpec:
    return RunSpec(f"{method}{noise}{seed}", method, 0, 1.0, noise, seed, values(method, **changes))


def public_of(data: EncodedData) -> np.ndarray:
    return (data.parts == 0) & (np.arange(len(data.labels)) % 4 == 0)


def ensemble(data: EncodedData, network: NetworkSpec = MLP, dtype: torch.dtype = torch.float32) -> Ensemble:
    return Ensemble(data, network, 11, lambda step, steps: None, dtype=dtype)


def teach(runs: list[RunSpec], data: EncodedData, trainer: Ensemble | None = None) -> list[Taught]:
    trainer = trainer or ensemble(data)
    found = {}
    for method in METHODS.values():
        members = [one for one in runs if one.method == method.key]
        found |= zip((one.run for one in members), method.fit(members, data, public_of(data), 5, trainer), strict=True)
    return [found[one.run] for one in runs]


def slow_network(
    data: EncodedData, rows: np.ndarray, labels: np.ndarray, lessons: Lessons, penalty: float, batch: int
) -> torch.nn.Sequential:
    """One perceptron by torch's own modules and its own Adam, in float64; each step the next ``batch`` rows."""
    from worker.engine.networks.initial import initial_weights

    outputs = 1 if data.classes == 2 else data.classes
    layers = initial_weights(data.feature_names, (5, outputs), 11)
    network = torch.nn.Sequential(
        torch.nn.Linear(layers[0].shape[0] - 1, 5), torch.nn.Tanh(), torch.nn.Linear(5, outputs)
    )
    network.double()
    with torch.no_grad():
        for module, layer in zip((network[0], network[2]), layers, strict=True):
            module.weight.copy_(torch.as_tensor(layer[:-1].T))
            module.bias.copy_(torch.as_tensor(layer[-1]))
    descent = torch.optim.Adam(network.parameters(), lr=lessons.learning_rate)
    features = torch.as_tensor(data.features[rows], dtype=torch.float64)
    given = torch.as_tensor(labels, dtype=torch.float64)
    for step in range(lessons.steps):
        descent.param_groups[0]["lr"] = lessons.learning_rate * (1 - step / lessons.steps)
        chosen = (step * batch + np.arange(batch)) % len(rows)
        logits = network(features[chosen])
        if outputs == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        loss = -(given[chosen] * torch.log_softmax(logits, 1)).sum(1).mean()
        loss = loss + penalty * sum(parameter.square().sum() for parameter in network.parameters())
        descent.zero_grad()
        loss.backward()
        descent.step()
    return network


@pytest.mark.parametrize("classes", [2, 3])
def test_teachers_vote_as_a_slow_loop_of_single_networks_does(classes):
    data = make_data(400, 6, classes)
    public = public_of(data)
    private = np.flatnonzero((data.parts == 0) & ~public)
    teacher = votes.teacher_of(data.unit_ids[private], 5, 3)
    asked = np.flatnonzero(public)
    lessons = Lessons(25, 0.05, (0.001,) * 5)
    found = ensemble(data, dtype=torch.float64).teacher_votes(private, teacher, 5, asked, lessons)
    for number in range(5):
        rows = private[teacher == number]
        rows = rows[np.argsort(mixed(data.row_ids[rows].astype(np.uint64), 0x5EED))]
        one = slow_network(data, rows, np.eye(classes)[data.labels[rows]], lessons, 0.001, lessons.batch)
        logits = one(torch.as_tensor(data.features[asked], dtype=torch.float64)).detach().numpy()
        expected = (logits[:, 0] > 0) if classes == 2 else logits.argmax(1)
        assert (found[number] == expected).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_students_equal_single_networks(classes):
    data = make_data(200, 6, classes)
    rows = np.arange(0, 200, 3)
    labels = np.random.default_rng(0).normal(0.5, 0.4, (2, len(rows), classes))
    lessons = Lessons(30, 0.03, (0.01, 0.1))
    found = ensemble(data, dtype=torch.float64).student_logits(rows, labels, lessons)
    for number in range(2):
        one = slow_network(data, rows, labels[number], lessons, lessons.penalties[number], len(rows))
        logits = one(torch.as_tensor(data.features, dtype=torch.float64)).detach().numpy()
        assert found[number] == pytest.approx(logits, abs=1e-5)


def test_a_logistic_student_finds_the_minimum_that_scipy_finds():
    data = make_data(300, 4)
    rows = np.arange(150)
    labels = np.random.default_rng(1).uniform(-0.2, 1.2, (150, 1))
    both = np.concatenate([1 - labels, labels], 1)
    features = np.concatenate([data.features[rows].astype(float), np.ones((150, 1))], 1)

    def objective(theta):
        score = features @ theta
        losses = both[:, 1] * np.logaddexp(0, -score) + both[:, 0] * np.logaddexp(0, score)
        return losses.mean() + 0.01 * (theta**2).sum()

    best = minimize(objective, np.zeros(5), method="BFGS", tol=1e-12)
    found = ensemble(data, LOGISTIC, torch.float64).student_logits(rows, both[None], Lessons(3000, 0.05, (0.01,)))
    expected = np.concatenate([data.features.astype(float), np.ones((300, 1))], 1) @ best.x
    assert found[0][:, 0] == pytest.approx(expected, abs=1e-4)


def test_without_noise_the_student_is_the_one_of_the_clean_majority():
    data = make_data(500, 6)
    (taught,) = teach([run()], data)
    expected = ensemble(data).student_logits(
        taught.asked, votes.hard_labels(taught.votes)[None], Lessons(50, 0.02, (values()["penalty"],))
    )
    assert taught.logits == pytest.approx(taught.clean, abs=1e-6)
    assert taught.logits == pytest.approx(expected[0], abs=1e-6)


def test_one_teacher_without_noise_is_plain_distillation():
    data = make_data(500, 6)
    public = public_of(data)
    for method in METHODS:
        (taught,) = teach([run(method, teachers=1)], data)
        private = np.flatnonzero((data.parts == 0) & ~public)
        predicted = ensemble(data).teacher_votes(
            private, np.zeros(len(private), int), 1, taught.asked, Lessons(20, 0.02, (0.001,))
        )
        assert (taught.votes == np.eye(2)[predicted[0]]).all()


def test_students_of_one_stack_are_those_of_stacks_of_their_own():
    data = make_data(500, 6)
    runs = [
        run("pate", 3.0, 1),
        run("pate-soft", 3.0, 2),
        run("pate", 1.0, 3, penalty=0.1),
        run("pate", 1.0, 4, teachers=3),
    ]
    together = teach(runs, data)
    for one, found in zip(runs, together, strict=True):
        (alone,) = teach([one], data)
        assert (alone.votes == found.votes).all()
        assert alone.logits == pytest.approx(found.logits, abs=1e-5)
        assert alone.clean == pytest.approx(found.clean, abs=1e-5)


def test_renaming_teachers_changes_nothing():
    data = make_data(500, 6)
    public = public_of(data)
    private = np.flatnonzero((data.parts == 0) & ~public)
    teacher = votes.teacher_of(data.unit_ids[private], 9, 3)
    order = np.random.default_rng(2).permutation(9)
    asked, lessons = np.flatnonzero(public), Lessons(20, 0.02, (0.001,) * 9)
    found = [
        votes.count_votes(ensemble(data).teacher_votes(private, names, 9, asked, lessons), 2)
        for names in (teacher, order[teacher])
    ]
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("hostile", [None, np.nan, np.inf, 1e30, 0.0])
def test_one_row_more_moves_the_votes_of_its_teacher_alone(hostile):
    data = make_data(600, 6)
    public = public_of(data)
    private = np.flatnonzero((data.parts == 0) & ~public)
    if hostile is not None:
        features = data.features.copy()
        features[private[17]] = hostile
        data = replace(data, features=features)
    teacher = votes.teacher_of(data.unit_ids[private], 12, 3)
    asked, lessons = np.flatnonzero(public), Lessons(20, 0.02, (0.001,) * 12)
    whole = ensemble(data).teacher_votes(private, teacher, 12, asked, lessons)
    kept = np.delete(np.arange(len(private)), 17)
    without = ensemble(data).teacher_votes(private[kept], teacher[kept], 12, asked, lessons)
    others = np.arange(12) != teacher[17]
    assert (whole[others] == without[others]).all()
    change = votes.count_votes(whole, 2) - votes.count_votes(without, 2)
    assert np.sqrt((change**2).sum(1)).max() <= votes.SENSITIVITY + 1e-12


def test_teachers_without_rows_or_with_one_class_vote_untrained():
    data = make_data(300, 4)
    public = public_of(data)
    private = np.flatnonzero((data.parts == 0) & ~public)
    teacher = np.where(data.labels[private] == 1, 1, 2)
    found = ensemble(data).teacher_votes(private, teacher, 4, np.flatnonzero(public), Lessons(5, 0.02, (0.001,) * 4))
    assert found.tolist() == [[0] * public.sum(), [1] * public.sum(), [0] * public.sum(), [0] * public.sum()]


def test_the_labelled_rows_are_public_and_stay_when_others_leave():
    data = make_data(500, 4)
    public = public_of(data)
    asked = asked_rows(data, public, 30, 9)
    assert public[asked].all()
    assert len(set(asked.tolist())) == 30
    fewer = public.copy()
    fewer[np.setdiff1d(np.flatnonzero(public), asked)[0]] = False
    assert (asked_rows(data, fewer, 30, 9) == asked).all()
    with pytest.raises(ValueError, match="Ask for fewer"):
        asked_rows(data, public, 500, 9)


def test_the_plan_spends_its_budget_on_all_labelled_rows():
    size = TrainingSize(1000, 100, 1)
    plan = PATE.plan(Budget(2.0, 1e-5), size, values(queries=300), calibrate)
    (event,) = plan.events
    assert (event.sampling_probability, event.steps) == (1.0, 300)
    assert event.noise_multiplier == pytest.approx(plan.noise_multiplier)
    assert plan.epsilon_spent <= 2.0
    assert plan.epsilon_spent == pytest.approx(2.0, abs=2e-3)
    with pytest.raises(ValueError, match="without an epsilon"):
        PATE.plan(Budget(None, 1e-5), size, values(), calibrate)
