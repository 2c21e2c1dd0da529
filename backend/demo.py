"""``make demo``: everything on one machine, as our own children, until Ctrl-C. The same commands as on servers."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.embedded import DemoProblem, checks
from backend.embedded.binaries import choose_postgres, valkey_server
from backend.embedded.outside import database_home, reachable_program
from backend.embedded.place import Place, choose_place, database_account
from backend.embedded.postgres import Postgres
from backend.embedded.process import Child, Command, Guardian, log_tail
from backend.embedded.supervisor import Stop, Stopped, Supervisor
from backend.embedded.valkey import Valkey
from backend.settings import Settings

READY_SECONDS = 90.0


@dataclass(frozen=True)
class Options:
    """What the person asked for. ``with_parent``: end when the process that started us ends."""

    var: Path
    port: int = 8000
    with_parent: bool = False
    needed_bytes: int = checks.NEEDED_BYTES

    @property
    def address(self) -> str:
        return f"http://{checks.HOST}:{self.port}"


Prepare = Callable[[Settings, Path], Sequence[str]]
"""Fills the database before the web starts; gives back the lines to say at the end."""
Commands = Callable[[Options, Place, dict[str, str]], Sequence[Command]]


def say(line: str) -> None:
    """To the terminal, if it is still there."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def run(options: Options, prepare: Prepare, commands: Commands) -> int:
    """Check, start, wait, stop. Returns the exit status; every failure is a message of three sentences."""
    os.umask(0o077)
    try:
        return _run(options, prepare, commands)
    except DemoProblem as problem:
        say(f"Counterpoise did not start. {problem}")
    except OSError as problem:
        say(f"Counterpoise did not start. {checks.explain(problem, options.var)}")
    except KeyboardInterrupt:
        say("Stopped before anything was started.")
    return 1


def _run(options: Options, prepare: Prepare, commands: Commands) -> int:
    checks.check_python()
    checks.check_folder(options.var)
    lock = checks.Lock(options.var)
    lock.take()
    checks.check_port(options.port)
    checks.check_disk(options.var, options.needed_bytes)
    stop = Stop(with_parent=options.with_parent)
    guardian = Guardian(inherit=(lock.descriptor,))
    supervisor = Supervisor(guardian, say, lock.descriptor)
    try:
        with _place(options.var, supervisor) as place:
            try:
                _start_all(options, place, supervisor, stop, prepare, commands)
                supervisor.watch(stop, options.var)
            finally:
                _stop(supervisor, stop)
    except Stopped:
        pass
    finally:
        (options.var / checks.STATE_FILE).unlink(missing_ok=True)
        supervisor.guardian.done()
        lock.release()
    return 0


def _stop(supervisor: Supervisor, stop: Stop) -> None:
    if stop.reason:
        say(f"\nStopping after {stop.reason} …")
    supervisor.stop_all()
    say("Everything that was started is stopped. The data is kept.")


@contextlib.contextmanager
def _place(var: Path, supervisor: Supervisor) -> Iterator[Place]:
    """Folders for this start; a private temporary one goes at the end, even if we are killed."""
    account = database_account(var)
    home = database_home(var, account)
    data, notes = home / "postgres", []
    found = choose_postgres(data)
    program = reachable_program(account, found, home / "programs")
    if account is not None:
        notes.append(f"The database runs as the account {account.name}, since it refuses to run as root.")
        if home != var:
            notes.append(f"That account cannot enter {var}, so the database is in {data}.")
        if program != found:
            notes.append(f"It cannot read {found}, so a copy of these programs is in {program}.")
    place = choose_place(var, program, data, account)
    for note in (*notes, *place.notes):
        say(note)
    if place.temporary is None:
        yield place
        return
    supervisor.guardian.remove_at_end(place.temporary)
    try:
        yield place
    finally:
        checks.remove_folder(place.temporary)


