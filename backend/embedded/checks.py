"""What must hold before anything starts. Each failure is a message that a person can act on."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend.embedded import guardian
from backend.embedded.errors import DemoProblem

HOST = "127.0.0.1"
OLDEST_PYTHON = (3, 11)
NEEDED_BYTES = 300_000_000
STATE_FILE = "demo.json"
CLEANING_SECONDS = 15.0


def check_python() -> None:
    """Refuse a Python that is too old."""
    if sys.version_info < OLDEST_PYTHON:
        raise DemoProblem(
            f"This Python is {sys.version.split()[0]}, and 3.11 or newer is needed. It is {sys.executable}. "
            "Install a newer Python and run `make demo PYTHON=python3.12`."
        )


def check_folder(var: Path) -> None:
    """Create ``var`` if need be, and make sure that we may write in it."""
    try:
        var.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=var):
            pass
    except OSError as problem:
        raise explain(problem, var) from problem


def explain(problem: OSError, folder: Path) -> DemoProblem:
    """An error of the system in our words."""
    where = problem.filename if isinstance(problem.filename, str) else folder
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return DemoProblem(f"The disk is full. It happened at {where}. Free some space and start again.")
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return DemoProblem(
            f"This account may not write there. It happened at {where}. "
            "Give the folder to the account that starts this, or name another one: `make demo VAR=/another/folder`."
        )
    return DemoProblem(
        f"The system refused: {problem.strerror or problem}. It happened at {where}. Put that right and start again."
    )


def check_disk(var: Path, needed: int = NEEDED_BYTES) -> None:
    """Refuse to start on a disk with fewer than ``needed`` bytes free."""
    free = shutil.disk_usage(var).free
    if free < needed:
        raise DemoProblem(
            f"The disk is nearly full: {free // 1_000_000} MB are free and {needed // 1_000_000} MB are needed. "
            f"It is the disk of {var}. Free some space and start again."
        )


def check_port(port: int) -> None:
    """Refuse a port that somebody listens on, or that we may not open."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as problem:
            what = "is in use by another program" if problem.errno == errno.EADDRINUSE else "cannot be opened"
            other = port + 1 if 1024 <= port < 65535 else 8001
            raise DemoProblem(
                f"Port {port} {what}. It was wanted on {HOST}. Choose another: `make demo PORT={other}`."
            ) from problem


class Lock:
    """One copy at a time in one folder. Held by us and by the guardian: free only when all is cleaned up."""

    def __init__(self, var: Path) -> None:
        self._var = var
        folder = var / "run"
        try:
            folder.mkdir(exist_ok=True)
            self.descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise explain(problem, folder) from problem

    def take(self) -> None:
        """Wait for an earlier copy that was killed and is being cleaned up; refuse if one runs."""
        until = time.monotonic() + CLEANING_SECONDS
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as problem:
                if problem.errno not in (errno.EAGAIN, errno.EACCES):
                    raise explain(problem, self._var) from problem
            state = read_state(self._var)
            if _is_running(state.get("pid")) or time.monotonic() > until:
                raise DemoProblem(_second_copy(state, self._var))
            time.sleep(0.1)

    def release(self) -> None:
        os.close(self.descriptor)


def _second_copy(state: Mapping[str, Any], var: Path) -> str:
    address, pid = state.get("address"), state.get("pid")
    who = f" at {address} (process {pid})" if address else ""
    return (
        f"Counterpoise is running already{who}. Its data is in {var}. "
        "Use that one (`.venv/bin/counterpoise link` prints a way in), or stop it with Ctrl-C in its terminal."
    )


def _is_running(pid: object) -> bool:
    """Unknown counts as running; a zombie does not."""
    return not isinstance(pid, int) or guardian.alive(pid, guardian.start_time(pid))


def read_state(var: Path) -> dict[str, Any]:
    """What the last start wrote about itself; empty if it wrote nothing."""
    try:
        state = json.loads((var / STATE_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, and for us only."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def remove_folder(folder: Path) -> None:
    """A folder of ours that is no longer needed."""
    shutil.rmtree(folder, ignore_errors=True)
