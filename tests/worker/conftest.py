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
from backend.demo_commands import WORKER_FLAGS
from backend.embedded.services import Services
from backend.settings import Settings
from tests.conftest import SECRET

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
    return [sys.executable, "-m", "celery", *words, *pool, *WORKER_FLAGS]


@dataclass
class Crew:
    """Starts workers, and ends those that still run."""

    environment: dict[str, str]
    folder: Path
    started: list[Worker]

    def start(self, queue: str, **more: str) -> Worker:
        log = self.folder / f"worker-{len(self.started)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command(queue),
                cwd=ROOT,
                env=self.environment | {"OMP_NUM_THREADS": "1"} | QUICK | more,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(Worker(process, log))
        return self.started[-1]

    def end(self) -> None:
        for worker in self.started:
            if worker.process.poll() is None:
                os.killpg(worker.process.pid, signal.SIGKILL)
                worker.process.wait()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all the tests here, so that one light worker can serve them all."""
    made = tmp_path_factory.mktemp("worker")
    for name in ("files", "tmp"):
        (made / name).mkdir()
    return made


def settings_in(folder: Path, services: Services) -> Settings:
    """Plans stacks for one thread: on a busy machine two wait for each other more than they work."""
    return Settings(
        mode="demo",
        database_url=services.postgres.url(),
        redis_url=services.valkey.url(),
        storage_url=f"file://{folder / 'files'}",
        secret_key=SECRET,
        temporary_folder=folder / "tmp",
        train_threads=1,
    )


def environment_of(settings: Settings) -> dict[str, str]:
    named = {name.upper(): str(getattr(settings, name)) for name in type(settings).model_fields}
    return named | {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


@pytest.fixture
def settings(services: Services, empty_tables: None, folder: Path) -> Settings:
    return settings_in(folder, services)


@pytest.fixture(scope="session")
def light_worker(services: Services, folder: Path) -> Iterator[Worker]:
    """One for all tests: it takes its time to start, and forgets nothing that matters."""
    crew = Crew(environment_of(settings_in(folder, services)), folder, [])
    yield crew.start("light")
    crew.end()


@pytest.fixture
def start_worker(settings: Settings, clean_redis: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts more workers, which end with the test."""
    crew = Crew(environment_of(settings), tmp_path, [])
    yield crew.start
    crew.end()


@pytest.fixture
def real_database(database: Database, clean_redis: str) -> Iterator[Database]:
    """A database whose queue is the real one."""
    queue = CeleryQueue(clean_redis)
    yield Database(database.engine, queue)
    queue.close()


def wait_for(what: Callable[[], Found], seconds: float = 30.0, pause: float = 0.05) -> Found:
    """The first truthy answer of ``what``; fails when there is none in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(pause)
    raise AssertionError(f"waited {seconds} s in vain")
