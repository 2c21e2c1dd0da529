"""The real start with stand-ins for web and worker, so that its faults can be tried in seconds.

Run as ``python -m tests.faults.stand_in VAR PORT [NEEDED_BYTES]``. The worker has a child in a session of its own, as
a training process might, and ignores requests to end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from backend import demo
from backend.embedded import checks
from backend.embedded.place import Place
from backend.embedded.process import Command
from backend.settings import Settings


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def web(port: int) -> None:
    HTTPServer((checks.HOST, port), Ready).serve_forever()


def worker() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    time.sleep(600)


def prepare(settings: Settings, var: Path) -> Sequence[str]:
    return [f"ready in {var} for {settings.team_name}"]


def commands(options: demo.Options, place: Place, environment: dict[str, str]) -> list[Command]:
    root = Path(__file__).resolve().parents[2]

    def one(name: str, stage: int, *words: str) -> Command:
        return Command(
            name=name,
            arguments=(sys.executable, "-m", "tests.faults.stand_in", *words),
            log=place.logs / f"{name}.log",
            environment=environment,
            folder=root,
            stage=stage,
            patience=1.0,
        )

    return [one("web", 2, "web", str(options.port)), one("worker", 3, "worker")]


def main(words: Sequence[str]) -> int:
    if words[0] == "web":
        web(int(words[1]))
    elif words[0] == "worker":
        worker()
    else:
        needed = int(words[2]) if len(words) > 2 else checks.NEEDED_BYTES
        options = demo.Options(Path(words[0]), int(words[1]), os.environ.get("WITH_PARENT") == "1", needed)
        return demo.run(options, prepare, commands)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
