"""The queue's server as a child: a socket in a closed folder, nothing on disk, since the database is the truth."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import quote

import redis

from backend.embedded.errors import DemoProblem
from backend.embedded.process import Child, Command, log_tail


class Valkey:
    """One server on one socket."""

    def __init__(self, program: Path, socket: Path, log: Path) -> None:
        self.program = program
        self.socket = socket
        self.log = log

    def url(self) -> str:
        """For redis-py and Celery's own settings alike. Celery's broker wants ``redis+socket://`` in front."""
        return f"redis+socket://{quote(str(self.socket))}"

    def command(self) -> Command:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "save": "",
            "appendonly": "no",
            "maxmemory": "128mb",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "dir": str(self.socket.parent),
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return Command(
            name="queue",
            arguments=(str(self.program), *words),
            log=self.log,
            environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            folder=Path("/"),
            patience=3.0,
            stage=1,
        )

    def prepare(self) -> None:
        """Remove a socket that a killed server left."""
        self.socket.unlink(missing_ok=True)

    def answers(self) -> bool:
        try:
            with self._client() as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def flush(self) -> None:
        """Forget everything; for tests."""
        with self._client() as client:
            client.flushall()

    def _client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), socket_timeout=2)

    def wait_ready(self, child: Child, seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and child.running():
            if self.socket.exists() and self.answers():
                return
            time.sleep(0.02)
        raise DemoProblem(
            f"The queue's server did not start. Its log {self.log} ends with: {log_tail(self.log)} "
            "Look there, put it right and start again."
        )
