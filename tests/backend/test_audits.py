"""Questions, states and numbers of audits over REST."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update

from backend.database import Database
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Audit, Dataset, Event, Group, IdempotencyKey, Measurement, Run, Stack, Statistic
from tests.backend.samples import question
from tests.conftest import RecordingQueue

Client = TestClient
PATH = "/api/v1/audits"


def post(client: Client, path: str, body: Any, **headers: str) -> Any:
    """Also bodies that are not quite JSON (NaN)."""
    return client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"} | headers)


def fields(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [error["field"] for error in answer.json()["errors"]]


def count(database: Database, table: type) -> int:
    with database.transaction() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


@pytest.fixture
def audit(analyst: Client, ready: str) -> str:
    made = post(analyst, PATH, question(ready))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def set_states(database: Database, audit_id: str, state: str, stacks: dict[int, str], **values: Any) -> None:
    """Puts an audit and its stacks into states, as workers would."""
    with database.transaction() as session:
        session.execute(update(Audit).where(Audit.id == audit_id).values(state=state, **values))
        for number, stack_state in stacks.items():
            stack = session.scalars(select(Stack).filter_by(audit_id=audit_id, number=number)).one()
            stack.state = stack_state
            session.execute(update(Run).where(Run.stack_id == stack.id).values(state=stack_state))


def add_numbers(database: Database, settings: Settings, audit_id: str) -> None:
    """Numbers for every run, group and label of the test part, and one measurement; all runs finished."""
    with database.transaction() as session:
        audit = session.get_one(Audit, audit_id)
        for stack in session.scalars(select(Stack).filter_by(audit_id=audit_id)):
            stack.state, stack.seconds, stack.logits_key = "finished", 2.0, f"audits/{audit_id}/{stack.id}.logits"
            Storage(settings).write(stack.logits_key, b"1", session.get_one(Dataset, audit.dataset_id).file_key or b"")
        audit.state, audit.measured_stacks = "finished", 2
        groups = session.scalars(select(Group).filter_by(recipe_id=audit.recipe_id)).all()
        for run in session.scalars(select(Run).filter_by(audit_id=audit_id)):
            run.state, run.epsilon_spent = "finished", run.epsilon_asked
            session.add_all(_statistic(run, group, label) for group in groups for label in (0, 1))
        session.add(_measurement(audit, groups[0]))


def _statistic(run: Run, group: Group, label: int) -> Statistic:
    n = int(group.label_counts["test"][str(label)])
    right = n if run.epsilon_asked is None else n - min(n, 1 + run.seed)
    predicted = [right, n - right] if label == 0 else [n - right, right]
    return Statistic(
        team_id=run.team_id,
        audit_id=run.audit_id,
        run_id=run.id,
        group_id=group.id,
        label=label,
        part="test",
        n=n,
        predicted=predicted,
        loss=n / 3,
        loss_squared=n / 7,
        squared_error=n / 11,
        score=n / 13,
    )


def _measurement(audit: Audit, group: Group) -> Measurement:
    return Measurement(
        team_id=audit.team_id,
        audit_id=audit.id,
        method="dp-sgd",
        epsilon_asked=1.0,
        group_id=group.id,
        part="test",
        quantity="accuracy",
        seeds=[0, 1],
        units=group.test,
        rows=group.test,
        total=3.0,
        total_squared=2.0,
        cross=3.0,
        rows_squared=float(group.test),
        total_each_squared=3.0,
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"epsilons": [0]}, "epsilons[0]"),
        ({"epsilons": [1, -1]}, "epsilons[1]"),
        ({"epsilons": [float("nan")]}, "epsilons[0]"),
        ({"epsilons": [float("inf")]}, "epsilons[0]"),
        ({"epsilons": [10**400]}, "epsilons[0]"),
        ({"epsilons": ["1"]}, "epsilons[0]"),
        ({"epsilons": [True]}, "epsilons[0]"),
        ({"epsilons": []}, "epsilons"),
        ({"epsilons": {"a": 1}}, "epsilons"),
        ({"delta": 0.5}, "delta"),
        ({"delta": 0}, "delta"),
        ({"delta": -1e-5}, "delta"),
        ({"delta": float("nan")}, "delta"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": 1.5}, "seeds"),
        ({"seeds": "five"}, "seeds"),
        ({"seeds": 1000, "epsilons": [1 + n / 100 for n in range(100)]}, "seeds"),
        ({"seeds": 10**7}, "seeds"),
        ({"methods": ["magic"]}, "methods[0]"),
        ({"methods": []}, "methods"),
        ({"methods": "dp-sgd"}, "methods"),
        ({"methods": [["dp-sgd"]]}, "methods[0]"),
        ({"network": {"kind": "transformer"}}, "network.kind"),
        ({"network": {"kind": "mlp", "hidden": [10**9]}}, "network.hidden[0]"),
        ({"network": 3}, "network"),
        ({"training": {"epochs": 0}}, "training.epochs"),
        ({"training": {"clip": -1}}, "training.clip"),
        ({"training": {"learning_rate": float("nan")}}, "training.learning_rate"),
        ({"training": {"batch_size": 10**6}}, "training.batch_size"),
        ({"training": {"optimizer": "lion"}}, "training.optimizer"),
        ({"training": 3}, "training"),
        ({"parameters": {"magic": {}}}, "parameters.magic"),
        ({"parameters": {"dp-sgd": {"clip": "x"}}}, "parameters.dp-sgd.clip"),
        ({"tuning": {"a": 1}}, "tuning"),
        ({"surprise": 1}, "surprise"),
        ({"name": 3}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"dataset": None}, "dataset"),
        ({"dataset": 3}, "dataset"),
        ({"dataset": ["x"]}, "dataset"),
    ],
)
def test_a_wrong_question_is_told_at_its_field_and_stores_nothing(
    analyst: Client, ready: str, database: Database, queue: RecordingQueue, change: dict[str, Any], field: str
) -> None:
    for path in (PATH, f"{PATH}/forecast"):
        answer = post(analyst, path, question(ready, **change), **{"Idempotency-Key": "k"})
        if path == PATH or field != "name":
            assert field in fields(answer)
    assert [count(database, table) for table in (Audit, Stack, Run, IdempotencyKey)] == [0, 0, 0, 0]
    assert queue.sent == []


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'"x"', b"{", b"\xff\xfe", b"{" * 50_000, b'{"a":' * 2000])
def test_a_body_that_is_no_object_is_malformed(analyst: Client, body: bytes) -> None:
    answer = analyst.post(PATH, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_nested_junk_is_told_at_its_field(analyst: Client, ready: str) -> None:
    deep: Any = 1
    for _ in range(50):
        deep = [deep]
    assert fields(post(analyst, PATH, question(ready, parameters=deep)))[0].startswith("parameters[0]")
    wide = post(analyst, PATH, question(ready, epsilons=[1.0] * 30_000))
    assert wide.status_code == 422
    broken = post(analyst, PATH, question(ready, methods=["\ud800"]))
    assert fields(broken) == ["methods[0]"]


def test_a_dataset_that_is_not_there_or_not_ready(
    analyst: Client, client_of: Callable[[str], Client], dataset: dict[str, Any], database: Database
) -> None:
    missing = post(analyst, PATH, question("0" * 32))
    assert missing.status_code == 404
    assert missing.json()["errors"][0]["field"] == "dataset"
    assert post(analyst, PATH, question(dataset["id"])).status_code == 409
    assert post(client_of("stranger"), PATH, question(dataset["id"])).status_code == 404
    assert count(database, Audit) == 0


def test_a_forecast_stores_nothing(analyst: Client, client_of: Callable[[str], Client], ready: str, database: Database):
    for client in (analyst, client_of("dpo"), client_of("auditor")):
        found = post(client, f"{PATH}/forecast", question(ready)).json()
        assert (found["runs"], found["stacks"]) == (6, 2)
        assert found["seconds"] > 0
        assert found["memory_bytes"] > 0
        assert found["detectable"][0]["group"] == "everyone"
    assert count(database, Audit) == 0


def test_forecasts_learn_from_what_finished(
    analyst: Client, ready: str, audit: str, database: Database, settings: Settings
) -> None:
    before = post(analyst, f"{PATH}/forecast", question(ready)).json()["seconds"]
    add_numbers(database, settings, audit)
    with database.transaction() as session:
        session.execute(update(Stack).values(seconds=500.0))
    after = post(analyst, f"{PATH}/forecast", question(ready)).json()["seconds"]
    assert after - before == pytest.approx(1000.0, rel=0.05)


def test_starting_stores_the_plan_and_asks_for_it(
    analyst: Client, ready: str, database: Database, queue: RecordingQueue
) -> None:
    made = post(analyst, PATH, question(ready, name=" My\naudit "))
    body = made.json()
    assert (body["state"], body["name"], body["runs"]["total"], body["runs"]["waiting"]) == (
        "planning",
        "My audit",
        6,
        6,
    )
    assert body["forecast"]["runs"] == 6
    assert body["question"]["epsilons"] == [1.0, 8.0]
    assert queue.sent == [("audit.plan", body["id"], None)]
    with database.transaction() as session:
        runs = session.execute(
            select(Run.method, Run.epsilon_asked, Run.seed, Run.position).order_by(Run.seed, Run.position)
        ).all()
    assert [tuple(run) for run in runs] == [
        (method, epsilon, seed, position)
        for seed in (0, 1)
        for position, (method, epsilon) in enumerate([("non-private", None), ("dp-sgd", 1.0), ("dp-sgd", 8.0)])
    ]
    assert analyst.get(PATH, params={"dataset": ready}).json()["items"][0]["id"] == body["id"]
    assert analyst.get(PATH, params={"dataset": "0" * 32}).json()["items"] == []


def test_every_method_can_be_asked_for_with_its_parameters(analyst: Client, ready: str, database: Database) -> None:
    offered = analyst.get("/api/v1/catalogue").json()
    assert [one["key"] for one in offered["optimizers"]] == ["sgd", "adam"]
    assert [one["key"] for one in offered["activations"]] == ["tanh", "relu"]
    given = {
        method["key"]: {param["key"]: param["default"] for param in method["parameters"]}
        for method in offered["methods"]
    }
    asked = question(
        ready,
        methods=list(given),
        parameters=given,
        network={"kind": "mlp", "hidden": [4, 3], "activation": "relu"},
        training={"optimizer": "adam"},
    )
    made = post(analyst, PATH, asked).json()
    private = [method["key"] for method in offered["methods"] if method["private"]]
    references = [key for key in given if key not in (*private, "non-private")]
    assert made["question"]["references"] == references
    assert made["question"]["training"]["optimizer"] == "adam"
    assert made["question"]["network"]["activation"] == "relu"
    with database.transaction() as session:
        runs = session.execute(select(Run.method, Run.epsilon_asked, Run.parameters).where(Run.seed == 0)).all()
    assert sorted((method, epsilon or 0.0) for method, epsilon, _ in runs) == sorted(
        [("non-private", 0.0), *((key, 0.0) for key in references), *((key, e) for key in private for e in (1.0, 8.0))]
    )
    assert all(given[method].items() <= parameters.items() for method, _, parameters in runs)
    assert post(analyst, PATH, made["question"] | {"dataset": ready}).json()["question"] == made["question"]


def test_the_same_key_and_question_start_once(analyst: Client, ready: str, database: Database) -> None:
    first = post(analyst, PATH, question(ready), **{"Idempotency-Key": "a"})
    again = post(analyst, PATH, dict(reversed(question(ready).items())), **{"Idempotency-Key": "a"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert fields(post(analyst, PATH, question(ready, seeds=3), **{"Idempotency-Key": "a"})) == ["Idempotency-Key"]
    assert post(analyst, PATH, question(ready), **{"Idempotency-Key": "b"}).json()["id"] != first.json()["id"]
    assert count(database, Audit) == 2


def test_stopping_while_planning_and_resuming(
    analyst: Client, audit: str, queue: RecordingQueue, database: Database
) -> None:
    stopped = analyst.post(f"{PATH}/{audit}/stop").json()
    assert (stopped["state"], stopped["runs"]["stopped"]) == ("stopped", 6)
    assert analyst.post(f"{PATH}/{audit}/stop").status_code == 200
    queue.sent.clear()
    resumed = analyst.post(f"{PATH}/{audit}/resume").json()
    assert (resumed["state"], resumed["stop_requested"], resumed["runs"]["waiting"]) == ("planning", False, 6)
    assert queue.sent == [("audit.plan", audit, None)]
    with database.transaction() as session:
        kinds = session.scalars(select(Event.kind).filter_by(stream=audit).order_by(Event.number)).all()
    assert kinds == ["audit.stopped", "audit.resumed"]


def test_stopping_while_a_stack_trains_leaves_it_to_its_worker(analyst: Client, audit: str, database: Database) -> None:
    set_states(database, audit, "running", {0: "training", 1: "waiting"}, claim={})
    found = analyst.post(f"{PATH}/{audit}/stop").json()
    assert (found["state"], found["stop_requested"]) == ("running", True)
    assert (found["runs"]["training"], found["runs"]["stopped"]) == (3, 3)
    assert analyst.post(f"{PATH}/{audit}/resume").status_code == 409


def test_stopping_with_unmeasured_results_measures_first(
    analyst: Client, audit: str, database: Database, queue: RecordingQueue
) -> None:
    set_states(database, audit, "running", {0: "finished", 1: "waiting"}, claim={})
    queue.sent.clear()
    assert analyst.post(f"{PATH}/{audit}/stop").json()["state"] == "running"
    assert queue.sent == [("audit.measure", audit, None)]


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_resuming_sends_the_stacks_that_did_not_finish(
    analyst: Client, audit: str, database: Database, queue: RecordingQueue, state: str
) -> None:
    set_states(database, audit, state, {0: "finished", 1: state}, claim={}, measured_stacks=1, stop_requested=True)
    queue.sent.clear()
    found = analyst.post(f"{PATH}/{audit}/resume").json()
    assert (found["state"], found["runs"]["finished"], found["runs"]["waiting"]) == ("queued", 3, 3)
    [(job, stack, to)] = queue.sent
    assert (job, to) == ("stack.train", None)
    with database.transaction() as session:
        assert session.get_one(Stack, stack).number == 1


@pytest.mark.parametrize("state", ["finished", "failed", "erased"])
def test_what_has_ended_cannot_be_stopped(analyst: Client, audit: str, database: Database, state: str) -> None:
    set_states(database, audit, state, {0: "finished", 1: "finished"})
    assert analyst.post(f"{PATH}/{audit}/stop").status_code == 409


@pytest.mark.parametrize("state", ["planning", "queued", "running", "finished", "erased"])
def test_what_runs_or_is_done_cannot_be_resumed(analyst: Client, audit: str, database: Database, state: str) -> None:
    set_states(database, audit, state, {})
    assert analyst.post(f"{PATH}/{audit}/resume").status_code == 409


def test_an_audit_of_an_erased_dataset_is_stopped_and_stays_so(
    analyst: Client, audit: str, ready: str, database: Database
) -> None:
    set_states(database, audit, "running", {0: "training", 1: "waiting"}, claim={})
    assert analyst.delete(f"/api/v1/datasets/{ready}").json()["audits"] == 1
    found = analyst.get(f"{PATH}/{audit}").json()
    assert (found["state"], found["runs"]["stopped"]) == ("stopped", 6)
    assert analyst.post(f"{PATH}/{audit}/resume").status_code == 409
    again = post(analyst, PATH, question(ready))
    assert again.status_code == 409
    assert "The dataset was erased." in again.json()["detail"]


def test_costs_are_the_same_in_rest_and_csv(
    analyst: Client, audit: str, database: Database, settings: Settings
) -> None:
    add_numbers(database, settings, audit)
    for metric in ("accuracy", "loss", "selection_rate", "true_positive_rate"):
        for interval in ("both", "sampling", "seeds"):
            query = f"?metric={metric}&interval={interval}"
            found = analyst.get(f"{PATH}/{audit}/costs{query}")
            assert found.status_code == 200, found.text
            text = analyst.get(f"{PATH}/{audit}/costs.csv{query}")
            assert text.headers["content-type"] == "text/csv; charset=utf-8"
            rows = list(csv.DictReader(io.StringIO(text.text)))
            for row, cells in zip(found.json()["rows"], rows, strict=True):
                for name, value in row.items():
                    shown = "" if value is None else json.dumps(value) if not isinstance(value, str) else value
                    assert cells[name] == shown
    everyone = next(row for row in found.json()["rows"] if row["group"] == "everyone" and row["epsilon_asked"] == 1.0)
    assert everyone["tag"] == "audit-only"
    assert analyst.get(f"{PATH}/{audit}/costs").json()["headline"]


def test_costs_of_everyone_by_hand(analyst: Client, audit: str, database: Database, settings: Settings) -> None:
    add_numbers(database, settings, audit)
    rows = analyst.get(f"{PATH}/{audit}/costs?interval=sampling").json()["rows"]
    everyone = next(row for row in rows if row["group"] == "everyone" and row["epsilon_asked"] == 1.0)
    n = everyone["n"]
    assert everyone["baseline"] == 1.0
    assert everyone["cost"] == pytest.approx((2 / n + 4 / n) / 2)
    assert everyone["low"] < everyone["cost"] < everyone["high"]


@pytest.mark.parametrize(
    ("path", "field", "message"),
    [
        ("?limit=abc", "limit", "This must be a whole number."),
        ("?limit=0", "limit", "This must be at least 1."),
        ("?limit=500", "limit", "This must be at most 200."),
        ("?colour=red", "colour", "This parameter is not known. There are: limit, cursor, state, dataset."),
        ("?state=asleep", "state", "There is no such state."),
    ],
)
def test_a_filter_that_cannot_be_used_is_told_at_its_field(
    analyst: Client, path: str, field: str, message: str
) -> None:
    answer = analyst.get(PATH + path)
    assert fields(answer) == [field]
    assert answer.json()["errors"][0]["message"].startswith(message)


def test_an_address_without_parameters_takes_none(analyst: Client) -> None:
    answer = analyst.get("/api/v1/queue?state=waiting")
    assert answer.json()["errors"][0]["message"].endswith("This address takes none.")


def test_unknown_metrics_and_intervals(analyst: Client, audit: str) -> None:
    assert fields(analyst.get(f"{PATH}/{audit}/costs?metric=beauty")) == ["metric"]
    assert fields(analyst.get(f"{PATH}/{audit}/costs?interval=none")) == ["interval"]
    assert fields(analyst.get(f"{PATH}/{audit}/costs.csv?metric=beauty")) == ["metric"]


def test_an_audit_without_results_has_rows_with_reasons(analyst: Client, audit: str) -> None:
    rows = analyst.get(f"{PATH}/{audit}/costs").json()["rows"]
    assert rows
    assert all(row["cost"] is None and row["reason"] for row in rows)
    assert analyst.get(f"{PATH}/{audit}/statistics").json()["rows"] == []
    assert analyst.get(f"{PATH}/{audit}/statistics.csv").text.startswith(
        "run,method,seed,epsilon_asked,group,part,label"
    )


def test_statistics_and_runs(analyst: Client, audit: str, database: Database, settings: Settings) -> None:
    add_numbers(database, settings, audit)
    with database.transaction() as session:
        small = session.scalars(select(Group).where(Group.key != "everyone").order_by(Group.position)).first()
        assert small is not None
        small.test = 4
    rows = analyst.get(f"{PATH}/{audit}/statistics").json()["rows"]
    withheld = [row for row in rows if row["group"] == small.key]
    assert withheld
    assert all(row["n"] is None and row["loss"] is None and "withheld" in row["reason"] for row in withheld)
    assert all(row["loss"] == row["n"] / 3 for row in rows if row["reason"] is None)
    table = list(csv.DictReader(io.StringIO(analyst.get(f"{PATH}/{audit}/statistics.csv").text)))
    assert [cells["loss"] for cells in table] == ["" if row["loss"] is None else repr(row["loss"]) for row in rows]
    runs = analyst.get(f"{PATH}/{audit}/runs").json()["rows"]
    assert [(run["method"], run["epsilon_asked"], run["seed"]) for run in runs][:2] == [
        ("non-private", None, 0),
        ("dp-sgd", 1.0, 0),
    ]
    assert len(list(csv.reader(io.StringIO(analyst.get(f"{PATH}/{audit}/runs.csv").text)))) == 1 + len(runs)


def test_erasing_an_audit_removes_its_numbers(
    analyst: Client, audit: str, database: Database, settings: Settings
) -> None:
    add_numbers(database, settings, audit)
    receipt = analyst.delete(f"{PATH}/{audit}").json()
    assert (receipt["files_deleted"], receipt["measurements_removed"]) == (2, 1)
    assert receipt["statistics_removed"] == count(database, Group) * 2 * 6
    assert analyst.delete(f"{PATH}/{audit}").json() == receipt
    found = analyst.get(f"{PATH}/{audit}").json()
    assert (found["state"], found["receipt"]) == ("erased", receipt)
    assert (count(database, Statistic), count(database, Measurement), count(database, Run)) == (0, 0, 6)
    assert analyst.get(f"{PATH}/{audit}/costs").status_code == 409
    assert analyst.get(PATH).json()["items"] == []


def test_erasing_a_running_audit_takes_its_stacks_away(analyst: Client, audit: str, database: Database) -> None:
    set_states(database, audit, "running", {0: "training", 1: "waiting"}, claim={})
    with database.transaction() as session:
        session.execute(update(Stack).values(attempt=1, worker="w"))
    assert analyst.delete(f"{PATH}/{audit}").status_code == 200
    with database.transaction() as session:
        found = session.execute(select(Stack.state, Stack.attempt, Stack.worker)).all()
    assert [tuple(row) for row in found] == [("stopped", 2, None)] * 2


def test_erasing_a_dataset_keeps_only_large_numbers(
    analyst: Client, audit: str, ready: str, database: Database, settings: Settings
) -> None:
    add_numbers(database, settings, audit)
    with database.transaction() as session:
        session.execute(update(Statistic).where(Statistic.label == 1).values(n=9))
    receipt = analyst.delete(f"/api/v1/datasets/{ready}").json()
    assert receipt["files_deleted"] == 4
    assert receipt["statistics_removed"] > 0
    with database.transaction() as session:
        assert (session.scalar(select(func.min(Statistic.n))) or 0) >= settings.withheld_below
    assert analyst.get(f"{PATH}/{audit}/costs").status_code == 200
    assert analyst.get(f"{PATH}/{audit}").json()["state"] == "finished"


def test_the_queue_says_what_waits(analyst: Client, audit: str, database: Database) -> None:
    rows = {row["job"]: row for row in analyst.get("/api/v1/queue").json()["rows"] if row["queue"] != "train-gpu"}
    assert (rows["audit.plan"]["waiting"], rows["audit.plan"]["working"]) == (1, 0)
    assert rows["audit.plan"]["longest_wait_seconds"] >= 0
    assert rows["stack.train"]["waiting"] == 0
    set_states(database, audit, "queued", {})
    rows = {row["job"]: row for row in analyst.get("/api/v1/queue").json()["rows"] if row["queue"] != "train-gpu"}
    assert (rows["audit.plan"]["waiting"], rows["stack.train"]["waiting"]) == (0, 2)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "", {"nobody": 401, "dpo": 200, "auditor": 200, "admin": 200, "stranger": 200}),
        ("POST", "", {"nobody": 401, "dpo": 403, "auditor": 403, "admin": 403, "stranger": 404}),
        ("POST", "/forecast", {"nobody": 401, "dpo": 200, "auditor": 200, "admin": 200, "stranger": 404}),
        ("GET", "/{id}", {"nobody": 401, "dpo": 200, "auditor": 200, "admin": 200, "stranger": 404}),
        ("GET", "/{id}/costs", {"nobody": 401, "dpo": 200, "auditor": 200, "admin": 200, "stranger": 404}),
        ("GET", "/{id}/costs.csv", {"nobody": 401, "dpo": 200, "stranger": 404}),
        ("GET", "/{id}/runs", {"nobody": 401, "dpo": 200, "stranger": 404}),
        ("GET", "/{id}/runs.csv", {"nobody": 401, "dpo": 200, "stranger": 404}),
        ("GET", "/{id}/statistics", {"nobody": 401, "dpo": 200, "stranger": 404}),
        ("GET", "/{id}/statistics.csv", {"nobody": 401, "dpo": 200, "stranger": 404}),
        ("POST", "/{id}/stop", {"nobody": 401, "dpo": 403, "auditor": 403, "admin": 403, "stranger": 404}),
        ("POST", "/{id}/resume", {"nobody": 401, "dpo": 403, "auditor": 403, "admin": 403, "stranger": 404}),
        ("DELETE", "/{id}", {"nobody": 401, "dpo": 403, "auditor": 403, "stranger": 404}),
    ],
)
def test_who_may_do_what(
    client_of: Callable[[str], Client], ready: str, audit: str, method: str, path: str, expected: dict[str, int]
) -> None:
    body = question(ready) if method == "POST" and "{id}" not in path else None
    for name, status in expected.items():
        answer = client_of(name).request(method, PATH + path.format(id=audit), json=body)
        assert answer.status_code == status, (name, answer.text)
        if name == "stranger" and method == "GET" and path == "":
            assert answer.json()["items"] == []
