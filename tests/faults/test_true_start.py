"""The true start once: web, workers, samples, ways in, and everything still there the second time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import ROOT, Demo, left, until

pytestmark = pytest.mark.services


def counterpoise(var: Path, *words: str) -> str:
    """One command in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "backend", *words, "--var", str(var)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def datasets(demo: Demo) -> dict[str, Any]:
    token = (demo.var / "token").read_text().strip()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{demo.port}/api/v1/datasets", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return {found["sample"]: found for found in json.load(answer)["items"]}


def test_first_and_second_start(start: Callable[..., Demo], made_var: Path):
    first = start(module=("backend", "demo")).wait_up()
    assert first.said.count(f"http://127.0.0.1:{first.port}/sign-in/") == 3
    assert set(datasets(first)) == {"adult", "arrests"}
    assert until(lambda: {found["state"] for found in datasets(first).values()} == {"profiled"}, 60)
    assert counterpoise(made_var, "link", "dpo").startswith(f"http://127.0.0.1:{first.port}/sign-in/")
    assert "web: ready" in counterpoise(made_var, "doctor")
    known = {found["id"] for found in datasets(first).values()}
    token = (made_var / "token").read_text()
    family = first.family()
    assert first.end() == 0
    assert left(family) == []
    second = start(module=("backend", "demo")).wait_up()
    assert {found["id"] for found in datasets(second).values()} == known
    assert (made_var / "token").read_text() == token
    family = second.family()
    second.process.kill()
    second.process.wait()
    assert until(lambda: not left(family), 10), left(family)
