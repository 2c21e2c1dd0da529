"""Uploads, recipes, roles, groups and erasure over REST."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from backend.database import Database
from backend.edge import cookie_name
from backend.people import service as people
from backend.settings import Settings
from backend.tables import Dataset, Event, Group, Recipe
from tests.backend.samples import CSV, ROLES
from tests.conftest import RecordingQueue

Client = TestClient
PATH = "/api/v1/datasets"


def files_in(settings: Settings) -> list[Path]:
    root = Path(settings.storage_url.removeprefix("file://"))
    return [path for path in root.rglob("*") if path.is_file()]


def fields(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [error["field"] for error in answer.json()["errors"]]


def count(database: Database, table: type) -> int:
    with database.transaction() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def test_an_upload_is_stored_encrypted_and_its_job_leaves_after_the_commit(
    analyst: Client, database: Database, queue: RecordingQueue, settings: Settings
) -> None:
    made = analyst.post(PATH, files={"file": ("people.csv", CSV)}, data={"name": "People"})
    assert made.status_code == 201
    body = made.json()
    assert (body["name"], body["state"], body["sha256"]) == ("People", "received", hashlib.sha256(CSV).hexdigest())
    assert queue.sent == [("dataset.read", body["id"], None)]
    [stored] = files_in(settings)
    assert b"Female" not in stored.read_bytes()
    with database.transaction() as session:
        assert session.get_one(Dataset, body["id"]).file_key is not None


def test_a_profiled_dataset_shows_columns_and_guesses(dataset: dict[str, Any]) -> None:
    assert dataset["state"] == "profiled"
    assert dataset["rows"] == 400
    columns = {column["name"]: column for column in dataset["columns"]}
    assert columns["age"]["type"] == "number"
    assert columns["age"]["missing"] == 5
    assert columns["sex"]["role"] == "protected"
    assert columns["sex"]["reason"]
    assert dataset["recipe"]["delimiter"] == ","
    assert dataset["suggested_roles"]["target"]["column"] == "income"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a b.csv", "a b.csv"),
        ("x\u202egnp.csv", "xgnp.csv"),
        ("\u540d\u524d.csv", "\u540d\u524d.csv"),
        ("n" * 500 + ".csv", "n" * 200),
    ],
)
def test_file_names_are_made_fit_to_show(analyst: Client, name: str, shown: str) -> None:
    made = analyst.post(PATH, files={"file": (name, CSV)})
    assert made.status_code == 201
    assert made.json()["file_name"] == shown


def test_a_file_name_that_is_not_utf8(analyst: Client) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="\xff\xfe.csv"\r\n\r\n' + CSV + b"\r\n--b--\r\n"
    )
    made = analyst.post(PATH, content=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert made.status_code == 201


@pytest.mark.parametrize(
    ("sent", "status", "field"),
    [
        ({"files": {"file": ("a.csv", b"")}}, 422, "file"),
        ({"files": {"other": ("a.csv", CSV)}}, 422, "file"),
        ({"files": {"file": (None, "a,b")}}, 422, "file"),
        ({"files": {"file": ("a.csv", CSV), "test_file": ("b.csv", b"")}}, 422, "test_file"),
        ({"files": {"file": ("a.csv", CSV)}, "data": {"recipe": "{"}}, 422, "recipe"),
        ({"files": {"file": ("a.csv", CSV)}, "data": {"recipe": "[1]"}}, 422, "recipe"),
        ({"files": {"file": ("a.csv", CSV)}, "data": {"recipe": '{"delimiter": ";;"}'}}, 422, "delimiter"),
        ({"files": {"file": ("a.csv", CSV)}, "data": {"recipe": '{"missing_codes": NaN}'}}, 422, "missing_codes"),
        ({"files": {"file": ("a.csv", CSV)}, "data": {"recipe": '{"surprise": 1}'}}, 422, "surprise"),
        ({"files": {"file": ("a.csv", CSV)}, "data": {"name": "a\0b"}}, 422, "name"),
        ({"json": {"sample": "nothing"}}, 422, "sample"),
        ({"json": {"sample": {"a": 1}}}, 422, "sample"),
        ({"json": {"sample": "adult", "name": 3}}, 422, "name"),
        ({"json": {"sample": "adult", "recipe": []}}, 422, "recipe"),
        ({"content": b"a,b\n1,2\n", "headers": {"Content-Type": "text/csv"}}, 415, None),
        ({"content": b"{", "headers": {"Content-Type": "application/json"}}, 400, None),
        ({"content": b'{"sample": "\xff"}', "headers": {"Content-Type": "application/json"}}, 400, None),
        ({"content": b"[" * 100_000, "headers": {"Content-Type": "application/json"}}, 400, None),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400, None),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data; boundary=b"}}, (400, 422), None),
        ({"files": [("file", ("a", CSV)), ("file", ("b", CSV)), ("file", ("c", CSV))]}, 400, None),
    ],
)
def test_what_cannot_be_received_leaves_nothing(
    analyst: Client, database: Database, settings: Settings, queue: RecordingQueue, sent: dict, status: Any, field: str
) -> None:
    answer = analyst.post(PATH, **sent)
    assert answer.status_code in (status if isinstance(status, tuple) else (status,)), answer.text
    if field is not None:
        assert fields(answer) == [field]
    assert files_in(settings) == []
    assert count(database, Dataset) == 0
    assert queue.sent == []


def test_an_unknown_state_is_told_at_its_field(analyst: Client) -> None:
    answer = analyst.get(PATH, params={"state": "asleep"})
    assert answer.json()["errors"][0]["message"].startswith("There is no such state. There are: received")


def test_a_file_beyond_the_limit_is_refused_while_it_comes(
    app: FastAPI, analyst: Client, settings: Settings, database: Database
) -> None:
    app.state.settings = settings.model_copy(update={"upload_limit_bytes": 1000})
    answer = analyst.post(PATH, files={"file": ("a.csv", CSV)})
    assert answer.status_code == 413
    assert files_in(settings) == []
    assert count(database, Dataset) == 0


def test_nobody_uploads_nothing_is_read(client_of: Callable[[str], Client], settings: Settings) -> None:
    for name, status in (("nobody", 401), ("dpo", 403), ("auditor", 403), ("admin", 403)):
        assert client_of(name).post(PATH, files={"file": ("a.csv", CSV)}).status_code == status
    assert files_in(settings) == []


def test_the_same_key_and_body_create_once(analyst: Client, database: Database, settings: Settings) -> None:
    headers = {"Idempotency-Key": "one"}

    def send(content: bytes = CSV) -> Any:
        return analyst.post(PATH, files={"file": ("a.csv", content)}, headers=headers)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: send(), range(4)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert fields(send(CSV + b"1,2,Male,White,nurse,>50K\n")) == ["Idempotency-Key"]
    assert count(database, Dataset) == 1
    assert len(files_in(settings)) == 1
    for wrong in ("", "x" * 201, "\u00e9"):
        key = {"Idempotency-Key": wrong.encode("latin-1")}
        assert fields(analyst.post(PATH, files={"file": ("a.csv", CSV)}, headers=key)) == ["Idempotency-Key"]


def test_lists_come_in_pages(analyst: Client, database: Database) -> None:
    made = [analyst.post(PATH, files={"file": (f"{n}.csv", CSV)}).json()["id"] for n in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        page = analyst.get(PATH, params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == made[::-1]
    assert analyst.get(PATH, params={"state": "profiled"}).json()["items"] == []
    assert analyst.get(PATH, params={"cursor": "MjAyNiAn"}).status_code == 422


def test_a_recipe_reads_it_anew(analyst: Client, dataset: dict[str, Any], work: Callable[[], None]) -> None:
    path = f"{PATH}/{dataset['id']}"
    asked = {"types": {"age": "category"}, "labels": {"columns": {"age": "Age"}}}
    answer = analyst.put(f"{path}/recipe", json=asked)
    assert answer.json()["state"] == "received"
    assert analyst.put(f"{path}/recipe", json={}).status_code == 409
    assert analyst.put(f"{path}/roles", json=ROLES).status_code == 409
    work()
    found = analyst.get(path).json()
    assert (found["state"], found["recipe_version"]) == ("profiled", 2)
    age = next(column for column in found["columns"] if column["name"] == "age")
    assert (age["type"], age["label"]) == ("category", "Age")
    echo = analyst.put(f"{path}/recipe", json=found["recipe"])
    assert echo.status_code == 200, echo.text


def test_a_refused_table_says_why_and_can_be_read_otherwise(analyst: Client, work: Callable[[], None]) -> None:
    made = analyst.post(PATH, files={"file": ("a.csv", b"a,b\n")}).json()
    work()
    found = analyst.get(f"{PATH}/{made['id']}").json()
    assert found["state"] == "refused"
    assert found["problem"]["happened"]
    assert analyst.put(f"{PATH}/{made['id']}/roles", json=ROLES).status_code == 409
    assert analyst.put(f"{PATH}/{made['id']}/recipe", json={"header": False}).status_code == 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"target": {"column": "nothing", "favourable": "1"}}, "target.column"),
        ({"target": {"column": "sex", "favourable": "Male"}}, "target.column"),
        ({"target": {"column": "income", "favourable": "no"}}, "target.favourable"),
        ({"target": 3}, "target"),
        ({"protected": []}, "protected"),
        ({"protected": ["nothing"]}, "protected[0]"),
        ({"protected": "sex"}, "protected"),
        ({"cuts": {"age": [float("nan")]}}, "cuts.age[0]"),
        ({"cuts": {"age": [10**400]}}, "cuts.age[0]"),
        ({"surprise": 1}, "surprise"),
        ({"person_id": ["x"]}, "person_id"),
    ],
)
def test_wrong_roles_are_told_at_their_field(
    analyst: Client, dataset: dict[str, Any], database: Database, change: dict[str, Any], field: str
) -> None:
    import json

    body = json.dumps(ROLES | change)
    answer = analyst.put(f"{PATH}/{dataset['id']}/roles", content=body, headers={"Content-Type": "application/json"})
    assert field in fields(answer)
    assert count(database, Recipe) == 1


@pytest.mark.parametrize(
    ("table", "field"),
    [
        (b"sex,age,y\n" + b"F,1,1\nM,2,1\n" * 40, "target.column"),
        (b"sex,age,y\n" + b"F,1,1\nF,2,0\n" * 40, "protected[0]"),
    ],
)
def test_tables_that_cannot_be_asked(analyst: Client, work: Callable[[], None], table: bytes, field: str) -> None:
    made = analyst.post(PATH, files={"file": ("a.csv", table)}).json()
    work()
    roles = {"target": {"column": "y", "favourable": "1"}, "protected": ["sex"]}
    assert field in fields(analyst.put(f"{PATH}/{made['id']}/roles", json=roles))


def test_groups_and_roles(analyst: Client, ready: str) -> None:
    found = analyst.get(f"{PATH}/{ready}").json()
    assert (found["recipe_state"], found["recipe_version"]) == ("ready", 2)
    roles = {column["name"]: column["role"] for column in found["columns"]}
    assert roles == {
        "age": "feature",
        "hours": "feature",
        "sex": "protected",
        "race": "protected",
        "job": "feature",
        "income": "target",
    }
    rows = analyst.get(f"{PATH}/{ready}/groups").json()["rows"]
    everyone = rows[0]
    assert everyone["key"] == "everyone"
    assert everyone["train"] + everyone["validation"] + everyone["test"] == 400
    assert 0 < everyone["smallest_detectable_cost"] < 1
    sexes = [row for row in rows if list(row["attributes"]) == ["sex"]]
    assert sum(row["test"] for row in sexes) == everyone["test"]
    text = analyst.get(f"{PATH}/{ready}/groups.csv").text
    assert [row["base_rate"] for row in csv.DictReader(io.StringIO(text))] == [
        "" if row["base_rate"] is None else repr(row["base_rate"]) for row in rows
    ]
    small = next(row for row in rows if not row["estimable"])
    assert small["reason"]
    assert small["smallest_detectable_cost"] is None


def test_waiting_for_the_count_ends(analyst: Client, dataset: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.2)
    answer = analyst.put(f"{PATH}/{dataset['id']}/roles", json=ROLES)
    assert answer.status_code == 200
    assert answer.json()["recipe_state"] == "counting"
    assert analyst.get(f"{PATH}/{dataset['id']}/groups").json()["rows"] == []


def test_erasing_destroys_key_files_and_content(
    analyst: Client, ready: str, database: Database, settings: Settings
) -> None:
    with database.transaction() as session:
        for row in session.scalars(select(Group).where(Group.key != "everyone").order_by(Group.position).limit(1)):
            row.train, row.validation, row.test = 500, 200, 9
        others = session.scalars(select(Group).where(Group.key != "everyone").order_by(Group.position).offset(1))
        for row in others:
            row.train, row.validation, row.test = 30, 20, 10
    answer = analyst.delete(f"{PATH}/{ready}")
    assert answer.status_code == 200
    receipt = answer.json()
    assert receipt["key_destroyed"]
    assert receipt["files_deleted"] >= 2
    assert receipt["groups_removed"] == 1
    assert files_in(settings) == []
    found = analyst.get(f"{PATH}/{ready}").json()
    assert (found["state"], found["columns"], found["rows"]) == ("erased", [], None)
    assert found["receipt"]["sha256"] == receipt["sha256"]
    assert analyst.delete(f"{PATH}/{ready}").json() == receipt
    assert [item["id"] for item in analyst.get(PATH).json()["items"]] == []
    assert [item["id"] for item in analyst.get(PATH, params={"state": "erased"}).json()["items"]] == [ready]
    assert analyst.put(f"{PATH}/{ready}/roles", json=ROLES).status_code == 409
    assert analyst.put(f"{PATH}/{ready}/recipe", json={}).status_code == 409
    with database.transaction() as session:
        row = session.get_one(Dataset, ready)
        assert (row.file_key, row.storage_key, row.asked_recipe) == (None, None, None)
        for recipe in session.scalars(select(Recipe)):
            assert "Female" not in repr((recipe.profile, recipe.reading, recipe.encoding))
        assert session.scalar(select(Event.kind).order_by(Event.number.desc())) == "dataset.erased"


def test_a_dataset_erased_before_it_was_read_stays_erased(
    analyst: Client, work: Callable[[], None], settings: Settings
) -> None:
    made = analyst.post(PATH, files={"file": ("a.csv", CSV)}).json()
    assert analyst.delete(f"{PATH}/{made['id']}").status_code == 200
    work()
    assert analyst.get(f"{PATH}/{made['id']}").json()["state"] == "erased"
    assert files_in(settings) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "", None, {"nobody": 401, "dpo": 200, "auditor": 200, "admin": 200, "stranger": 200}),
        ("GET", "/samples", None, {"nobody": 401, "dpo": 200, "stranger": 200}),
        ("GET", "/{id}", None, {"nobody": 401, "dpo": 200, "auditor": 200, "admin": 200, "stranger": 404}),
        ("GET", "/{id}/groups", None, {"nobody": 401, "dpo": 200, "auditor": 200, "admin": 200, "stranger": 404}),
        ("GET", "/{id}/groups.csv", None, {"nobody": 401, "dpo": 200, "stranger": 404}),
        ("PUT", "/{id}/recipe", {}, {"nobody": 401, "dpo": 403, "auditor": 403, "admin": 403, "stranger": 404}),
        ("PUT", "/{id}/roles", ROLES, {"nobody": 401, "dpo": 403, "auditor": 403, "admin": 403, "stranger": 404}),
        ("DELETE", "/{id}", None, {"nobody": 401, "dpo": 403, "auditor": 403, "stranger": 404, "admin": 403}),
    ],
)
def test_who_may_do_what(
    client_of: Callable[[str], Client],
    dataset: dict[str, Any],
    method: str,
    path: str,
    body: Any,
    expected: dict[str, int],
) -> None:
    for name, status in expected.items():
        answer = client_of(name).request(method, PATH + path.format(id=dataset["id"]), json=body)
        assert answer.status_code == status, name
        if name == "stranger" and path == "":
            assert answer.json()["items"] == []


def test_an_admin_erases_from_the_browser(
    app: FastAPI, settings: Settings, database: Database, persons: dict[str, str], dataset: dict[str, Any]
) -> None:
    with database.transaction() as session:
        secret = people.redeem_link(session, people.make_link(session, persons["admin"]))
    browser = TestClient(app, cookies={cookie_name(settings): secret})
    assert browser.delete(f"{PATH}/{dataset['id']}", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert browser.delete(f"{PATH}/{dataset['id']}", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
