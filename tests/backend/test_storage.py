"""Files open as they were written, or not at all."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from backend.settings import Settings
from backend.storage import CHUNK_BYTES, Storage, StorageProblem


def make_storage(folder: Path, secret: str = "s" * 40) -> Storage:
    return Storage(
        Settings(database_url="unused", redis_url="unused", storage_url=f"file://{folder}", secret_key=secret)
    )


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES])
def test_read_gives_what_was_written(tmp_path: Path, size: int) -> None:
    storage, content = make_storage(tmp_path), os.urandom(size)
    key = storage.new_file_key()
    written = storage.write("a/b", content, key)
    assert (written.size, written.sha256) == (size, hashlib.sha256(content).hexdigest())
    assert storage.read("a/b", key) == content
    storage.read_to("a/b", key, tmp_path / "plain")
    assert (tmp_path / "plain").read_bytes() == content
    assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o600


def test_the_plain_bytes_are_not_on_disk(tmp_path: Path) -> None:
    storage = make_storage(tmp_path)
    storage.write("a", b"Amer-Indian-Eskimo" * 50, storage.new_file_key())
    assert b"Eskimo" not in (tmp_path / "a").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@hypothesis_settings(max_examples=60)
@given(place=st.floats(0, 1, exclude_max=True), cut=st.booleans())
def test_an_altered_or_truncated_file_does_not_open(tmp_path_factory: pytest.TempPathFactory, place: float, cut: bool):
    folder = tmp_path_factory.mktemp("files")
    storage = make_storage(folder)
    key = storage.new_file_key()
    storage.write("a", bytes(2 * CHUNK_BYTES + 5), key)
    sealed = bytearray((folder / "a").read_bytes())
    at = int(place * len(sealed))
    if cut:
        del sealed[at:]
    else:
        sealed[at] ^= 1
    (folder / "a").write_bytes(sealed)
    with pytest.raises(StorageProblem):
        storage.read_to("a", key, folder / "plain")
    assert not (folder / "plain").exists()


def test_cutting_at_a_chunk_border_is_noticed(tmp_path: Path) -> None:
    storage = make_storage(tmp_path)
    key = storage.new_file_key()
    storage.write("a", bytes(2 * CHUNK_BYTES), key)
    sealed = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(sealed[: 20 + CHUNK_BYTES + 16])
    with pytest.raises(StorageProblem, match="cut off"):
        storage.read("a", key)


def test_a_file_moved_to_another_name_does_not_open(tmp_path: Path) -> None:
    storage = make_storage(tmp_path)
    key = storage.new_file_key()
    storage.write("original", b"x", key)
    (tmp_path / "original").rename(tmp_path / "test")
    with pytest.raises(StorageProblem):
        storage.read("test", key)


def test_other_keys_do_not_open_it(tmp_path: Path) -> None:
    storage = make_storage(tmp_path)
    key = storage.new_file_key()
    storage.write("a", b"x", key)
    with pytest.raises(StorageProblem, match="altered"):
        storage.read("a", storage.new_file_key())
    with pytest.raises(StorageProblem, match="SECRET_KEY"):
        make_storage(tmp_path, "t" * 40).read("a", key)
    with pytest.raises(StorageProblem, match="destroyed"):
        storage.read("a", None)


def test_a_broken_source_leaves_nothing(tmp_path: Path) -> None:
    class Broken:
        def read(self, size: int = -1, /) -> bytes:
            raise OSError("gone")

    storage = make_storage(tmp_path)
    with pytest.raises(OSError, match="gone"):
        storage.write("a", Broken(), storage.new_file_key())
    assert list(tmp_path.iterdir()) == []


def test_delete_and_strange_keys(tmp_path: Path) -> None:
    storage = make_storage(tmp_path)
    key = storage.new_file_key()
    storage.write("a", b"x", key)
    assert storage.delete("a")
    assert not storage.delete("a")
    with pytest.raises(StorageProblem, match="missing"):
        storage.read("a", key)
    for strange in ("", "/etc/passwd", "a/../../b"):
        with pytest.raises(StorageProblem):
            storage.read(strange, key)
    storage.ready()
    assert list(tmp_path.iterdir()) == []
