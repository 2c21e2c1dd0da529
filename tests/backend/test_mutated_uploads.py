"""Damaged files by HTTP: never a 500, and every refusal has its sentences; hundreds with `make proofs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from fastapi.testclient import TestClient

from tests.worker.mutations import mutated

PATH = "/api/v1/datasets"


def upload_all(analyst: TestClient, work: Callable[[], None], files: Iterable[tuple[str, bytes]]) -> Counter[str]:
    """How each upload ended, with its page fetched by REST, read anew, and its groups asked for."""
    ended: Counter[str] = Counter()
    for number, (kind, content) in enumerate(files):
        made = analyst.post(PATH, files={"file": (f"{number}-{kind}.csv", content)})
        assert made.status_code in (201, 422), kind
        if made.status_code == 422:
            assert made.json()["errors"], kind
            ended["not taken"] += 1
            continue
        work()
        path = f"{PATH}/{made.json()['id']}"
        found = analyst.get(path).json()
        assert found["state"] in ("profiled", "refused"), kind
        if found["state"] == "refused":
            assert found["problem"]["happened"].endswith("."), kind
            assert found["problem"]["next"], kind
        else:
            body = found["suggested_roles"] | {"target": found["suggested_roles"]["target"] or {"column": "y"}}
            assert analyst.put(f"{path}/roles", json=body).status_code in (200, 422), kind
            work()
            assert analyst.get(f"{path}/groups.csv").status_code == 200, kind
        assert analyst.put(f"{path}/recipe", json={"header": False}).status_code == 200, kind
        work()
        assert analyst.delete(path).status_code == 200, kind
        ended[found["state"]] += 1
    return ended


def test_a_few_damaged_uploads(analyst: TestClient, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.0)
    assert sum(upload_all(analyst, work, mutated(20, seed=3)).values()) == 20


@pytest.mark.proofs
def test_three_hundred_damaged_uploads(
    analyst: TestClient, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.datasets.service.COUNT_SECONDS", 0.0)
    ended = upload_all(analyst, work, mutated(300, seed=4))
    print(dict(ended))
    assert sum(ended.values()) == 300
    assert ended["profiled"] > 30
    assert ended["refused"] > 30
