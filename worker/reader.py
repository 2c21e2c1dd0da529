"""Reads an upload in a child process with limits on memory, time and output: everything uploaded is hostile.

A ``Reader`` keeps one warm process (``worker.reading_room``) that has the libraries loaded and reads nothing itself: for each
upload it forks a child, watches it, and ends it at a limit. Each upload so has a process of its own, which starts at once.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.errors import TableProblem

_ROOT = Path(__file__).parents[1]
_LIBRARIES = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}
# Else every thread, and Arrow's own allocator, reserve address space far beyond their needs, which counts against the limit.
_ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
_TOO_LARGE = "Keep only the columns and rows that the audit needs and upload again."
_GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class ReadOutcome:
    """A table that was read.

    Attributes:
        table: a file in the folder that was given, as by ``engine.datasets.table.write_table``.
        peak_bytes: the most memory that the child held at once.
    """

    table: Path
    reading: Mapping[str, Any]
    profile: Mapping[str, Any]
    peak_bytes: int = 0


class Reader:
    """One warm process that reads uploads one after the other, each in a child of its own. Safe for threads."""

    def __init__(self) -> None:
        self._room: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and with it whatever it is reading."""
        with self._lock:
            self._end()

    def read(
        self, path: Path, test_path: Path | None, asked: Mapping[str, Any], limits: ReadLimits, out_folder: Path
    ) -> ReadOutcome:
        """Read the files in a child; it writes into ``out_folder`` and beside ``path`` only.

        Raises TableProblem as the child found it, or with ``limit`` "seconds", "memory" or "output" if it hit one.
        """
        folder = out_folder.resolve()
        request = {
            "path": str(path.resolve()),
            "test_path": None if test_path is None else str(test_path.resolve()),
            "asked": dict(asked),
            "limits": asdict(limits),
            "table": str(folder / "table.parquet"),
            "answer": str(folder / "answer.json"),
        }
        question, answer = folder / "request.json", folder / "answer.json"
        question.write_text(json.dumps(request), "utf-8")
        answer.unlink(missing_ok=True)
        ended = self._ask(question, limits.seconds + _GRACE_SECONDS)
        if ended["limit"] is not None or not answer.exists():
            raise limit_problem(ended["limit"], limits)
        found = json.loads(answer.read_text("utf-8"))
        if "problem" in found:
            raise problem_from_json(found["problem"])
        return ReadOutcome(folder / "table.parquet", found["reading"], found["profile"], ended["peak_bytes"])

    def _ask(self, question: Path, seconds: float) -> dict[str, Any]:
        """How the child ended: ``limit`` and ``peak_bytes``. A room that died meanwhile is opened anew, once."""
        with self._lock:
            for _ in range(2):
                room = self._room if self._room is not None and self._room.poll() is None else self._open()
                line = _exchange(room, question, seconds)
                if line is None:
                    self._end()
                    return {"limit": "seconds", "peak_bytes": 0}
                if line:
                    return dict(json.loads(line))
                self._end()
            return {"limit": None, "peak_bytes": 0}

    def _open(self) -> subprocess.Popen[bytes]:
        """The room sees neither our environment (it holds secrets) nor our standard error (its errors may hold cells)."""
        self._end()
        self._room = subprocess.Popen(
            [sys.executable, "-m", "worker.reading_room"],
            cwd=_ROOT,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **_LIBRARIES, **_ALLOCATOR},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self._room

    def _end(self) -> None:
        room, self._room = self._room, None
        if room is None:
            return
        for pipe in (room.stdin, room.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # both were asked for
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(room.pid, signal.SIGKILL)
        room.wait()


def _exchange(room: subprocess.Popen[bytes], question: Path, seconds: float) -> bytes | None:
    """The room's line about one question; empty if it died, None if it does not answer in time."""
    if room.stdin is None or room.stdout is None:
        return b""
    try:
        room.stdin.write(f"{question}\n".encode())
        room.stdin.flush()
    except OSError:
        return b""
    ready, _, _ = select.select([room.stdout], [], [], seconds)
    return room.stdout.readline() if ready else None


_shared: dict[int, Reader] = {}


def read_in_child(
    path: Path, test_path: Path | None, asked: Mapping[str, Any], limits: ReadLimits, out_folder: Path
) -> ReadOutcome:
    """``Reader.read`` by the one reader of this process; a process that was forked from it opens its own."""
    if os.getpid() not in _shared:
        _shared[os.getpid()] = Reader()
        atexit.register(_shared[os.getpid()].close)
    return _shared[os.getpid()].read(path, test_path, asked, limits, out_folder)


def problem_to_json(problem: TableProblem) -> dict[str, Any]:
    """A problem as stored with a dataset: ``happened next_step row column limit``."""
    return {key: getattr(problem, key) for key in ("happened", "next_step", "row", "column", "limit")}


def problem_from_json(stored: Mapping[str, Any]) -> TableProblem:
    """The problem that ``problem_to_json`` gave."""
    place = {key: stored.get(key) for key in ("row", "column", "limit")}
    return TableProblem(stored["happened"], next_step=stored["next_step"], **place)


def limit_problem(limit: str | None, limits: ReadLimits) -> TableProblem:
    """A child that was ended at a limit, or ended without a word."""
    said = {
        "seconds": f"Reading took longer than {limits.seconds:g} seconds.",
        "memory": f"Reading needed more than the {limits.memory_bytes // 1_000_000} MB it may use.",
        "output": f"Reading wrote more than the {limits.output_bytes // 1_000_000} MB it may write.",
    }
    if limit in said:
        return TableProblem(said[limit], next_step=_TOO_LARGE, limit=limit)
    return TableProblem(
        "The file could not be read: it brought the reader to an end, as damaged files do.",
        next_step="Save the table as CSV (UTF-8) again; if that does not help, tell the operator the time of this message.",
    )
