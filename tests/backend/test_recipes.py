"""Recipes over REST and in the browser: read anew with wishes, roles that stay, wishes taken back, limits named."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.engine.datasets.files import workbook

Client = TestClient
PATH = "/api/v1/datasets"
CELLS = ("F", "f", "Female", "M", "Male")
TABLE = "sex,age,pay,y\n" + "".join(f"{CELLS[i % 5]},{20 + i % 50},{i * 1.5},{i % 3 % 2}\n" for i in range(400))
ROLES = {"target": {"column": "y", "favourable": "1"}, "protected": ["sex"], "features": ["age", "pay"]}
MERGES = {"sex": {"F": "Female", "f": "Female", "M": "Male"}}


@pytest.fixture
def upload(analyst: Client, work: Callable[[], None]) -> Callable[..., dict[str, Any]]:
    def upload(content: str | bytes, name: str = "table.csv", **data: str) -> dict[str, Any]:
        made = analyst.post(PATH, files={"file": (name, content)}, data=data)
        assert made.status_code == 201, made.text
        work()
        return dict(analyst.get(f"{PATH}/{made.json()['id']}").json())

    return upload


def read_anew(
    analyst: Client, work: Callable[[], None], dataset: dict[str, Any], body: dict[str, Any]
) -> dict[str, Any]:
    answer = analyst.put(f"{PATH}/{dataset['id']}/recipe", json=body)
    assert answer.status_code == 200, answer.text
    work()
    return dict(analyst.get(f"{PATH}/{dataset['id']}").json())


def column(dataset: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in dataset["columns"] if one["name"] == name)


def test_merges_labels_and_bounds_are_used_and_roles_stay(
    analyst: Client, work: Callable[[], None], upload: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.0)
    made = upload(TABLE)
    assert [merge["into"] for merge in column(made, "sex")["merges"]] == ["Female", "Male"]
    assert column(made, "sex")["distinct"] == 5
    assert made["preview"][0] == ["F", "20", "0", "0"]
    assert analyst.put(f"{PATH}/{made['id']}/roles", json=ROLES).status_code == 200
    work()
    labels = {"columns": {"sex": "Sex"}, "values": {"sex": {"Female": "Women"}}}
    schema = {"age": {"low": 18, "high": 60, "source": "public"}}
    found = read_anew(analyst, work, made, {"merges": MERGES, "labels": labels, "schema": schema})
    assert (found["state"], found["recipe_state"]) == ("profiled", "ready")
    assert found["roles"]["protected"] == ["sex"]
    groups = {row["key"]: row["label"] for row in analyst.get(f"{PATH}/{made['id']}/groups").json()["rows"]}
    assert groups == {"everyone": "everyone", "sex=Female": "Sex: Women", "sex=Male": "Sex: Male"}
    age, pay = found["encoding"]
    assert (age["low"], age["high"], age["source"]) == (18, 60, "public")
    assert age["clamped"] == sum(20 + i % 50 > 60 for i in range(400))
    assert (pay["source"], pay["low"]) == ("read from the data", pytest.approx(0, abs=9))
    assert found["summary"]["bounds"] == {"public": ["age"], "read_from_data": ["pay"]}
    assert found["asked_recipe"] == {"merges": MERGES, "labels": labels, "schema": schema}
    back = read_anew(analyst, work, made, {"merges": None})
    assert column(back, "sex")["distinct"] == 5
    assert back["recipe"]["labels"] == labels


def test_roles_that_do_not_fit_any_more_are_asked_for_again(
    analyst: Client, work: Callable[[], None], upload: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.0)
    made = upload(TABLE)
    analyst.put(f"{PATH}/{made['id']}/roles", json=ROLES)
    work()
    found = read_anew(analyst, work, made, {"header": False})
    assert (found["recipe_state"], found["roles"]) == ("read", None)
    assert any("do not fit" in note["message"] for note in found["notes"])


def test_a_feature_that_repeats_the_target_is_named(
    analyst: Client, work: Callable[[], None], upload: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.0)
    lines = TABLE.splitlines()
    made = upload("\n".join([lines[0] + ",paid", *(f"{line},{'yn'[line.endswith('1')]}" for line in lines[1:])]))
    analyst.put(f"{PATH}/{made['id']}/roles", json=ROLES | {"features": ["age", "pay", "paid"]})
    work()
    found = analyst.get(f"{PATH}/{made['id']}").json()
    assert [note["column"] for note in found["notes"] if "repeats the target" in note["message"]] == ["paid"]


def test_other_formats_come_in_by_the_same_way(upload: Callable[..., dict[str, Any]]) -> None:
    book = upload(workbook({"Data": [["a", "b"], [1.5, "x"], [2.5, "y"]]}), name="really.csv")
    assert (book["state"], book["recipe"]["format"], book["recipe"]["sheet"]) == ("profiled", "xlsx", "Data")
    packed = upload(gzip.compress(TABLE.encode()), name="table.csv")
    assert (packed["rows"], packed["recipe"]["format"]) == (400, "csv")


def test_a_limit_is_named_in_the_problem(upload: Callable[..., dict[str, Any]]) -> None:
    bomb = upload(gzip.compress(b"0,0\n" * 5_000_000), name="t.csv.gz")
    assert (bomb["state"], bomb["problem"]["limit"]) == ("refused", "ratio")
    assert "200 times" in bomb["problem"]["happened"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"encoding": "klingon"}, "encoding"),
        ({"decimal": "'"}, "decimal"),
        ({"skip_rows": 1.5}, "skip_rows"),
        ({"header_rows": True}, "header_rows"),
        ({"missing": {"a": [1]}}, "missing.a"),
        ({"types": {"a": "date"}}, "types.a"),
        ({"merges": {"a": ["b"]}}, "merges.a"),
        ({"schema": {"a": {"low": 1, "high": 1}}}, "schema.a.high"),
        ({"schema": {"a": {"source": "me"}}}, "schema.a.source"),
        ({"schema": []}, "schema"),
        ({"sheet": 3}, "sheet"),
    ],
)
def test_wishes_that_cannot_be_used_are_told_at_their_field(
    analyst: Client, dataset: dict[str, Any], body: dict[str, Any], field: str
) -> None:
    answer = analyst.put(f"{PATH}/{dataset['id']}/recipe", json=body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_wish_that_the_table_does_not_allow_refuses_it_and_can_be_taken_back(
    analyst: Client, work: Callable[[], None], dataset: dict[str, Any]
) -> None:
    refused = read_anew(analyst, work, dataset, {"types": {"sex": "number"}})
    assert (refused["state"], refused["problem"]["column"]) == ("refused", "sex")
    assert refused["problem"]["row"] == 1
    assert read_anew(analyst, work, dataset, {"types": None})["state"] == "profiled"


def test_the_catalogue_lists_the_formats(analyst: Client) -> None:
    formats = analyst.get("/api/v1/catalogue").json()["formats"]
    assert {one["key"] for one in formats} == {"csv", "xlsx", "parquet", "arrow", "gzip", "zip"}
