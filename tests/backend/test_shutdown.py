"""A real web process ends soon after SIGTERM, also with a reader of events connected."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def web(settings_environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "uvicorn", "backend.app:create_app", "--factory", "--port", str(port)]
    process = subprocess.Popen(
        words, cwd=ROOT, env=settings_environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                httpx.get(f"{base}/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield process, base
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_a_reader_connected(
    web: tuple[subprocess.Popen[bytes], str], tokens: dict[str, str], number: signal.Signals
) -> None:
    process, base = web
    headers = {"Authorization": f"Bearer {tokens['dpo']}"}
    with httpx.Client(timeout=20) as client, client.stream("GET", f"{base}/api/v1/events", headers=headers) as events:
        lines = events.iter_lines()
        assert next(lines).startswith("retry:")
        os.kill(process.pid, number)
        began = time.monotonic()
        assert not any("id:" in line for line in lines)
        output, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 40
    assert b"Traceback" not in output
