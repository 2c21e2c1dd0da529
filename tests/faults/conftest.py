"""A real start with stand-in children, in a process of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(true: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return true()


class Demo:
    """One start. ``said`` is all it printed so far."""

    def __init__(self, var: Path, port: int, *words: str, module: tuple[str, ...] | None = None, **more: Any) -> None:
        self.var, self.port = var, port
        self._output = tempfile.NamedTemporaryFile("r+", encoding="utf-8")  # noqa: SIM115 - closed with the process
        given = ("--var", str(var), "--port", str(port)) if module else (str(var), str(port))
        self.process = subprocess.Popen(
            [sys.executable, "-m", *(module or ("tests.faults.stand_in",)), *given, *words],
            cwd=ROOT,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **more,
        )

    @property
    def said(self) -> str:
        return Path(self._output.name).read_text("utf-8")

    def wait_up(self) -> Demo:
        assert until(lambda: "Counterpoise is at" in self.said or self.process.poll() is not None, 40), self.said
        assert self.process.poll() is None, self.said
        return self

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def named(self, word: str) -> psutil.Process:
        return next(one for one in self.family() if word in command_of(one))

    def end(self, number: int = signal.SIGINT, seconds: float = 20) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def finished(self, seconds: float = 40) -> int:
        return self.process.wait(seconds)


def left(processes: list[psutil.Process]) -> list[str]:
    """Those still there; psutil compares start times, so a reused number does not count."""
    return [str(one) for one in processes if lives(one)]


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two questions
        return False


def command_of(process: psutil.Process) -> str:
    """Its words; empty for one that has just ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


@pytest.fixture(scope="session")
def made_var() -> Iterator[Path]:
    """A folder with a database in it, made once; in /tmp, where an unprivileged database may enter."""
    with tempfile.TemporaryDirectory(prefix="cpf-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder) / "var"


@pytest.fixture
def start(made_var: Path) -> Iterator[Callable[..., Demo]]:
    """Starts copies in ``made_var`` (or ``var=``) on free ports and ends what is left at the end."""
    started: list[Demo] = []

    def start_one(*words: str, var: Path = made_var, port: int | None = None, **more: Any) -> Demo:
        started.append(Demo(var, port or free_port(), *words, **more))
        return started[-1]

    yield start_one
    for demo in started:
        if demo.process.poll() is None:
            demo.end(signal.SIGTERM)
