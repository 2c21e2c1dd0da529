"""The numbers beside costs, by REST and CSV, from an audit that was really planned, trained and measured."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from backend.database import Database
from backend.queue import MEASURE_AUDIT, PLAN_AUDIT, TRAIN_STACK
from backend.settings import Settings
from backend.tables import Audit
from tests.backend.conftest import Client
from tests.backend.samples import question
from tests.conftest import RecordingQueue
from worker.engine.accounting import calibrate
from worker.engine.catalogue import METRICS
from worker.engine.results import Calibration
from worker.tasks import measure_audit, plan_audit, train_stack
from worker.tasks.context import Context

PATH = "/api/v1/audits"
TABLES = ("costs", "gaps", "disparities", "marks", "tradeoff", "measurements", "values", "statistics")


@pytest.fixture
def trained(
    analyst: Client, ready: str, context: Context, queue: RecordingQueue, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Id of a finished audit: two epsilons, three seeds. The noise is given: finding it takes seconds and is tested elsewhere."""
    monkeypatch.setattr(calibrate, "calibrate", lambda epsilon, *_: Calibration(2.0 / epsilon, epsilon, {}))
    body = question(ready) | {"epsilons": [1, 8], "seeds": 3, "training": {"epochs": 2, "batch_size": 64}}
    made = analyst.post(PATH, json=body)
    assert made.status_code == 201, made.text
    jobs = {PLAN_AUDIT: plan_audit.run, TRAIN_STACK: train_stack.run, MEASURE_AUDIT: measure_audit.run}
    while queue.sent:
        job, row_id, _ = queue.sent.pop(0)
        if job in jobs:
            jobs[job](context, row_id)
    found = analyst.get(f"{PATH}/{made.json()['id']}").json()
    assert found["state"] == "finished", found["problem"]
    return str(found["id"])


def same_in_csv(client: Client, audit: str, table: str, query: str) -> list[dict[str, Any]]:
    """The rows of a table, after CSV was found to hold the same digits."""
    found = client.get(f"{PATH}/{audit}/{table}{query}")
    assert found.status_code == 200, found.text
    rows = found.json()["rows"]
    lines = list(csv.DictReader(io.StringIO(client.get(f"{PATH}/{audit}/{table}.csv{query}").text)))
    assert len(lines) == len(rows) > 0
    for row, cells in zip(rows, lines, strict=True):
        for name, value in row.items():
            shown = "" if value is None else json.dumps(value) if not isinstance(value, str) else value
            assert cells[name] == shown, (table, name)
    return list(rows)


WRONG = (
    ("gaps?metric=nonsense", "metric"),
    ("disparities?reference=nobody", "reference"),
    ("disparities?metric=equalized_odds", "metric"),
    ("tradeoff?max_cost=nan", "max_cost"),
    ("tradeoff?max_cost=101", "max_cost"),
    ("tradeoff?group_min=0", "group_min"),
)


def test_the_numbers_of_a_trained_audit(analyst: Client, client_of: Any, trained: str) -> None:
    """One audit for all that follows: training it is what takes time."""
    _every_table_is_the_same_in_csv_and_what_is_missing_has_a_reason(analyst, trained)
    _what_counts_cannot_give_comes_from_the_logits(analyst, trained)
    _the_trade_off_answers_in_words(analyst, trained)
    _a_wrong_choice_is_an_error_at_its_field(analyst, trained)
    _the_pages_show_what_rest_gives(analyst, trained)
    _others_see_nothing_and_an_erased_audit_has_none(client_of, analyst, trained)


def _every_table_is_the_same_in_csv_and_what_is_missing_has_a_reason(analyst: Client, trained: str) -> None:
    for table in TABLES:
        rows = same_in_csv(analyst, trained, table, "?group_min=50" if table == "tradeoff" else "")
        assert all(row["tag"] == "audit-only" for row in rows)
    for metric in METRICS:
        for row in same_in_csv(analyst, trained, "costs", f"?metric={metric.key}"):
            if row["cost"] is None or row["low"] is None:
                assert row["reason"], row
                assert row["reason_code"], row
            assert "-0.0" not in [str(value) for value in row.values()]
        for row in same_in_csv(analyst, trained, "gaps", f"?metric={metric.key}"):
            assert row["gap"] is not None or row["reason_code"]
            assert row["excess"] is None or row["low"] <= row["excess"] <= row["high"]
    odds = analyst.get(f"{PATH}/{trained}/gaps?metric=equalized_odds").json()
    assert odds["title"] == "Equalized odds difference"
    assert {row["metric"] for row in odds["rows"]} == {"equalized_odds"}


