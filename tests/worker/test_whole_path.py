"""From an upload to a finished audit, with real workers, a real database and a real queue."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from backend.database import Database
from backend.datasets import service as datasets
from backend.settings import Settings
from backend.tables import Recipe, Run, Statistic
from tests.worker.audits import Desk, small_csv
from tests.worker.conftest import StartWorker, Worker

pytestmark = pytest.mark.services


@pytest.fixture
def desk(real_database: Database, settings: Settings) -> Desk:
    return Desk.of(real_database, settings)


def test_from_upload_to_finished(desk: Desk, start_worker: StartWorker) -> None:
    light, train = start_worker("light"), start_worker("train")
    dataset_id = desk.upload(small_csv())
    read = desk.wait_read(dataset_id)
    assert (read["state"], read["rows"]) == ("profiled", 900)
    assert desk.give_roles(dataset_id) == "ready"
    audit_id = desk.start(dataset_id, methods=["dp-sgd", "magnitude-error"])
    audit = desk.wait_state(audit_id, "finished", "failed")
    assert audit.state == "finished", (audit.problem, light.text(), train.text())
    assert audit.measured_stacks == 2
    assert audit.claim is not None
    assert audit.claim["epsilons"]["all_runs"]["value"] > 2
    kinds = desk.kinds(audit_id)
    assert kinds[0] == "audit.planned"
    assert kinds[-1] == "audit.finished"
    assert kinds.count("stack.finished") == 2
    assert desk.kinds(dataset_id) == ["dataset.profiled", "dataset.groups"]
    with desk.database.transaction() as session:
        runs = session.scalars(select(Run).where(Run.audit_id == audit_id)).all()
        rows = session.scalars(select(Statistic).where(Statistic.audit_id == audit_id)).all()
    assert {run.state for run in runs} == {"finished"}
    assert {run.run_id for run in rows} == {run.id for run in runs}
    spent = {run.epsilon_asked: run.epsilon_spent for run in runs}
    assert spent[None] is None
    assert all(asked - 2e-4 <= spent[asked] <= asked for asked in (1.0, 2.0))
    assert "Female" not in light.text() + train.text()
    assert not list(desk.settings.temporary_folder.iterdir())


def test_a_file_that_is_no_table_is_refused_with_a_reason(desk: Desk, light_worker: Worker) -> None:
    dataset_id = desk.upload(b"\x89PNG\r\n\x1a\n" + bytes(1000))
    row = desk.wait_read(dataset_id)
    assert row["state"] == "refused"
    assert set(row["problem"]) >= {"happened", "where", "next"}
    assert desk.kinds(dataset_id) == ["dataset.refused"]
    assert not list(desk.settings.temporary_folder.iterdir())


def test_another_reading_makes_another_version(desk: Desk, light_worker: Worker) -> None:
    dataset_id = desk.upload(small_csv(200))
    assert desk.wait_read(dataset_id)["state"] == "profiled"
    with desk.database.transaction() as session:
        datasets.put_recipe(session, desk.principal, dataset_id, {"types": {"a": "category"}})
    row = desk.wait_read(dataset_id)
    with desk.database.transaction() as session:
        versions = session.scalars(select(Recipe.version).where(Recipe.dataset_id == dataset_id)).all()
    assert sorted(versions) == [1, 2]
    assert {column["name"]: column["type"] for column in row["columns"]}["a"] == "category"
    assert desk.kinds(dataset_id) == ["dataset.profiled", "dataset.profiled"]


def test_a_table_that_cannot_be_split_is_refused_with_a_reason(desk: Desk, light_worker: Worker) -> None:
    dataset_id = desk.upload(b"a,b,kind,sex,outcome\n1,2,x,Female,yes\n2,3,y,Male,no\n")
    assert desk.wait_read(dataset_id)["state"] == "profiled"
    assert desk.give_roles(dataset_id) == "refused"
    assert desk.kinds(dataset_id) == ["dataset.profiled", "dataset.groups"]
