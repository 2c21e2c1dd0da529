"""Children: each in a session of its own, logged to a file, known to the guardian, ended as a group."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backend.embedded import guardian as guardian_program
from backend.embedded.place import Account

PR_SET_PDEATHSIG = 1
LOGS_KEPT = 3


@dataclass(frozen=True)
class Command:
    """How one child is started and ended.

    ``patience`` is the seconds between ``stop_signal`` and SIGKILL; higher stages are stopped before lower ones.
    """

    name: str
    arguments: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    account: Account | None = None
    niceness: int = 0
    stop_signal: int = signal.SIGTERM
    patience: float = 5.0
    stage: int = 0


class Guardian:
    """The process that ends the children if we are killed. It holds ``inherit`` open until it has done so."""

    def __init__(self, inherit: tuple[int, ...] = ()) -> None:
        program = Path(guardian_program.__file__)
        self._folders: list[Path] = []
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=inherit,
            cwd="/",
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened as a pipe above
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def add(self, pid: int, stop_signal: int) -> None:
        self._say(f"add {pid} {int(stop_signal)} {guardian_program.start_time(pid) or '-'}")

    def drop(self, pid: int) -> None:
        self._say(f"drop {pid}")

    def remove_at_end(self, folder: Path) -> None:
        self._folders.append(folder)
        self._say(f"folder {folder}")

    def running(self) -> bool:
        return self._process.poll() is None

    def again(self, inherit: tuple[int, ...] = ()) -> Guardian:
        """A new one in place of one that died; the children have to be added to it."""
        fresh = Guardian(inherit)
        for folder in self._folders:
            fresh.remove_at_end(folder)
        return fresh

    def done(self) -> None:
        """A proper end: it goes without doing anything."""
        self._say("done")
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate(timeout=5)


class Child:
    """One running child of ours."""

    def __init__(self, command: Command, guardian: Guardian | None = None) -> None:
        self.command = command
        self._guardian = guardian
        self._process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it; its output is added to its log."""
        command = self.command
        account = command.account
        with open(command.log, "ab") as log:
            self._process = subprocess.Popen(
                command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(command.environment),
                cwd=command.folder,
                start_new_session=True,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                preexec_fn=_before_exec(command),
            )
        self.started_at = time.monotonic()
        if self._guardian:
            self._guardian.add(self._process.pid, command.stop_signal)

    def guard_with(self, guardian: Guardian) -> None:
        """Hand over to another guardian."""
        self._guardian = guardian
        if self._process is not None and self.running():
            guardian.add(self._process.pid, self.command.stop_signal)

    def exit_status(self) -> int | None:
        """None while it runs; negative is the signal that ended it."""
        return self._process.poll() if self._process else None

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ask_to_stop(self) -> None:
        """Send the stop signal to the child itself; it ends its own children."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(self.command.stop_signal)

    def stop(self) -> None:
        """Ask, wait for ``patience`` seconds, then end the whole group and what descends from it."""
        if self._process is None:
            return
        family = guardian_program.descendants({self._process.pid})
        ages = {pid: guardian_program.start_time(pid) for pid in family}
        self.ask_to_stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self.command.patience)
        self.end_group()
        self._process.wait()
        _end_left(ages)
        if self._guardian:
            self._guardian.drop(self._process.pid)

    def end_group(self) -> None:
        """SIGKILL to whatever of its group is left."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _end_left(ages: Mapping[int, str]) -> None:
    """Descendants in groups of their own get a moment, then SIGKILL."""
    until = time.monotonic() + 1.5
    while time.monotonic() < until and any(guardian_program.alive(pid, age) for pid, age in ages.items()):
        time.sleep(0.02)
    for pid, age in ages.items():
        if guardian_program.alive(pid, age):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _before_exec(command: Command) -> Callable[[], None]:
    """What runs in the new process before its program: niceness, and on Linux a signal when the parent dies."""
    library = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    parent = os.getpid()

    def prepare() -> None:
        if command.niceness:
            os.nice(command.niceness)
        if library is not None:
            library.prctl(PR_SET_PDEATHSIG, int(command.stop_signal), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

    return prepare


def rotate_log(log: Path) -> None:
    """Keep the last few logs: ``web.log`` becomes ``web.log.1`` and so on."""
    for number in range(LOGS_KEPT - 1, 0, -1):
        older = log.with_name(f"{log.name}.{number}")
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{number + 1}"))
    if log.exists() and log.stat().st_size:
        log.replace(log.with_name(f"{log.name}.1"))


def log_tail(log: Path, lines: int = 3) -> str:
    """The last lines of a log, for a message."""
    try:
        text = log.read_bytes()[-4000:].decode("utf-8", "replace")
    except OSError:
        return ""
    return " | ".join(line for line in text.splitlines() if line.strip())[-600:] if lines else ""
