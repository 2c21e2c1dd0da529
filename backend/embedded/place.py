"""Folders of an installation on one machine, and the account under which its database runs.

PostgreSQL refuses to run as root. Then it runs under an account that exists already; no account is created and no
mode outside the data folder is changed. What that account cannot reach gets a folder of its own, and is named.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from backend.embedded.errors import DemoProblem

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 100
"""Bytes of a socket's path that every system takes (Linux 107, macOS 103)."""
USUAL_ACCOUNTS = ("postgres", "nobody", "daemon")


@dataclass(frozen=True)
class Account:
    """An account that exists on this machine."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Place:
    """Where everything lies. ``account`` is None unless we are root; ``notes`` are said to the person."""

    var: Path
    data: Path
    program: Path
    socket_folder: Path
    queue_socket: Path
    temporary: Path | None
    account: Account | None
    notes: tuple[str, ...]

    @property
    def logs(self) -> Path:
        return self.var / "log"


def choose_place(var: Path, program: Path, data: Path, account: Account | None) -> Place:
    """Create the folders under ``var`` (0700, or enterable where the database's account must pass) and pick the rest.

    ``temporary`` is a private folder for sockets that must be removed at the end, or None.
    """
    notes: list[str] = []
    for name in ("log", "run", "files", "tmp"):
        make_folder(var / name)
    if account is not None and may_enter(account, var.parent):
        var.chmod(0o711)
        (var / "run").chmod(0o711)
    socket_folder, temporary = _socket_folder(var, account, notes)
    return Place(
        var=var,
        data=data,
        program=program,
        socket_folder=socket_folder,
        queue_socket=(temporary or var / "run") / "queue.sock",
        temporary=temporary,
        account=account,
        notes=tuple(notes),
    )


def _socket_folder(var: Path, account: Account | None, notes: list[str]) -> tuple[Path, Path | None]:
    wanted = var / "run" / "postgres"
    why = _why_no_socket(wanted, account)
    if why is None:
        make_folder(wanted, account)
        return wanted, None
    temporary = private_temporary_folder(account)
    notes.append(f"The path {wanted} {why}; sockets are in {temporary}, which goes at the end.")
    make_folder(temporary / "postgres", account)
    return temporary / "postgres", temporary


def _why_no_socket(wanted: Path, account: Account | None) -> str | None:
    if len(os.fsencode(wanted / SOCKET_NAME)) > SOCKET_PATH_LIMIT:
        return "is too long for a socket"
    if not re.fullmatch(r"[A-Za-z0-9_./-]+", str(wanted)):
        return "holds characters that the address of a socket cannot carry"
    if account is not None and not may_enter(account, wanted.parent):
        return f"cannot be reached by the account {account.name}"
    return None


def private_temporary_folder(account: Account | None = None) -> Path:
    """A new folder that others cannot list, and nobody enters but us and, as root, the database's account."""
    parent = Path(tempfile.gettempdir())
    if len(os.fsencode(parent)) > 60 or (account is not None and not may_enter(account, parent)):
        parent = Path("/tmp")  # noqa: S108 - only mkdtemp's unguessable, private folder is made in it
    folder = Path(tempfile.mkdtemp(prefix="counterpoise-", dir=parent))
    if account is not None:
        folder.chmod(0o711)
    return folder


def make_folder(folder: Path, account: Account | None = None) -> None:
    """A folder of mode 0700, owned by ``account`` if given."""
    folder.mkdir(parents=True, exist_ok=True)
    if account is not None:
        os.chown(folder, account.uid, account.gid)
    folder.chmod(0o700)


def database_account(var: Path) -> Account | None:
    """None unless we are root. Else who owns the data, else who owns the project's folder, else a usual account."""
    if os.geteuid() != 0:
        return None
    folders = [folder for folder in (var / "postgres", var.parent) if folder.exists()]
    for folder in folders:
        uid = folder.stat().st_uid
        if uid != 0 and (account := _account_of_uid(uid)) is not None:
            return account
    for name in USUAL_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise DemoProblem(
        "PostgreSQL does not run as root, and there is no unprivileged account to run it under. "
        f"Looked for {', '.join(USUAL_ACCOUNTS)} in the system's list of accounts. Start it as an ordinary user."
    )


def _account_of_uid(uid: int) -> Account | None:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def may_enter(account: Account, folder: Path) -> bool:
    """Whether the modes of ``folder`` and of all above it let ``account`` pass through."""
    folder = folder.resolve()
    return all(_may(account, one, stat.S_IXUSR) for one in (folder, *folder.parents))


def may_read(account: Account, file: Path) -> bool:
    """Whether the modes let ``account`` read ``file``."""
    return may_enter(account, file.parent) and _may(account, file, stat.S_IRUSR)


def _may(account: Account, path: Path, owner_bit: int) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    if status.st_uid == account.uid:
        return bool(status.st_mode & owner_bit)
    if status.st_gid == account.gid:
        return bool(status.st_mode & (owner_bit >> 3))
    return bool(status.st_mode & (owner_bit >> 6))
