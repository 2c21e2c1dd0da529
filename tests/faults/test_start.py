"""What may be wrong before a start, and what each says: what happened, where, what next."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text

from backend.embedded import DemoProblem, checks
from tests.faults.conftest import Demo, free_port, left, until

pytestmark = pytest.mark.services
Start = Callable[..., Demo]


def test_it_starts_is_quick_the_second_time_and_keeps_what_it_made(start: Start, made_var: Path):
    assert start().wait_up().end() == 0
    identifier = (made_var / "postgres" / "global" / "pg_control").stat().st_ino
    began = time.monotonic()
    second = start().wait_up()
    assert time.monotonic() - began < 60
    assert (made_var / "postgres" / "global" / "pg_control").stat().st_ino == identifier
    assert "once" not in second.said
    assert second.end() == 0


def test_secrets_are_for_us_only_and_the_folder_is_closed(start: Start, made_var: Path):
    start().wait_up().end()
    for name in ("secret", "database-password"):
        assert stat.S_IMODE((made_var / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(made_var.stat().st_mode) in (0o700, 0o711)
    for folder in ("files", "tmp", "log", "postgres"):
        assert stat.S_IMODE((made_var / folder).stat().st_mode) == 0o700


def test_the_database_listens_on_no_network_and_wants_a_password(start: Start, made_var: Path):
    demo = start().wait_up()
    database = demo.named("bin/postgres")
    assert [c for c in database.net_connections("inet") if c.status == psutil.CONN_LISTEN] == []
    rules = [line for line in (made_var / "postgres" / "pg_hba.conf").read_text().splitlines() if line[:5] == "local"]
    assert rules
    assert all(rule.endswith("scram-sha-256") for rule in rules)


def test_a_busy_port_is_named_with_another(start: Start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = start(port=port)
        assert demo.finished() == 1
    assert f"Port {port} is in use by another program" in demo.said
    assert "make demo PORT=" in demo.said


def test_a_second_copy_is_told_where_the_first_is(start: Start):
    first = start().wait_up()
    second = start()
    assert second.finished() == 1
    assert f"running already at http://127.0.0.1:{first.port} (process {first.process.pid})" in second.said
    assert first.process.poll() is None


def test_stale_socket_and_pid_files_are_no_obstacle(start: Start, made_var: Path):
    start().wait_up().end()
    other = os.getpid()  # a live process that is no PostgreSQL
    data, sockets = made_var / "postgres", made_var / "run" / "postgres"
    (data / "postmaster.pid").write_text(f"{other}\n{data}\n1700000000\n5432\n{sockets}\n\n")
    os.chown(data / "postmaster.pid", data.stat().st_uid, data.stat().st_gid)
    for stale in (sockets / ".s.PGSQL.5432", sockets / ".s.PGSQL.5432.lock", made_var / "run" / "queue.sock"):
        stale.write_text(f"{other}\n")
    start().wait_up()


def test_a_folder_it_may_not_write(tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    tmp_path.chmod(0o711)
    for parent in tmp_path.parents[:2]:
        assert parent.exists()
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(DemoProblem, match=r"may not write there\. It happened at .*\. Give the folder"):
            checks.check_folder(closed / "var")
    finally:
        if root:
            os.seteuid(0)


def test_a_file_where_the_folder_should_be(start: Start, tmp_path: Path):
    (tmp_path / "var").write_text("a file")
    demo = start(var=tmp_path / "var")
    assert demo.finished() == 1
    assert "Counterpoise did not start." in demo.said
    assert "Traceback" not in demo.said


def test_a_disk_that_is_nearly_full(start: Start):
    demo = start(str(10**18))
    assert demo.finished() == 1
    assert "The disk is nearly full" in demo.said
    assert "Free some space and start again." in demo.said


def test_a_disk_that_fills_up_while_the_database_is_made(start: Start, tmp_path_factory: pytest.TempPathFactory):
    """A limit on the size of files stands for a full disk; nothing half made is left, and the next start succeeds."""
    with tempfile.TemporaryDirectory(prefix="cpf-") as folder:
        Path(folder).chmod(0o711)
        var = Path(folder) / "var"
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))  # noqa: E731
        demo = start("0", var=var, preexec_fn=limit)
        assert demo.finished() == 1
        assert "The database could not be made." in demo.said
        assert not (var / "postgres").exists()
        start(var=var).wait_up().end()


def test_data_of_a_newer_version_is_refused_untouched(start: Start):
    with tempfile.TemporaryDirectory(prefix="cpf-") as folder:
        Path(folder).chmod(0o711)
        var = Path(folder) / "var"
        demo = start(var=var).wait_up()
        address = checks.read_state(var)["environment"]["DATABASE_URL"]
        database = create_engine(address)
        with database.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = 'from the future'"))
        database.dispose()
        assert demo.end() == 0
        again = start(var=var)
        assert again.finished() == 1
        assert "The data was made by a newer Counterpoise" in again.said
        assert "Traceback" not in again.said


def test_a_path_too_long_for_a_socket_gets_a_private_folder_which_goes(start: Start):
    with tempfile.TemporaryDirectory(prefix="cpf-") as folder:
        Path(folder).chmod(0o711)
        demo = start(var=Path(folder) / ("long" * 20) / "var")
        Path(folder, "long" * 20).mkdir(mode=0o711)
        demo.wait_up()
        assert "is too long for a socket; sockets are in " in demo.said
        named = Path(demo.said.partition("sockets are in ")[2].partition(",")[0])
        assert stat.S_IMODE(named.stat().st_mode) in (0o700, 0o711)
        family = demo.family()
        demo.process.kill()
        assert until(lambda: not named.exists() and not left(family), 10)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a database account that cannot enter everywhere")
def test_root_in_a_closed_folder_gets_a_named_place_for_the_database(start: Start, tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    demo = start(var=closed / "var").wait_up()
    data = Path(demo.said.partition("so the database is in ")[2].partition(".\n")[0])
    assert (data / "PG_VERSION").exists()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert demo.end() == 0
    closed = closed.rename(tmp_path / "moved")
    again = start(var=closed / "var").wait_up()
    assert f"so the database is in {data}." in again.said
    assert again.end() == 0
    shutil.rmtree(data.parent)
    lost = start(var=closed / "var")
    assert lost.finished() == 1
    assert "The database's folder is gone" in lost.said


def test_ports_are_checked_without_a_trace():
    port = free_port()
    checks.check_port(port)
    checks.check_port(port)
