"""Ends what a killed parent left behind: a process of its own that waits for a pipe to close. Standard library only.

Started as ``python -I guardian.py`` in a session of its own. Lines on its standard input, one a child:
``add PID SIGNAL``, ``drop PID``, ``folder PATH`` (removed at the end), ``done`` (a proper end, nothing to do).
When the pipe closes without ``done``, each child's group and its descendants get SIGNAL, and SIGKILL after
``PATIENCE`` seconds. A number that now belongs to another process is left alone: its start time tells.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

PATIENCE = 4.0


def start_time(pid: int) -> str:
    """When the process started, in the kernel's own ticks; empty where the system does not say (not Linux)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[19].decode()
    except (OSError, IndexError):
        return ""


def descendants(pids: "set[int]") -> "set[int]":
    """All children of ``pids``, and theirs; empty where there is no /proc."""
    parents = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the size of this process
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rsplit(b")", 1)[1].split()[1])
    found: set[int] = set()
    todo = set(pids)
    while todo:
        todo = {child for child, parent in parents.items() if parent in todo and child not in found}
        found |= todo
    return found


def alive(pid: int, started: str) -> bool:
    """Whether ``pid`` still is the process that started at ``started`` and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return not started
    if not started:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except OSError:
        return False
    return fields[19].decode() == started and fields[0] != b"Z"


def end_all(children: "dict[int, tuple[int, str]]") -> None:
    """``children``: pid -> (signal, start time). Asks once, waits, and kills what is left with its descendants."""
    ours = {pid: started for pid, (_, started) in children.items() if alive(pid, started)}
    watched = dict(ours)
    watched.update({pid: start_time(pid) for pid in descendants(set(ours))})
    for pid in ours:
        _signal_group(pid, children[pid][0])
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and any(alive(pid, started) for pid, started in watched.items()):
        watched.update({pid: start_time(pid) for pid in descendants(set(watched)) if pid not in watched})
        time.sleep(0.05)
    for pid, started in watched.items():
        if alive(pid, started):
            if pid in ours:
                _signal_group(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    except PermissionError:
        pass


def main() -> None:
    """Read lines until the pipe closes, then do what is left to do."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    children: dict[int, tuple[int, str]] = {}
    folders: list[str] = []
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "add":
            pid, asked, started = rest.split(" ")
            children[int(pid)] = (int(asked), "" if started == "-" else started)
        elif word == "drop":
            children.pop(int(rest), None)
        elif word == "folder":
            folders.append(rest)
        elif word == "done":
            return
    end_all(children)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
