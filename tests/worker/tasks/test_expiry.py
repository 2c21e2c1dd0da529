"""A dataset whose time is over is erased by the next sweep: key and files go, a receipt stays."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from io import BytesIO

from sqlalchemy import select

from backend.database import Database
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Dataset
from tests.worker.builders import make_dataset, make_person
from worker.tasks.context import Context
from worker.tasks.sweeper import Sweeper

KEY = "datasets/expired/original"


def test_only_what_has_expired_is_erased(database: Database, settings: Settings) -> None:
    storage = Storage(settings)
    file_key = storage.new_file_key()
    storage.write(KEY, BytesIO(b"a,b\n1,2\n"), file_key)
    past = datetime.now(UTC) - timedelta(seconds=1)
    with database.transaction() as session:
        person = make_person(session)
        make_dataset(session, person, name="old", storage_key=KEY, file_key=file_key, expires_at=past, state="profiled")
        make_dataset(session, person, name="young", state="profiled")
    sweeper = Sweeper(Context(settings, database, storage, "a test", threading.Event()))
    sweeper.sweep_once()
    sweeper.sweep_once()
    sweeper.close()
    with database.transaction() as session:
        found = {row.name: row for row in session.scalars(select(Dataset))}
    old, young = found["old"], found["young"]
    assert (old.state, old.file_key, young.state) == ("erased", None, "profiled")
    assert old.receipt is not None
    assert old.receipt["erased_by"] == "retention"
    assert not list(settings.temporary_folder.glob("**/original"))
