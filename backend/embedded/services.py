"""Both servers for the length of a block, in a temporary folder: for tests and benchmarks, where nothing is kept."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backend.embedded.binaries import choose_postgres, valkey_server
from backend.embedded.outside import reachable_program
from backend.embedded.place import Place, choose_place, database_account, private_temporary_folder
from backend.embedded.postgres import FAST_BUT_UNSAFE, Postgres
from backend.embedded.process import Child, Guardian
from backend.embedded.valkey import Valkey


@dataclass(frozen=True)
class Services:
    """Two running servers and where they lie."""

    place: Place
    postgres: Postgres
    valkey: Valkey
    database_child: Child
    queue_child: Child


@contextlib.contextmanager
def start_services() -> Iterator[Services]:
    """Made new, fast rather than safe, and gone at the end, even if we are killed."""
    account = database_account(Path(tempfile.gettempdir()) / "any")
    folder = private_temporary_folder(account)
    guardian = Guardian()
    guardian.remove_at_end(folder)
    try:
        data = folder / "postgres"
        program = reachable_program(account, choose_postgres(data), folder / "programs")
        place = choose_place(folder, program, data, account)
        postgres = Postgres(place, secrets.token_hex(16), extra=FAST_BUT_UNSAFE)
        valkey = Valkey(valkey_server(), place.queue_socket, place.logs / "queue.log")
        postgres.prepare()
        valkey.prepare()
        children = Child(postgres.command(), guardian), Child(valkey.command(), guardian)
        with contextlib.ExitStack() as stack:
            for child in children:
                child.start()
                stack.callback(child.stop)
            postgres.wait_ready(children[0])
            valkey.wait_ready(children[1])
            yield Services(place, postgres, valkey, *children)
    finally:
        guardian.done()
        shutil.rmtree(folder, ignore_errors=True)
