"""News: numbered without gaps, replayed exactly, told live by a real server that also ends when asked to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import true

from backend.database import Database
from backend.people import service as people
from backend.progress import queries, routes
from backend.progress.routes import AllStreams, OneStream
from backend.tables import Dataset, Person

Message = dict[str, Any]


@pytest.fixture
def stream(analyst: TestClient) -> str:
    return str(analyst.post("/api/v1/datasets", files={"file": ("a.csv", b"a\n1\n")}).json()["id"])


def record(database: Database, stream: str, kind: str = "dataset.profiled", **payload: Any) -> int:
    with database.transaction() as session:
        return queries.record_event(session, session.get_one(Dataset, stream), kind, payload).number


@contextmanager
def serving(app: FastAPI) -> Iterator[tuple[str, uvicorn.Server]]:
    """The app behind a real server, in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", server
    finally:
        app.state.closing = True
        server.should_exit = True
        thread.join()


@contextmanager
def listening(base: str, token: str, query: str = "", **headers: str) -> Iterator[Iterator[Message]]:
    with (
        httpx.Client(timeout=10) as client,
        client.stream(
            "GET", f"{base}/api/v1/events{query}", headers={"Authorization": f"Bearer {token}"} | headers
        ) as got,
    ):
        assert got.status_code == 200
        assert got.headers["content-type"].startswith("text/event-stream")
        assert got.headers["x-accel-buffering"] == "no"
        assert got.headers["cache-control"] == "no-cache"
        assert "content-encoding" not in got.headers
        yield _messages(got.iter_lines())


def _messages(lines: Iterator[str]) -> Iterator[Message]:
    message: Message = {}
    for line in lines:
        if line.startswith("id: "):
            message["id"] = line[4:]
        elif line.startswith("data: "):
            message |= json.loads(line[6:])
        elif not line and "id" in message:
            yield message
            message = {}


def test_numbers_have_no_gaps_whoever_writes(database: Database, stream: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(lambda n: record(database, stream, n=n), range(40)))
    assert sorted(numbers) == list(range(1, 41))


def test_one_stream_is_exact(database: Database, stream: str) -> None:
    for n in range(5):
        record(database, stream, n=n)
    read = OneStream(database, stream, 2)
    assert [event.number for event in read()] == [3, 4, 5]
    assert read() == []
    record(database, stream)
    assert [event.number for event in read()] == [6]


def test_all_streams_miss_nothing_that_becomes_visible_late(
    database: Database, stream: str, analyst: TestClient
) -> None:
    other = str(analyst.post("/api/v1/datasets", files={"file": ("b.csv", b"a\n1\n")}).json()["id"])
    now = [0.0]
    read = AllStreams(database, true(), 0, clock=lambda: now[0])
    with database.transaction() as slow:
        early = queries.record_event(slow, slow.get_one(Dataset, stream), "slow", {})
        record(database, other, "quick")
        assert [event.kind for event in read()] == ["quick"]
        assert early.position < read.told.popitem()[0]
    read.told = {}
    assert [event.kind for event in read()] == ["slow", "quick"]
    assert read() == []
    now[0] = 31.0
    assert read() == []
    assert read.told == {}
    assert read.position > early.position


def test_a_reader_that_comes_back_sees_what_was_written_meanwhile(
    app: FastAPI, database: Database, stream: str, tokens: dict[str, str]
) -> None:
    record(database, stream, n=1)
    with serving(app) as (base, _):
        with listening(base, tokens["analyst"], f"?dataset={stream}") as messages:
            first = next(messages)
            assert (first["number"], first["n"], first["id"]) == (1, 1, f"{stream}:1")
            record(database, stream, n=2)
            assert next(messages)["n"] == 2
        for n in (3, 4):
            record(database, stream, n=n)
        with listening(base, tokens["analyst"], f"?dataset={stream}", **{"Last-Event-ID": f"{stream}:2"}) as messages:
            assert [next(messages)["n"], next(messages)["n"]] == [3, 4]
        with listening(base, tokens["analyst"], **{"Last-Event-ID": f"{stream}:3"}) as messages:
            seen = {next(messages)["number"] for _ in range(4)}
            assert {4} <= seen
        with listening(base, tokens["analyst"], f"?dataset={stream}&after={stream}:3") as messages:
            assert next(messages)["n"] == 4


def test_other_teams_hear_nothing_and_readers_of_all_teams_do(
    app: FastAPI, database: Database, stream: str, tokens: dict[str, str]
) -> None:
    with (
        serving(app) as (base, _),
        listening(base, tokens["dpo"]) as heard,
        listening(base, tokens["stranger"]) as deaf,
    ):
        record(database, stream, "secret")
        assert next(heard)["kind"] == "secret"
        with pytest.raises(httpx.ReadTimeout):
            next(_short(deaf, base, tokens["stranger"]))


def _short(_: Iterator[Message], base: str, token: str) -> Iterator[Message]:
    with (
        httpx.Client(timeout=1.5) as client,
        client.stream("GET", f"{base}/api/v1/events", headers={"Authorization": f"Bearer {token}"}) as got,
    ):
        yield from _messages(got.iter_lines())


def test_a_signed_out_reader_is_let_go(
    app: FastAPI, database: Database, stream: str, persons: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "HEARTBEAT_SECONDS", 0.3)
    with database.transaction() as session:
        token = people.make_token(session, persons["analyst"], name="short")
    with serving(app) as (base, _), listening(base, token, f"?dataset={stream}") as messages:
        with database.transaction() as session:
            found = people.principal_of_token(session, token)
            assert found is not None
            [made] = [t for t in people.list_tokens(session, found) if t["name"] == "short"]
            people.revoke_token(session, found, made["id"])
        assert list(messages) == []


def test_a_reader_who_changes_teams_is_let_go(
    app: FastAPI, database: Database, stream: str, persons: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "HEARTBEAT_SECONDS", 0.3)
    with database.transaction() as session:
        token = people.make_token(session, persons["analyst"], name="moves")
        other = session.get_one(Person, persons["stranger"]).team_id
    with serving(app) as (base, _), listening(base, token) as messages:
        with database.transaction() as session:
            session.get_one(Person, persons["analyst"]).team_id = other
        list(messages)  # ends


def test_the_server_ends_with_readers_connected(app: FastAPI, stream: str, tokens: dict[str, str]) -> None:
    with serving(app) as (base, server), listening(base, tokens["analyst"], f"?dataset={stream}") as messages:
        began = time.monotonic()
        app.state.closing = True
        server.should_exit = True
        assert list(messages) == []
        assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?audit=" + "0" * 32, 404),
        ("?dataset=x%00", 404),
        ("?after=junk", 422),
        ("?after=" + "0" * 32 + ":99999999999999", 422),
        ("?audit=a&dataset=b", 422),
    ],
)
def test_what_cannot_be_listened_to(analyst: TestClient, query: str, status: int) -> None:
    assert analyst.get(f"/api/v1/events{query}").status_code == status


def test_nobody_hears_nothing(app: FastAPI) -> None:
    assert TestClient(app).get("/api/v1/events").status_code == 401
