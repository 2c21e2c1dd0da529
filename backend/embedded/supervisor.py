"""Keeps children running until told to stop: what dies is started again, later each time."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from backend.embedded.process import Child, Command, Guardian, rotate_log

LONGEST_PAUSE = 30.0
LIVED_LONG = 60.0
LOOK_EVERY = 0.2
DISK_EVERY = 10.0
DISK_WARNING_BYTES = 100_000_000


class Stopped(Exception):
    """Somebody asked to stop while things were still being started."""


class Stop:
    """Whether somebody asked to stop: Ctrl-C, a closed terminal, ``kill``, or the end of the parent."""

    def __init__(self, *, with_parent: bool = False) -> None:
        self.reason: str | None = None
        self._parent = os.getppid() if with_parent else None
        for number, reason in (
            (signal.SIGINT, "Ctrl-C"),
            (signal.SIGTERM, "a request to end"),
            (signal.SIGHUP, "a closed terminal"),
        ):
            self._listen(number, reason)

    def _listen(self, number: signal.Signals, reason: str) -> None:
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            return  # started with nohup: meant to outlive its terminal

        def note(_number: int, _frame: object) -> None:
            self.reason = self.reason or reason

        signal.signal(number, note)

    def asked(self) -> bool:
        if self.reason is None and self._parent is not None and os.getppid() != self._parent:
            self.reason = "the end of the process that started it"
        return self.reason is not None

    def check(self) -> None:
        """Raises ``Stopped`` when somebody asked."""
        if self.asked():
            raise Stopped


@dataclass
class _Kept:
    """A child that is kept running. ``prepare`` clears what a killed one left, before each start."""

    child: Child
    prepare: Callable[[], object]
    pause: float = 1.0
    start_at: float | None = None


class Supervisor:
    """Starts children in order, watches them, stops them in reverse order."""

    def __init__(self, guardian: Guardian, say: Callable[[str], None], lock: int) -> None:
        self.guardian = guardian
        self._say = say
        self._lock = lock
        self._kept: list[_Kept] = []
        self._disk_at = 0.0
        self._disk_full = False

    def start(self, command: Command, prepare: Callable[[], object] = lambda: None) -> Child:
        rotate_log(command.log)
        child = Child(command, self.guardian)
        prepare()
        self._kept.append(_Kept(child, prepare))
        child.start()
        return child

    def watch(self, stop: Stop, folder: Path) -> None:
        """Until somebody asks to stop."""
        while not stop.asked():
            for kept in self._kept:
                self._look_after(kept)
            self._look_at_guardian()
            self._look_at_disk(folder)
            time.sleep(LOOK_EVERY)

    def _look_after(self, kept: _Kept) -> None:
        child, now = kept.child, time.monotonic()
        if child.running():
            return
        if kept.start_at is None:
            kept.pause = 1.0 if now - child.started_at > LIVED_LONG else kept.pause
            kept.start_at = now + kept.pause
            self._say(
                f"{child.command.name} ended unexpectedly ({describe(child.exit_status())}). "
                f"Its log is {child.command.log}. It starts again in {kept.pause:.0f} s."
            )
            child.end_group()
        elif now >= kept.start_at:
            kept.pause = min(2 * kept.pause, LONGEST_PAUSE)
            kept.start_at = None
            self._restart(kept)

    def _restart(self, kept: _Kept) -> None:
        if kept.child.pid is not None:
            self.guardian.drop(kept.child.pid)
        try:
            kept.prepare()
            kept.child.start()
        except OSError as problem:
            self._say(f"{kept.child.command.name} could not be started: {problem}. It is tried again.")

    def _look_at_guardian(self) -> None:
        if self.guardian.running():
            return
        self.guardian = self.guardian.again((self._lock,))
        for kept in self._kept:
            kept.child.guard_with(self.guardian)

    def _look_at_disk(self, folder: Path) -> None:
        now = time.monotonic()
        if now < self._disk_at:
            return
        self._disk_at = now + DISK_EVERY
        with suppress(OSError):
            free = shutil.disk_usage(folder).free
            if (free < DISK_WARNING_BYTES) != self._disk_full:
                self._disk_full = not self._disk_full
                self._say(_disk_line(free, folder, self._disk_full))

    def stop_all(self) -> None:
        """In reverse order of starting; what was started together is asked together."""
        stages: dict[int, list[Child]] = {}
        for kept in self._kept:
            stages.setdefault(kept.child.command.stage, []).append(kept.child)
        for stage in sorted(stages, reverse=True):
            stop_together(stages[stage])


def stop_together(children: Sequence[Child]) -> None:
    """Ask all, then wait for each; one's patience is not added to another's."""
    for child in children:
        child.ask_to_stop()
    for child in children:
        child.stop()


def describe(status: int | None) -> str:
    """An exit status in words."""
    if status is None:
        return "not started"
    return f"exit status {status}" if status >= 0 else f"signal {-status}"


def _disk_line(free: int, folder: Path, full: bool) -> str:
    if not full:
        return f"There is space again on the disk of {folder}: {free // 1_000_000} MB."
    return (
        f"The disk is nearly full: {free // 1_000_000} MB are left on the disk of {folder}. "
        "Free some space; what stopped for lack of it starts again by itself."
    )
