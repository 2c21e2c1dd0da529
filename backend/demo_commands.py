"""The commands that the laptop and the containers share: web, a light worker, a train worker."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from backend.demo import Options
from backend.embedded import checks
from backend.embedded.place import Place
from backend.embedded.process import Command

WEB, WORKERS = 2, 3
"""Stages: the workers are stopped first, then the web, then the queue (1), and the database (0) last."""

WORKER_FLAGS = ("--without-gossip", "--without-mingle", "--without-heartbeat")
"""Workers need not know of each other: the database tells them all there is to know. See worker/README.md."""


def server_commands(options: Options, place: Place, environment: Mapping[str, str]) -> list[Command]:
    """Web and workers: the commands of docker-compose.yml, with one light and one train worker."""
    root = Path(__file__).resolve().parent.parent
    python = sys.executable
    web = (
        *("-m", "uvicorn", "backend.app:create_app", "--factory", "--host", checks.HOST, "--port", str(options.port)),
        *("--no-access-log", "--timeout-graceful-shutdown", "2"),
    )
    worker = ("-m", "celery", "-q", "-A", "worker.celery_app", "worker", *WORKER_FLAGS)
    light = (*worker, "-Q", "light", "-n", "light@%h", "--concurrency", "2")
    train = (*worker, "-Q", "train", "-n", "train@%h", "--pool", "solo")
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def command(
        name: str, words: tuple[str, ...], stage: int, niceness: int = 0, more: Mapping[str, str] | None = None
    ) -> Command:
        return Command(
            name=name,
            arguments=(python, *words),
            log=place.logs / f"{name}.log",
            environment={**environment, "PYTHONUNBUFFERED": "1", **(more or {})},
            folder=root,
            niceness=niceness,
            stop_signal=signal.SIGTERM,
            stage=stage,
        )

    return [
        command("web", web, WEB, more=one_thread),
        command("worker-light", light, WORKERS),
        command("worker-train", train, WORKERS, niceness=10),
    ]
