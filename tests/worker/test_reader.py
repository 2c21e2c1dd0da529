"""The child that reads uploads: its answer, its limits, and that nothing of it stays."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from worker import reader
from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.table import from_bytes
from worker.engine.errors import TableProblem
from worker.reader import Reader, problem_from_json, problem_to_json, read_in_child


def write(folder: Path, content: str, name: str = "upload.csv") -> Path:
    path = folder / name
    path.write_text(content, "utf-8")
    return path


def test_a_table_comes_back_with_reading_and_profile(tmp_path):
    path = write(tmp_path, "sex,age\nf,1\nm,?\n")
    found = read_in_child(path, None, {"labels": {"columns": {"sex": "Sex"}}}, ReadLimits(), tmp_path)
    table = from_bytes(found.table.read_bytes())
    assert table.column("sex").values_as_text() == ["f", "m"]
    assert found.reading["types"] == {"sex": "category", "age": "number"}
    assert [column["label"] for column in found.profile["columns"]] == ["Sex", "age"]


def test_a_test_file_is_read_along(tmp_path):
    found = read_in_child(
        write(tmp_path, "a\n1\n3\n"), write(tmp_path, "a\n2\n", "test.csv"), {}, ReadLimits(), tmp_path
    )
    assert from_bytes(found.table.read_bytes()).from_test_file.tolist() == [False, False, True]


def test_one_row_is_too_few(tmp_path):
    with pytest.raises(TableProblem, match="only 1 row"):
        read_in_child(write(tmp_path, "a,b\n1,2\n"), None, {}, ReadLimits(), tmp_path)


def test_a_problem_comes_back_with_its_place(tmp_path):
    with pytest.raises(TableProblem) as caught:
        read_in_child(write(tmp_path, "a,b\n1,2\n3\n"), None, {}, ReadLimits(), tmp_path)
    assert caught.value.row == 2
    again = problem_from_json(json.loads(json.dumps(problem_to_json(caught.value))))
    assert str(again) == str(caught.value)


def test_a_reader_that_takes_too_long_is_ended_and_the_limit_named(tmp_path):
    started = time.monotonic()
    with pytest.raises(TableProblem) as caught:
        read_in_child(write(tmp_path, "a\n1\n3\n"), None, {}, ReadLimits(seconds=0.0), tmp_path)
    assert caught.value.limit == "seconds"
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("megabytes", [1, 40, 120, 250])
def test_a_reader_that_needs_too_much_memory_is_ended_and_the_limit_named(tmp_path, megabytes):
    wide = "a,b\n" + "".join(f"{i:0200d}x,{i:0200d}y\n" for i in range(150_000))
    limits = ReadLimits(memory_bytes=megabytes * 1_000_000, seconds=300)
    with pytest.raises(TableProblem) as caught:
        read_in_child(write(tmp_path, wide), None, {}, limits, tmp_path)
    assert caught.value.limit == "memory"


def test_a_reader_that_writes_too_much_is_ended_and_the_limit_named(tmp_path):
    with pytest.raises(TableProblem) as caught:
        read_in_child(write(tmp_path, "a\n" + "1\n" * 4000), None, {}, ReadLimits(output_bytes=500), tmp_path)
    assert caught.value.limit == "output"


def test_a_limit_ends_one_upload_and_the_next_is_read(tmp_path):
    path = write(tmp_path, "a\n1\n3\n")
    with Reader() as warm:
        with pytest.raises(TableProblem):
            warm.read(path, None, {}, ReadLimits(seconds=0.0), tmp_path)
        assert warm.read(path, None, {}, ReadLimits(), tmp_path).peak_bytes > 0


def test_the_child_sees_no_secret_of_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "x" * 40)
    seen = {}

    class Spy(reader.subprocess.Popen):
        def __init__(self, *arguments, **options):
            seen.update(options["env"])
            super().__init__(*arguments, **options)

    monkeypatch.setattr(reader.subprocess, "Popen", Spy)
    with Reader() as warm:
        warm.read(write(tmp_path, "a\n1\n3\n"), None, {}, ReadLimits(), tmp_path)
    assert "SECRET_KEY" not in seen
    assert "PATH" in seen


def test_an_answer_that_never_came_is_a_problem_and_not_a_crash(tmp_path, monkeypatch):
    monkeypatch.setattr(reader.sys, "executable", "/bin/false")
    with Reader() as warm, pytest.raises(TableProblem, match="could not be read"):
        warm.read(write(tmp_path, "a\n1\n3\n"), None, {}, ReadLimits(), tmp_path)


def test_a_room_that_died_is_opened_anew(tmp_path):
    path = write(tmp_path, "a\n1\n3\n")
    with Reader() as warm:
        warm.read(path, None, {}, ReadLimits(), tmp_path)
        room = psutil.Process(warm._room.pid)
        room.kill()
        psutil.wait_procs([room])
        assert len(warm.read(path, None, {}, ReadLimits(), tmp_path).profile["columns"]) == 1


def test_uploads_read_at_once_are_kept_apart(tmp_path):
    def one(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = read_in_child(write(folder, f"a{number}\n1\n2\n"), None, {}, ReadLimits(), folder)
        return found.profile["columns"][0]["name"]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one, range(4))) == ["a0", "a1", "a2", "a3"]


def test_no_child_is_left(tmp_path):
    with Reader() as warm:
        warm.read(write(tmp_path, "a\n1\n3\n"), None, {}, ReadLimits(), tmp_path)
        room = psutil.Process(warm._room.pid)
        assert room.children() == []
    assert not room.is_running()