def _what_counts_cannot_give_comes_from_the_logits(analyst: Client, trained: str) -> None:
    for metric in ("auc", "calibration_error"):
        rows = analyst.get(f"{PATH}/{trained}/costs?metric={metric}").json()["rows"]
        everyone = next(row for row in rows if row["group"] == "everyone" and row["epsilon_asked"] == 8)
        values = [
            row
            for row in analyst.get(f"{PATH}/{trained}/values").json()["rows"]
            if row["metric"] == metric and row["group"] == "everyone" and row["epsilon_asked"] == 8
        ]
        assert everyone["value"] == pytest.approx(sum(row["value"] for row in values) / 3, abs=1e-9)
        assert everyone["low"] <= everyone["cost"] <= everyone["high"]


def _the_trade_off_answers_in_words(analyst: Client, trained: str) -> None:
    loose = analyst.get(f"{PATH}/{trained}/tradeoff?group_min=50&max_cost=100").json()
    assert loose["epsilon_asked"] == 1
    assert loose["answer"].startswith("Down to epsilon 1")
    strict = analyst.get(f"{PATH}/{trained}/tradeoff?group_min=50&max_cost=-90").json()
    assert strict["epsilon_asked"] is None


def _a_wrong_choice_is_an_error_at_its_field(analyst: Client, trained: str) -> None:
    for path, field in WRONG:
        for form in (path, path.replace("?", ".csv?")):
            found = analyst.get(f"{PATH}/{trained}/{form}")
            assert found.status_code == 422, found.text
            assert [error["field"] for error in found.json()["errors"]] == [field]


def _others_see_nothing_and_an_erased_audit_has_none(client_of: Any, analyst: Client, trained: str) -> None:
    for table in TABLES:
        assert client_of("stranger").get(f"{PATH}/{trained}/{table}").status_code == 404
    receipt = analyst.delete(f"{PATH}/{trained}").json()
    assert receipt["measurements_removed"] > 0
    for table in TABLES:
        assert analyst.get(f"{PATH}/{trained}/{table}").status_code == 409


def _the_pages_show_what_rest_gives(analyst: Client, trained: str) -> None:
    for query in ("?tab=gaps", "?tab=gaps&metric=equalized_odds", "?tab=tradeoff&group_min=50", "?metric=auc", ""):
        found = analyst.get(f"/audits/{trained}{query}", headers={"Accept": "text/html"})
        assert found.status_code == 200, found.text[:500]
        assert "audit-only" in found.text
    assert "Who pays more than the rest?" in found.text
    for chart in ("gap_gap", "gap_excess", "tradeoff"):
        for look in ("", "&narrow=yes&tone=dark"):
            figure = analyst.get(f"/audits/{trained}/charts/{chart}.json?metric=loss&group_min=50{look}").json()
            assert figure["data"]
    for part in ("gaps", "tradeoff", "cost"):
        assert analyst.get(f"/audits/{trained}/parts/{part}?metric=loss").status_code == 200


def test_an_audit_without_numbers_says_so_on_every_tab(
    analyst: Client, ready: str, database: Database, settings: Settings
) -> None:
    audit = analyst.post(PATH, json=question(ready)).json()["id"]
    for query in ("?tab=gaps", "?tab=tradeoff", ""):
        assert analyst.get(f"/audits/{audit}{query}").status_code == 200
    assert "No gap can be shown" in analyst.get(f"/audits/{audit}?tab=gaps").text
    assert "cannot be said yet" in analyst.get(f"/audits/{audit}?tab=tradeoff").text
    with database.transaction() as session:
        session.get_one(Audit, audit).state = "erased"
    assert "were erased" in analyst.get(f"/audits/{audit}?tab=gaps").text
