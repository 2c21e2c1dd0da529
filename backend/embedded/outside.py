"""Where database and programs lie when the database's account cannot enter the project's folder; only for root.

The folder outlives a restart, so ``var/database-place`` remembers it. It remembers in turn whose it is: a project that
was moved finds its data again, a copy of a project gets a folder of its own instead of sharing one database.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from backend.embedded.errors import DemoProblem
from backend.embedded.place import Account, may_enter, may_read

SYSTEM_DATA = Path("/var/lib")
POINTER = "database-place"
OWNER = "belongs-to"


def database_home(var: Path, account: Account | None) -> Path:
    """``var`` itself, or the folder outside that holds the database instead.

    Raises:
        DemoProblem: the database is where nobody can run it, or is gone.
    """
    if account is None:
        return var
    remembered = _remembered(var)
    if remembered is not None:
        return remembered
    if may_enter(account, var.parent):
        return var
    if (var / "postgres" / "PG_VERSION").exists():
        raise DemoProblem(
            f"The account {account.name}, which has to run the database, cannot enter its folder. It is "
            f"{var / 'postgres'}. Move the project back to where others may enter (not read), and start again."
        )
    return _new_home(var, account)


def _remembered(var: Path) -> Path | None:
    pointer = var / POINTER
    if not pointer.exists():
        return None
    home = Path(pointer.read_text("utf-8").strip())
    if not home.is_dir() or home.is_symlink() or home.stat().st_uid != os.geteuid():
        raise DemoProblem(
            f"The database's folder is gone or no longer ours. It was {home}, as {pointer} says. "
            f"Bring it back, or remove {pointer} to begin with an empty database."
        )
    owner = Path((home / OWNER).read_text("utf-8").strip())
    if owner != var.resolve() and (owner / POINTER).exists():
        return None  # a copied project: the first one keeps the database
    (home / OWNER).write_text(f"{var.resolve()}\n", "utf-8")
    return home


def _new_home(var: Path, account: Account) -> Path:
    fit = may_enter(account, SYSTEM_DATA) and os.access(SYSTEM_DATA, os.W_OK)
    home = Path(tempfile.mkdtemp(prefix="counterpoise-", dir=SYSTEM_DATA if fit else "/var/tmp"))  # noqa: S108 - mkdtemp's own folder
    home.chmod(0o711)
    (home / OWNER).write_text(f"{var.resolve()}\n", "utf-8")
    (var / POINTER).write_text(f"{home}\n", "utf-8")
    return home


def reachable_program(account: Account | None, program: Path, home: Path) -> Path:
    """``program`` itself if ``account`` can run it, else a copy of the wheel's folders under ``home``."""
    if account is None or _can_run(account, program):
        return program
    package = program.parent
    copy = home / package.name / program.name
    mark = f"{program} {(program / 'bin' / 'postgres').stat().st_mtime_ns}"
    complete = home / "complete"
    if not complete.exists() or complete.read_text("utf-8") != mark:
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(program, copy, symlinks=True)
        for libraries in _libraries(program):
            shutil.copytree(libraries, home / libraries.relative_to(package.parent), symlinks=True)
        _open_for_reading(home)
        complete.write_text(mark, "utf-8")
    return copy


def _libraries(program: Path) -> list[Path]:
    """Folders beside the programs to which wheels move shared libraries (Linux, macOS)."""
    package = program.parent
    found = (package.with_name(f"{package.name}.libs"), package / ".dylibs")
    return [folder for folder in found if folder.is_dir()]


def _can_run(account: Account, program: Path) -> bool:
    needed = [program / "bin" / "postgres", program / "share" / "postgresql" / "postgres.bki"]
    needed += [file for folder in _libraries(program) for file in folder.iterdir()]
    return all(may_read(account, file) for file in needed)


def _open_for_reading(folder: Path) -> None:
    """Let everybody read the copied programs of a wheel; they are public."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if executable else 0o644)
