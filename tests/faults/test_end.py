"""However it ends, nothing that it started is left, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import ROOT, Demo, command_of, free_port, left, until

pytestmark = pytest.mark.services
Start = Callable[..., Demo]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_leaves_nothing(start: Start, number: signal.Signals):
    demo = start().wait_up()
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    family = demo.family()
    assert len(family) > 6
    assert demo.end(number) == 0
    assert left(family) == []
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    assert "Everything that was started is stopped" in demo.said


def test_nothing_is_left_ten_seconds_after_the_parent_was_killed(start: Start):
    demo = start().wait_up()
    family = demo.family()
    demo.process.kill()
    demo.process.wait()
    assert until(lambda: not left(family), 20), left(family)
    start().wait_up()


def test_nothing_is_left_when_the_guardian_is_killed_first(start: Start):
    demo = start().wait_up()
    guardian = demo.named("guardian.py")
    guardian.kill()
    assert until(lambda: any("guardian.py" in command_of(p) for p in demo.family() if p.pid != guardian.pid), 60)
    family = demo.family()
    demo.process.kill()
    demo.process.wait()
    assert until(lambda: not left(family), 20), left(family)


def test_a_start_right_after_a_kill_waits_for_the_cleaning(start: Start):
    demo = start().wait_up()
    demo.process.kill()
    start().wait_up()


def test_killed_while_starting_leaves_nothing(start: Start):
    for pause in (0.3, 0.8, 1.3):
        demo = start()
        time.sleep(pause)
        family = demo.family()
        demo.process.kill()
        demo.process.wait()
        assert until(lambda f=family: not left(f), 10), left(family)
    start().wait_up()


def test_it_ends_with_the_process_that_started_it(made_var: Path, start: Start):
    start().wait_up().end()
    words = [sys.executable, "-m", "tests.faults.stand_in", str(made_var), str(free_port())]
    program = f"import subprocess; subprocess.run({words!r})"
    outer = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=os.environ | {"WITH_PARENT": "1"}, stdout=subprocess.DEVNULL
    )
    tree = psutil.Process(outer.pid)
    assert until(lambda: len(tree.children(recursive=True)) > 6, 20)
    family = tree.children(recursive=True)
    outer.kill()
    outer.wait()
    assert until(lambda: not left(family), 20), left(family)


@pytest.mark.parametrize("name", ["stand_in web", "valkey-server", "bin/postgres"])
def test_a_child_that_dies_is_started_again(start: Start, name: str):
    demo = start().wait_up()
    victim = demo.named(name)
    victim.kill()
    assert until(lambda: "ended unexpectedly (signal 9)" in demo.said, 30)
    assert until(lambda: any(name in command_of(p) and p.pid != victim.pid for p in demo.family()), 60)
    time.sleep(0.5)
    assert demo.said.count("ended unexpectedly") == 1


def test_a_closed_terminal_is_noticed_though_nothing_can_be_said(made_var: Path, start: Start):
    start().wait_up().end()
    here, there = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.stand_in", str(made_var), str(free_port())],
        cwd=ROOT,
        stdin=there,
        stdout=there,
        stderr=there,
        start_new_session=True,
        preexec_fn=lambda: _own_terminal(),
    )
    os.close(there)
    said = b""
    while b"Counterpoise is at" not in said:
        said += os.read(here, 1000)
    family = psutil.Process(process.pid).children(recursive=True)
    os.close(here)  # the terminal is gone: the kernel sends SIGHUP
    assert process.wait(20) == 0
    assert left(family) == []


def _own_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
