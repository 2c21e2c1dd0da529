"""Real workers as child processes, ended by their own process ids whatever a test does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from backend.celery_queue import CeleryQueue
from backend.database import Database
from backend.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = {"LEASE_SECONDS": "2", "SWEEP_SECONDS": "0.3", "RESEND_SECONDS": "1"}
"""Leases and sweeps fit for tests."""

Found = TypeVar("Found")


@dataclass
class Worker:
    """One worker process, in a group of its own, with its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """SIGKILL to the process that was started, and to nothing else."""
        self.process.kill()
        self.process.wait()

    def end(self, seconds: float = 10.0) -> float:
        """SIGTERM; returns how long it took."""
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(seconds)
        return time.monotonic() - began

    def text(self) -> str:
        return self.log.read_text()


StartWorker = Callable[..., Worker]


def command(queue: str) -> list[str]:
    """As in worker/README.md."""
    pool = ["--concurrency", "2"] if queue == "light" else ["--pool", "solo"]
    words = ["-q", "-A", "worker.celery_app", "worker", "-Q", queue, "-n", f"{queue}@%h"]
    return [sys.executable, "-m", "celery", *words, *pool, "--without-gossip", "--without-mingle"]


@pytest.fixture
def start_worker(settings_environment: dict[str, str], clean_redis: str, tmp_path: Path) -> Iterator[StartWorker]:
    started: list[Worker] = []

    def start(queue: str, **more: str) -> Worker:
        log = tmp_path / f"worker-{len(started)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command(queue),
                cwd=ROOT,
                env=settings_environment | {"OMP_NUM_THREADS": "1"} | QUICK | more,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(Worker(process, log))
        return started[-1]

    yield start
    for worker in started:
        if worker.process.poll() is None:
            os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()


@pytest.fixture
def real_database(database: Database, clean_redis: str) -> Iterator[Database]:
    """A database whose queue is the real one."""
    queue = CeleryQueue(clean_redis)
    yield Database(database.engine, queue)
    queue.close()


@pytest.fixture
def real_settings(settings: Settings) -> Settings:
    """Plans stacks for one thread: on a busy machine two wait for each other more than they work."""
    return settings.model_copy(update={"train_threads": 1})


def wait_for(what: Callable[[], Found], seconds: float = 30.0, pause: float = 0.05) -> Found:
    """The first truthy answer of ``what``; fails when there is none in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(pause)
    raise AssertionError(f"waited {seconds} s in vain")
