"""Private temporary folders for decrypted uploads: made, removed, and swept when the worker that made them died."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

FORGOTTEN_SECONDS = 3600.0


@contextmanager
def private_folder(root: Path) -> Iterator[Path]:
    """A folder only we may enter; gone, with all in it, when the block ends."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(mkdtemp(prefix=_prefix(os.getpid()), dir=root))  # mkdtemp makes it 0700
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep_folders(root: Path) -> int:
    """Remove folders whose worker on this host is gone, and any that are forgotten; returns how many."""
    removed = 0
    with suppress(FileNotFoundError):
        for folder in list(root.iterdir()):
            if folder.name.startswith("read-") and _is_left_over(folder):
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed


def _prefix(pid: int | str) -> str:
    return f"read-{socket.gethostname()}-{pid}-"


def _is_left_over(folder: Path) -> bool:
    try:
        if time.time() - folder.stat().st_mtime > FORGOTTEN_SECONDS:
            return True
    except FileNotFoundError:
        return False
    pid = folder.name.rsplit("-", 2)[-2]
    if not pid.isdigit() or not folder.name.startswith(_prefix(pid)):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
