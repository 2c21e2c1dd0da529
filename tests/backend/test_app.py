"""What every answer has in common."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from backend.app import HideSecrets
from worker.engine.catalogue import METHODS

Client = TestClient


def test_health_needs_no_token_and_ready_names_what_is_away(client_of: Callable[[str], Client], app: FastAPI) -> None:
    nobody = client_of("nobody")
    assert nobody.get("/health").json() == {"status": "up"}
    assert nobody.get("/ready").json() == {"status": "ready"}
    app.state.queue.close()
    app.state.queue._app.conf.broker_url = "redis://127.0.0.1:9"
    away = nobody.get("/ready")
    assert away.status_code == 503
    assert [error["field"] for error in away.json()["errors"]] == ["queue"]


def test_headers_of_every_answer(client_of: Callable[[str], Client]) -> None:
    for path in ("/health", "/api/v1/datasets", "/api/nothing", "/api/docs"):
        headers = client_of("nobody").get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api", 404),
        ("PATCH", "/api/v1/datasets", 405),
        ("GET", "/api/v1/datasets?limit=0", 422),
        ("GET", "/api/v1/datasets?cursor=junk", 422),
        ("POST", "/api/v1/datasets", 415),
    ],
)
def test_errors_are_problem_json(analyst: Client, method: str, path: str, status: int) -> None:
    answer = analyst.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert {"type", "title", "detail"} <= set(problem)
    if status == 422:
        assert problem["errors"][0]["field"] in ("limit", "cursor")
    if status == 405:
        assert answer.headers["allow"]


def test_a_fault_of_ours_tells_nothing(
    analyst: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("Amer-Indian-Eskimo")

    monkeypatch.setattr("backend.datasets.service.list_datasets", broken)
    answer = analyst.get("/api/v1/datasets")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Eskimo" not in answer.text
    assert "Eskimo" not in caplog.text
    assert "RuntimeError" in caplog.text
    assert "default-src" in answer.headers["content-security-policy"]


def test_a_body_beyond_the_limit_is_refused_whatever_it_says(analyst: Client) -> None:
    def pieces():  # type: ignore[no-untyped-def]  # a body without a length
        for _ in range(3):
            yield b"x" * 600_000

    headers = {"Content-Type": "application/json"}
    for body in (b"x" * 2_000_000, pieces()):
        answer = analyst.post("/api/v1/audits", content=body, headers=headers)
        assert answer.status_code == 413
        assert answer.json()["title"] == "Too large"


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "http://testserver"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer x"}, True),
    ],
)
def test_other_sites_cannot_make_changes(
    client_of: Callable[[str], Client], headers: dict[str, str], allowed: bool
) -> None:
    answer = client_of("nobody").post("/api/v1/audits", json={}, headers=headers)
    assert answer.status_code == (401 if allowed else 403)
    assert client_of("nobody").get("/health", headers=headers).status_code == 200


def test_docs_stand_alone(client_of: Callable[[str], Client]) -> None:
    nobody = client_of("nobody")
    page = nobody.get("/api/docs").text
    assert "<script" not in page
    assert "style=" not in page
    assert "/api/v1/audits/{audit_id}/costs" in page
    assert 'id="not-found"' in page
    described = nobody.get("/api/openapi.json").json()
    assert "/api/v1/datasets/{dataset_id}/roles" in described["paths"]
    assert nobody.get("/api/docs.css").headers["content-type"].startswith("text/css")


def test_plotly_comes_compressed_and_for_ever(client_of: Callable[[str], Client]) -> None:
    from backend.assets import PLOTLY_PATH

    nobody = client_of("nobody")
    packed = nobody.get(PLOTLY_PATH, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "immutable" in packed.headers["cache-control"]
    assert len(packed.content) > 4_000_000
    assert int(packed.headers["content-length"]) < 2_000_000
    plain = nobody.get(PLOTLY_PATH, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == packed.content


def test_the_catalogue(analyst: Client, client_of: Callable[[str], Client]) -> None:
    assert client_of("nobody").get("/api/v1/catalogue").status_code == 401
    found = analyst.get("/api/v1/catalogue").json()
    assert [method["key"] for method in found["methods"]] == [method.key for method in METHODS]
    assert [method["key"] for method in found["methods"]][:2] == ["non-private", "dp-sgd"]
    assert {"accuracy", "loss"} <= {metric["key"] for metric in found["metrics"]}
    assert all(entry["help"] for entries in found.values() for entry in entries)


def test_a_database_that_is_away_is_said_to_be(analyst: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("SELECT Amer-Indian-Eskimo", {}, Exception("gone"))

    monkeypatch.setattr("backend.datasets.service.list_datasets", away)
    answer = analyst.get("/api/v1/datasets")
    assert answer.status_code == 503
    assert "Eskimo" not in answer.text


def test_sign_in_secrets_stay_out_of_the_log() -> None:
    record = logging.LogRecord("a", 20, "", 0, '%s "%s %s"', ("127.0.0.1", "GET", "/sign-in/abc-DEF_1?x=1"), None)
    assert HideSecrets().filter(record)
    assert record.getMessage() == '127.0.0.1 "GET /sign-in/…"'
