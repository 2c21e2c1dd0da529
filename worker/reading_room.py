"""The warm process behind ``worker.reader``: it has the libraries loaded, and forks a child for every upload.

``python -m worker.reading_room`` reads lines from its standard input, each the path of a request (JSON: ``path test_path asked
limits table answer``; the last two are where the child writes the table and ``{reading, profile}`` or ``{problem}``), and
answers each with a line of JSON: ``limit`` (the one that the child hit, or null) and ``peak_bytes``. It stays free of threads
and never opens an upload; it ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.errors import TableProblem
from worker.reader import problem_to_json

_OUT_OF_MEMORY = (
    "out of memory",
    "bad_alloc",
    "can't start new thread",
    "cannot allocate memory",
    "failed to map segment",
)
_TOO_LONG = ("file too large", "errno 27")
_ENDINGS = {17: "memory", 18: "output"}
"""Exit statuses of a child that hit a limit and could still say so."""
_MEMORY_SIGNALS = (signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS)
"""Libraries that find no room end so; of ten thousand damaged files none did for another cause."""
_NICER = 5
"""Pages come before tables that are being read."""
_LARGE_PIECE = 128_000_000
_SHORTEST_WAIT, _LONGEST_WAIT = 0.002, 0.02


def main() -> int:
    """The room: answer every line until there are no more."""
    _load_libraries()
    gc.freeze()  # what is loaded stays shared with the children
    parent = os.getppid()
    for line in sys.stdin.buffer:
        request = json.loads(Path(line.decode().rstrip("\n")).read_text("utf-8"))
        answer = json.dumps(_read_in_child(request, parent))
        sys.stdout.buffer.write(answer.encode() + b"\n")
        sys.stdout.buffer.flush()
    return 0


def _load_libraries() -> None:
    """Before there is a limit: a library that finds no room while it is loaded ends the process without a word."""
    import charset_normalizer  # noqa: F401
    import duckdb  # noqa: F401
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet  # noqa: F401
    import python_calamine  # noqa: F401

    import worker.engine.catalogue
    import worker.engine.datasets.profile
    import worker.engine.datasets.read  # noqa: F401


# -- the room's side --------------------------------------------------------------------------------------------------


def _read_in_child(request: Mapping[str, Any], parent: int) -> dict[str, Any]:
    limits = ReadLimits(**request["limits"])
    held = _resident(os.getpid())
    pid = os.fork()
    if pid == 0:
        _be_child(request, limits)
    limit, status, peak = _watch(pid, limits, held, parent)
    if limit is None:
        limit = _ENDINGS.get(os.waitstatus_to_exitcode(status))
    if limit is None and os.WIFSIGNALED(status):
        limit = _of_signal(os.WTERMSIG(status))
    return {"limit": limit, "peak_bytes": peak}


def _of_signal(number: int) -> str | None:
    """The limit behind a signal; one that is no limit's is a file that broke the reader."""
    if number in _MEMORY_SIGNALS:
        return "memory"
    return {signal.SIGXCPU: "seconds", signal.SIGXFSZ: "output"}.get(signal.Signals(number))


def _watch(pid: int, limits: ReadLimits, held: int, parent: int) -> tuple[str | None, int, int]:
    """Wait for the child, and end it where it takes too long, holds too much, or nobody waits for it any more."""
    began, wait, limit = time.monotonic(), _SHORTEST_WAIT, None
    while True:
        if limit is None:
            if time.monotonic() - began >= limits.seconds:
                limit = "seconds"
            elif _resident(pid) > held + limits.memory_bytes:
                limit = "memory"
            if limit is not None:
                _kill_group(pid)
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            _kill(os.killpg, pid)  # what it may have left
            return limit, status, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if os.getppid() != parent:
            _kill_group(pid)
            os._exit(1)
        time.sleep(wait)
        wait = min(wait * 1.2, _LONGEST_WAIT)


def _kill_group(pid: int) -> None:
    _kill(os.killpg, pid)
    _kill(os.kill, pid)  # the group is the child's own only once it has made it


def _kill(kill: Callable[[int, int], None], pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(pid, signal.SIGKILL)


def _resident(pid: int) -> int:
    """Bytes that a process holds in memory; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


# -- the child's side -------------------------------------------------------------------------------------------------


def _be_child(request: Mapping[str, Any], limits: ReadLimits) -> None:
    """Limit itself, read, write the answer, end. Exit status 0 whenever there is an answer."""
    status = 1
    try:
        os.setsid()
        os.nice(_NICER)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        _end_with_parent()
        _limit(limits)
        status = _answer(request, limits)
    except BaseException as error:
        status = _status_of(error)
    finally:
        os._exit(status)


def _answer(request: Mapping[str, Any], limits: ReadLimits) -> int:
    try:
        answer = _read(request, limits)
    except TableProblem as problem:
        if "do not agree" in problem.happened and _near_limit():
            raise MemoryError from problem
        answer = {"problem": problem_to_json(problem)}
    text = json.dumps(answer)
    if "\\u0000" in text:  # no database keeps it
        zero = TableProblem(
            "A name in the file holds a zero character.", next_step="Rename it and upload the file again."
        )
        text = json.dumps({"problem": problem_to_json(zero)})
    Path(request["answer"]).write_text(text, "utf-8")
    return 0


def _read(request: Mapping[str, Any], limits: ReadLimits) -> dict[str, Any]:
    from worker.engine.catalogue import FORMATS
    from worker.engine.datasets.profile import profile_table
    from worker.engine.datasets.read import read_table
    from worker.engine.datasets.table import write_table

    test_path = request["test_path"]
    second = None if test_path is None else Path(test_path)
    table, reading = read_table(Path(request["path"]), second, request["asked"], limits, FORMATS)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write_table, table, request["table"])
        profile = profile_table(table, reading)
        written.result()
    return {"reading": {key: value for key, value in reading.items() if key != "found"}, "profile": profile}


def _status_of(error: BaseException) -> int:
    """17 or 18 if a limit is the cause: libraries name it by many types, some only in their text."""
    known: BaseException | None = error
    while known is not None:
        text, number = str(known).lower(), getattr(known, "errno", None)
        if number == errno.EFBIG or any(sign in text for sign in _TOO_LONG):
            return 18
        if any(sign in text for sign in _OUT_OF_MEMORY) or isinstance(known, MemoryError) or number == errno.ENOMEM:
            return 17
        known = known.__cause__ or known.__context__
    return 17 if _near_limit() else 1


def _near_limit() -> bool:
    """Whether this process came so near its address space that a larger piece of memory was refused."""
    if sys.platform != "linux":
        return False
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    peak = next(
        (line for line in Path("/proc/self/status").read_text("ascii").splitlines() if line.startswith("VmPeak")), "0 0"
    )
    return most != resource.RLIM_INFINITY and most - 1024 * int(peak.split()[1]) < _LARGE_PIECE


def _limit(limits: ReadLimits) -> None:
    """``memory_bytes`` more address space than the libraries hold already; threads share the seconds of the processor."""
    seconds = 4 * int(limits.seconds) + 4
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.output_bytes, limits.output_bytes))
    if sys.platform == "linux":  # elsewhere the address space of a process cannot be limited in earnest
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_with_parent() -> None:
    """A room that is killed takes its child along, within a second."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
