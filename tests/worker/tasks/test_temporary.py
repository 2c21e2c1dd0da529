from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

from worker.tasks.temporary import private_folder, sweep_folders


def test_the_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with private_folder(tmp_path / "new") as folder:
        (folder / "upload").write_text("a,b")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert sweep_folders(tmp_path / "new") == 0
    assert not list((tmp_path / "new").iterdir())


def test_folders_of_the_dead_and_the_forgotten_are_swept(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = socket.gethostname()
    dead, old, alive, elsewhere, strange = (
        tmp_path / name
        for name in (
            f"read-{host}-{gone.pid}-x",
            f"read-{host}-{os.getpid()}-old",
            f"read-{host}-{os.getpid()}-new",
            f"read-another-{gone.pid}-x",
            "something",
        )
    )
    for folder in (dead, old, alive, elsewhere, strange):
        folder.mkdir()
        (folder / "upload").write_text("a,b")
    os.utime(old, (time.time() - 7200,) * 2)
    assert sweep_folders(tmp_path) == 2
    assert {folder.name for folder in tmp_path.iterdir()} == {alive.name, elsewhere.name, strange.name}


def test_no_folder_at_all_is_fine(tmp_path: Path) -> None:
    assert sweep_folders(tmp_path / "missing") == 0
