"""From upload to costs over REST with the real engine, and the same digits in REST, CSV and chart."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.backend.samples import question
from tests.conftest import RecordingQueue
from worker.tasks import measure_audit, plan_audit, train_stack
from worker.tasks.context import Context

JOBS = {"audit.plan": plan_audit.run, "stack.train": train_stack.run, "audit.measure": measure_audit.run}


def test_costs_agree_everywhere(analyst: TestClient, ready: str, queue: RecordingQueue, context: Context) -> None:
    body = question(ready, epsilons=[2.0], seeds=3)
    audit = analyst.post("/api/v1/audits", json=body).json()["id"]
    while queue.sent:
        job, row_id, _ = queue.sent.pop(0)
        JOBS[job](context, row_id)
    found = analyst.get(f"/api/v1/audits/{audit}").json()
    assert (found["state"], found["runs"]["finished"], found["problem"]) == ("finished", 6, None)
    assert found["steps_done"] == found["steps_total"]
    assert found["claim"]["delta"] == found["delta"]

    rows = analyst.get(f"/api/v1/audits/{audit}/costs").json()["rows"]
    private = [row for row in rows if row["method"] == "dp-sgd"]
    everyone = private[0]
    assert everyone["group"] == "everyone"
    assert everyone["low"] < everyone["cost"] < everyone["high"]
    assert everyone["epsilon_spent"] <= 2.0
    assert everyone["seeds"] == 3

    table = csv.DictReader(io.StringIO(analyst.get(f"/api/v1/audits/{audit}/costs.csv").text))
    assert [cells["cost"] for cells in table] == ["" if row["cost"] is None else repr(row["cost"]) for row in rows]

    figure = analyst.get(f"/audits/{audit}/charts/group_costs.json").json()
    drawn = {height for trace in figure["data"] for height in _heights(trace)}
    shown = [row for row in private if row["cost"] is not None]
    assert shown
    assert {100 * row["cost"] for row in shown} <= drawn

    statistics = analyst.get(f"/api/v1/audits/{audit}/statistics").json()["rows"]
    assert everyone["value"] == pytest.approx(sum(_accuracies(statistics, "dp-sgd")) / 3, abs=1e-11)
    assert everyone["baseline"] == pytest.approx(sum(_accuracies(statistics, "non-private")) / 3, abs=1e-11)


def _heights(trace: dict[str, Any]) -> list[float]:
    return [height for height in trace.get("y") or [] if isinstance(height, float | int)]


def _accuracies(statistics: list[dict[str, Any]], method: str) -> list[float]:
    """Share of right answers of everyone in the test part, for each seed."""
    found = []
    for seed in range(3):
        rows = [
            row
            for row in statistics
            if (row["method"], row["seed"], row["group"], row["part"]) == (method, seed, "everyone", "test")
        ]
        found.append(sum(row["predicted"][row["label"]] for row in rows) / sum(row["n"] for row in rows))
    return found
