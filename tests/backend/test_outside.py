"""Data and programs that the database's account cannot reach; accounts and modes alone, nothing is started."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from backend.embedded import DemoProblem, outside
from backend.embedded.binaries import choose_postgres
from backend.embedded.outside import database_home, reachable_program
from backend.embedded.place import Account, may_enter

NOBODY = Account("nobody", 65534, 65534)


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's data folder that only its owner may enter, and a stand-in for the system's folder of data."""
    system = tmp_path / "system"
    system.mkdir()
    monkeypatch.setattr(outside, "SYSTEM_DATA", system)
    monkeypatch.setattr(outside, "may_enter", lambda account, folder: folder == system)
    var = tmp_path / "project" / "var"
    var.mkdir(parents=True)
    return var


def test_nothing_moves_unless_root(closed: Path):
    assert database_home(closed, None) == closed


def test_a_closed_project_finds_its_database_again_also_when_moved(closed: Path):
    home = database_home(closed, NOBODY)
    assert home.parent.name == "system"
    assert database_home(closed, NOBODY) == home
    moved = closed.parent.rename(closed.parent.with_name("moved")) / "var"
    assert database_home(moved, NOBODY) == home


def test_a_copied_project_gets_a_database_of_its_own(closed: Path):
    home = database_home(closed, NOBODY)
    copy = closed.parent.with_name("copy") / "var"
    copy.mkdir(parents=True)
    (copy / outside.POINTER).write_text((closed / outside.POINTER).read_text())
    other = database_home(copy, NOBODY)
    assert other != home
    assert database_home(copy, NOBODY) == other
    assert database_home(closed, NOBODY) == home


def test_data_that_became_unreachable_is_not_replaced_by_an_empty_database(closed: Path):
    (closed / "postgres").mkdir()
    (closed / "postgres" / "PG_VERSION").write_text("18")
    with pytest.raises(DemoProblem, match="Move the project back"):
        database_home(closed, NOBODY)


def test_programs_behind_a_closed_door_are_copied_whole_and_run(tmp_path: Path):
    """With the libraries that the wheel keeps beside them."""
    program = choose_postgres(tmp_path)
    stranger = Account("stranger", 60001, 60001)
    home = tmp_path / "programs"
    behind = _copied_wheel(program, tmp_path / "closed")
    (tmp_path / "closed").chmod(0o700)
    copy = reachable_program(stranger, behind, home)
    assert copy.is_relative_to(home)
    done = subprocess.run([copy / "bin" / "initdb", "--version"], capture_output=True, text=True, check=True)
    assert "PostgreSQL" in done.stdout
    assert (copy / "bin" / "postgres").stat().st_mode & 0o777 == 0o755
    before = (copy / "bin" / "postgres").stat().st_ino
    assert reachable_program(stranger, behind, home) == copy
    assert (copy / "bin" / "postgres").stat().st_ino == before


def _copied_wheel(program: Path, closed: Path) -> Path:
    package = program.parent
    shutil.copytree(program, closed / package.name / program.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, closed / libraries.name, symlinks=True)
    return closed / package.name / program.name


def test_who_may_enter_follows_the_modes(tmp_path: Path):
    stranger = Account("stranger", 60001, 60001)
    tmp_path.chmod(0o711)
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o700)
    assert not may_enter(stranger, inner)
    assert may_enter(stranger, Path("/usr/bin"))
