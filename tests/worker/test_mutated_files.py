"""Damaged files end as a table or as a refusal in words: a few in every run, thousands with `make proofs`."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.worker.mutations import mutated, originals
from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.table import from_bytes
from worker.engine.errors import TableProblem
from worker.reader import Reader, ReadOutcome

LIMITS = ReadLimits(rows=100_000, columns=500, memory_bytes=600_000_000, seconds=60, unpacked_bytes=50_000_000)
MOST_HELD = 900_000_000
"""The limit, and what the libraries hold before they read anything."""


def read_one(reader: Reader, path: Path, folder: Path) -> ReadOutcome | TableProblem:
    try:
        return reader.read(path, None, {}, LIMITS, folder)
    except TableProblem as problem:
        return problem


def read_all(files: list[tuple[str, bytes]], folder: Path) -> Counter[str]:
    """How each ended; every table is whole, every refusal has its sentences, no child holds too much or hangs."""
    ended: Counter[str] = Counter()
    path = folder / "upload"
    with Reader() as reader:
        for kind, content in files:
            path.write_bytes(content)
            began = time.monotonic()
            outcome = read_one(reader, path, folder)
            if isinstance(outcome, TableProblem):
                assert outcome.happened.endswith("."), kind
                assert outcome.next_step, kind
                crashed = "brought the reader to an end" in outcome.happened
                ended["broke the reader" if crashed else outcome.limit or "refused"] += 1
            else:
                table = from_bytes(outcome.table.read_bytes())
                assert len(table) == outcome.profile["rows"] > 0, kind
                assert outcome.peak_bytes < MOST_HELD, kind
                ended["read"] += 1
            assert time.monotonic() - began < LIMITS.seconds + 30, kind
            left = {one.name for one in folder.iterdir()} - {"upload", "request.json", "answer.json", "table.parquet"}
            assert len([name for name in left if not name.startswith(("reading-", "unpacked-"))]) == 0
    return ended


def test_the_originals_are_read(tmp_path: Path) -> None:
    assert read_all(list(originals().items()), tmp_path) == {"read": len(originals())}


def test_damaged_files_are_read_or_refused_in_words(tmp_path: Path) -> None:
    ended = read_all(list(mutated(100, seed=1)), tmp_path)
    assert sum(ended.values()) == 100
    assert ended["read"] > 10
    assert ended["refused"] > 10


@pytest.mark.proofs
def test_ten_thousand_damaged_files(tmp_path: Path) -> None:
    """Two readers at once, half of the files each."""
    files = list(mutated(10_000, seed=2))
    folders = [tmp_path / str(number) for number in range(2)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(2) as threads:
        ended = sum(threads.map(read_all, (files[::2], files[1::2]), folders), Counter[str]())
    print(dict(ended))
    assert sum(ended.values()) == 10_000
    assert ended["seconds"] == 0
    assert ended["broke the reader"] <= 10, "a file may break a library, and is then said to be damaged; many may not"
