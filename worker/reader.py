"""Reads an upload in a child process with limits on memory and time: everything uploaded is hostile.

``python -m worker.reader REQUEST`` is the child. REQUEST is JSON: ``path test_path asked limits table answer`` (the last two are
where it writes the parsed table and ``{reading, profile}`` or ``{problem}``). ``read_in_child`` starts it and waits.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    from worker.engine.datasets.table import Table

_ROOT = Path(__file__).parents[1]
_LIBRARIES = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}
_ALLOCATOR = {
    "MALLOC_ARENA_MAX": "1"
}  # else every thread reserves 64 MiB of address space, which counts against the limit
_TOO_LARGE = "Keep only the columns and rows that the audit needs and upload again."
_OUT_OF_MEMORY = (
    "out of memory",
    "bad_alloc",
    "can't start new thread",
    "cannot allocate memory",
    "failed to map segment",
)
_MEMORY_SIGNALS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGKILL)


@dataclass(frozen=True)
class ReadOutcome:
    """A table that was read: ``table`` is its bytes as by ``engine.datasets.table.to_bytes``."""

    table: bytes
    reading: Mapping[str, Any]
    profile: Mapping[str, Any]


def read_in_child(
    path: Path, test_path: Path | None, asked: Mapping[str, Any], limits: ReadLimits, out_folder: Path
) -> ReadOutcome:
    """Read the files in a child of its own process group; it writes into ``out_folder`` and beside ``path`` only.

    Raises TableProblem as the child found it, or with ``limit`` "seconds" or "memory" if it had to be ended.
    """
    request = {
        "path": str(path.resolve()),
        "test_path": None if test_path is None else str(test_path.resolve()),
        "asked": dict(asked),
        "limits": asdict(limits),
        "table": str(out_folder.resolve() / "table.parquet"),
        "answer": str(out_folder.resolve() / "answer.json"),
    }
    question = out_folder / "request.json"
    question.write_text(json.dumps(request), "utf-8")
    code = _run(question.resolve(), limits.seconds)
    answer = out_folder.resolve() / "answer.json"
    if code != 0 or not answer.exists():
        raise _ended(code, limits)
    found = json.loads(answer.read_text("utf-8"))
    if "problem" in found:
        raise problem_from_json(found["problem"])
    return ReadOutcome((out_folder.resolve() / "table.parquet").read_bytes(), found["reading"], found["profile"])


def problem_to_json(problem: TableProblem) -> dict[str, Any]:
    """A problem as stored with a dataset: ``happened next_step row column limit``."""
    return {key: getattr(problem, key) for key in ("happened", "next_step", "row", "column", "limit")}


def problem_from_json(stored: Mapping[str, Any]) -> TableProblem:
    """The problem that ``problem_to_json`` gave."""
    place = {key: stored.get(key) for key in ("row", "column", "limit")}
    return TableProblem(stored["happened"], next_step=stored["next_step"], **place)


def _run(request: Path, seconds: float) -> int:
    """The child's exit status; a negative number is the signal that ended it. Its whole group is gone afterwards.

    The child sees neither our environment (it holds secrets) nor our standard streams (its errors may hold cells).
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "worker.reader", str(request)],
        cwd=_ROOT,
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **_LIBRARIES, **_ALLOCATOR},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return -signal.SIGXCPU
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _ended(code: int, limits: ReadLimits) -> TableProblem:
    if code == -signal.SIGXCPU:
        return TableProblem(
            f"Reading took longer than {limits.seconds:g} seconds.", next_step=_TOO_LARGE, limit="seconds"
        )
    if code < 0 and -code in _MEMORY_SIGNALS:
        return TableProblem(
            f"Reading needed more than the {limits.memory_bytes // 1_000_000} MB it may use.",
            next_step=_TOO_LARGE,
            limit="memory",
        )
    return TableProblem(
        "The file could not be read, for a cause that the reader does not know.",
        next_step="Save the table as CSV (UTF-8) again; if that does not help, tell the operator the time of this message.",
    )


def main(arguments: list[str]) -> int:
    """The child: limit itself, read, write the answer. Exit status 0 whenever there is an answer."""
    request = json.loads(Path(arguments[0]).read_text("utf-8"))
    limits = ReadLimits(**request["limits"])
    _end_with_parent()
    _load_libraries()
    _limit(limits)
    try:
        answer = _read(request, limits)
    except TableProblem as problem:
        answer = {"problem": problem_to_json(problem)}
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        answer = {"problem": problem_to_json(_ended(-signal.SIGKILL, limits))}
    Path(request["answer"]).write_text(json.dumps(answer), "utf-8")
    return 0


def _load_libraries() -> None:
    """Before there is a limit: a library that finds no room while it is loaded ends the process without a word."""
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import worker.engine.catalogue
    import worker.engine.datasets.profile  # noqa: F401


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether the limit is the cause: libraries name it by many types, some only in their text."""
    known: BaseException | None = error
    while known is not None:
        text = str(known).lower()
        named = any(sign in text for sign in _OUT_OF_MEMORY)
        if named or isinstance(known, MemoryError) or getattr(known, "errno", None) == errno.ENOMEM:
            return True
        known = known.__cause__ or known.__context__
    return False


def _limit(limits: ReadLimits) -> None:
    """``memory_bytes`` more address space than the libraries hold already."""
    seconds = int(limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the address space of a process cannot be limited in earnest
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_with_parent() -> None:
    """A worker that is killed takes its reader along, within a second."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _read(request: Mapping[str, Any], limits: ReadLimits) -> dict[str, Any]:
    from worker.engine.catalogue import FORMATS
    from worker.engine.datasets.profile import profile_table
    from worker.engine.datasets.read import read_table
    from worker.engine.datasets.table import to_bytes

    test_path = request["test_path"]
    table: Table
    table, reading = read_table(
        Path(request["path"]), None if test_path is None else Path(test_path), request["asked"], limits, FORMATS
    )
    profile = profile_table(table, reading)
    Path(request["table"]).write_bytes(to_bytes(table))
    return {"reading": reading, "profile": profile}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
