"""From an upload to a finished audit, with real workers, a real database and a real queue."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from backend.database import Database
from backend.settings import Settings
from backend.tables import Run, Statistic
from tests.worker.audits import Desk, small_csv
from tests.worker.conftest import StartWorker

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
    audit_id = desk.start(dataset_id)
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