def _start_all(
    options: Options, place: Place, supervisor: Supervisor, stop: Stop, prepare: Prepare, commands: Commands
) -> None:
    began = time.monotonic()
    postgres = Postgres(place, kept_secret(options.var / "database-password", 24))
    valkey = Valkey(valkey_server(), place.queue_socket, place.logs / "queue.log")
    if not (place.data / "PG_VERSION").exists():
        say(f"Making the database in {place.data} (once) …")
    _start_servers(supervisor, stop, postgres, valkey)
    environment = demo_environment(options, postgres.url(), valkey.url())
    write_state(options, environment)
    lines = _fill(options, environment, prepare, stop)
    children = [supervisor.start(command) for command in commands(options, place, os.environ | environment)]
    _wait_for_web(options, children[0], stop)
    say(f"Counterpoise is at {options.address} (started in {time.monotonic() - began:.1f} s; Ctrl-C stops it).")
    for line in lines:
        say(line)


def _fill(options: Options, environment: dict[str, str], prepare: Prepare, stop: Stop) -> Sequence[str]:
    """Bring the database to the newest schema and fill in what a first start needs."""
    from alembic.util import CommandError
    from sqlalchemy.exc import SQLAlchemyError

    from backend import migrate

    try:
        migrate.upgrade(environment["DATABASE_URL"])
        stop.check()
        lines = prepare(Settings(**{name.lower(): value for name, value in environment.items()}), options.var)  # type: ignore[arg-type]  # strings, as from the environment
        stop.check()
    except CommandError as problem:
        raise DemoProblem(
            f"The data was made by a newer Counterpoise: {problem}. It lies in {options.var}. "
            "Use that version, or another folder: `make demo VAR=/another/folder`."
        ) from problem
    except SQLAlchemyError as problem:
        raise DemoProblem(
            f"The database refused what a start needs ({type(problem.__cause__ or problem).__name__}). "
            f"Its log is {options.var / 'log' / 'postgres.log'}. Free some disk space if it is full, and start again."
        ) from problem
    return lines


def _start_servers(supervisor: Supervisor, stop: Stop, postgres: Postgres, valkey: Valkey) -> None:
    queue = supervisor.start(valkey.command(), valkey.prepare)
    database = supervisor.start(postgres.command(), postgres.prepare)
    valkey.wait_ready(queue)
    stop.check()
    postgres.wait_ready(database)
    postgres.ensure_database()
    stop.check()


def _wait_for_web(options: Options, web: Child, stop: Stop) -> None:
    until = time.monotonic() + READY_SECONDS
    while not answers(options.port, "/ready"):
        stop.check()
        if not web.running() or time.monotonic() > until:
            raise DemoProblem(
                f"The web process did not become ready. Its log {web.command.log} ends with: "
                f"{log_tail(web.command.log)} Look there, put it right and start again."
            )
        time.sleep(0.05)


def answers(port: int, path: str) -> bool:
    """Whether the web process on this machine answers 200 there."""
    connection = http.client.HTTPConnection(checks.HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def kept_secret(path: Path, size: int) -> str:
    """A random secret, made at the first start and kept in a file that only we may read."""
    if not path.exists():
        checks.write_private(path, secrets.token_urlsafe(size))
    return path.read_text("utf-8").strip()


def demo_environment(options: Options, database_url: str, redis_url: str) -> dict[str, str]:
    """The settings of web and workers."""
    var = options.var
    return {
        "MODE": "demo",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "STORAGE_URL": f"file://{var / 'files'}",
        "SECRET_KEY": kept_secret(var / "secret", 48),
        "BASE_URL": options.address,
        "TEMPORARY_FOLDER": str(var / "tmp"),
    }


def write_state(options: Options, environment: dict[str, str]) -> None:
    """For ``link`` and ``doctor`` while we run; without the master key, which has its own file."""
    told = {name: value for name, value in environment.items() if name != "SECRET_KEY"}
    state = {"pid": os.getpid(), "address": options.address, "environment": told}
    checks.write_private(options.var / checks.STATE_FILE, json.dumps(state))


def settings_of_running(var: Path) -> Settings:
    """Settings of the copy that runs from ``var``."""
    state = checks.read_state(var)
    if not state:
        raise DemoProblem(f"Nothing is running from there. The folder is {var}. Start it with `make demo`.")
    told = {name.lower(): value for name, value in state["environment"].items()}
    return Settings(**told, secret_key=kept_secret(var / "secret", 48))
