"""PostgreSQL as a child: made once by ``initdb``, no network listener, a password on a socket in a closed folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

from backend.embedded.errors import DemoProblem
from backend.embedded.place import Account, Place, make_folder
from backend.embedded.process import Child, Command, log_tail

USER = "counterpoise"
DATABASE = "counterpoise"
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "80",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "log_timezone": "UTC",
    "timezone": "UTC",
    # A failed statement may hold what somebody uploaded: errors are logged by the process that made them, by kind.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
FAST_BUT_UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""For tests only: a crash of the machine loses such data."""


class Postgres:
    """One cluster in one folder."""

    def __init__(self, place: Place, password: str, *, extra: dict[str, str] | None = None) -> None:
        self.place = place
        self.password = password
        self._settings = SETTINGS | (extra or {})

    @property
    def log(self) -> Path:
        return self.place.logs / "postgres.log"

    def url(self, database: str = DATABASE) -> str:
        """For SQLAlchemy; the password is in it."""
        return f"postgresql+psycopg://{USER}:{self.password}@/{database}?host={quote(str(self.place.socket_folder))}"

    def command(self) -> Command:
        """SIGINT is PostgreSQL's fast shutdown: sessions are ended, nothing committed is lost."""
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        return Command(
            name="database",
            arguments=(
                str(self.place.program / "bin" / "postgres"),
                *("-D", str(self.place.data), "-k", str(self.place.socket_folder)),
                *settings,
            ),
            log=self.log,
            environment=_plain_environment(),
            folder=Path("/"),
            account=self.place.account,
            stop_signal=signal.SIGINT,
            patience=15.0,
        )

    def prepare(self) -> bool:
        """Make the cluster if there is none, and clear what a killed one left. True if it was made now."""
        if (self.place.data / "PG_VERSION").exists():
            clear_stale_pid(self.place.data)
            clear_sockets(self.place.socket_folder)
            return False
        _initdb(self.place, self.password)
        return True

    def wait_ready(self, child: Child, seconds: float = 60.0) -> None:
        """Until it takes connections. Raises ``DemoProblem`` when it ends instead."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not child.running():
                break
            try:
                self.connect("postgres").close()
                return
            except psycopg.OperationalError:
                time.sleep(0.03)
        raise DemoProblem(
            f"PostgreSQL did not start. Its log {self.log} ends with: {log_tail(self.log)} "
            "Free some disk space if it is full; otherwise look there, put it right and start again."
        )

    def connect(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.place.socket_folder),
            user=USER,
            password=self.password,
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    def ensure_database(self, name: str = DATABASE) -> None:
        with self.connect("postgres") as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
                connection.execute(f'CREATE DATABASE "{name}"'.encode())


def _plain_environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def _initdb(place: Place, password: str) -> None:
    """Made in a neighbouring folder and renamed when whole, so that a killed start leaves no half cluster."""
    unfinished = place.data.with_name(place.data.name + ".unfinished")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    make_folder(unfinished, place.account)
    _remove_empty(place.data)
    password_file = _password_file(place.socket_folder, password, place.account)
    try:
        _run_initdb(place, unfinished, password_file)
    finally:
        password_file.unlink(missing_ok=True)
    unfinished.rename(place.data)


def _run_initdb(place: Place, folder: Path, password_file: Path) -> None:
    account = place.account
    done = subprocess.run(
        [
            str(place.program / "bin" / "initdb"),
            *("-D", str(folder), "--username", USER, "--pwfile", str(password_file)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-instructions"),
        ],
        env=_plain_environment(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        check=False,
    )
    if done.returncode:
        last = " ".join((done.stderr or done.stdout).split())[-400:]
        raise DemoProblem(
            f"The database could not be made. `initdb` in {folder} said: {last} "
            "Free some disk space, or give the folder back to the account that starts this, and start again."
        )


def _password_file(folder: Path, password: str, account: Account | None) -> Path:
    path = folder / f"initdb-{secrets.token_hex(4)}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(password + "\n")
        if account is not None:
            os.fchown(file.fileno(), account.uid, account.gid)
    return path


def _remove_empty(folder: Path) -> None:
    """An empty data folder is left from a start that failed early; one that holds anything is not ours to remove."""
    if folder.exists():
        try:
            folder.rmdir()
        except OSError:
            raise DemoProblem(
                f"The database's folder holds files but no database. It is {folder}. "
                "Move its content away and start again."
            ) from None


def clear_stale_pid(data: Path) -> None:
    """Remove ``postmaster.pid`` unless it names a PostgreSQL running on this very folder, which is then stopped.

    We hold the installation's lock, so such a process can only be the orphan of a start that was killed. PostgreSQL
    itself would refuse to start when the number in the file meanwhile belongs to any other process of its account.
    """
    file = data / "postmaster.pid"
    try:
        pid = int(file.read_text().splitlines()[0])
    except (FileNotFoundError, ValueError, IndexError):
        file.unlink(missing_ok=True)
        return
    if _is_postgres_on(pid, data):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        until = time.monotonic() + 15
        while _is_postgres_on(pid, data) and time.monotonic() < until:
            time.sleep(0.05)
    file.unlink(missing_ok=True)


def _is_postgres_on(pid: int, data: Path) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        line = "" if Path("/proc/self/cmdline").exists() else _line_from_ps(pid)
    return "postgres" in line.partition(" ")[0] and str(data) in line


def _line_from_ps(pid: int) -> str:
    done = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout


def clear_sockets(folder: Path) -> None:
    """Socket and lock file that a killed server left; nobody else may write in this folder."""
    for path in folder.glob(".s.PGSQL.*"):
        path.unlink(missing_ok=True)
