"""Uploads and artefacts at any fsspec URL, each file encrypted with its dataset's key.

The key of a dataset is 32 random bytes, wrapped by the installation's master key (AES-256-GCM); the wrapped form lies
in the database, and destroying it makes every file of that dataset noise. A file is a header (magic, random salt) and
chunks of 1 MiB, each sealed by AES-256-GCM under a key derived from the dataset's key and the salt (HKDF-SHA256).
The nonce of a chunk is its number and whether it is the last (the STREAM construction, Hoang, Reyhanitabar, Rogaway,
Vizar 2015, section 4), and the storage key is authenticated with it: chunks that are altered, reordered, cut off or
moved to another name do not open.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import fsspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from backend.settings import Settings

CHUNK_BYTES = 1 << 20
TAG_BYTES = 16
MAGIC = b"CPF1"
SALT_BYTES = 16
WRAP_MARK = b"\x01"
NONCE_BYTES = 12


class StorageProblem(Exception):
    """A stored file cannot be opened: missing, altered, cut off, or its key was destroyed."""


class Readable(Protocol):
    """Anything with ``read(n)``."""

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class WrittenFile:
    """What was written: ``size`` and ``sha256`` are of the plain bytes."""

    size: int
    sha256: str


def derive(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    """A 32-byte key for one purpose (HKDF-SHA256)."""
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=purpose).derive(secret)


class Storage:
    """Encrypted files under one URL. Storage keys are relative paths such as ``datasets/<id>/original``."""

    def __init__(self, settings: Settings) -> None:
        self._fs: Any
        self._fs, self._root = fsspec.core.url_to_fs(settings.storage_url)
        self._master = AESGCM(derive(settings.secret_key.encode(), b"counterpoise", b"wraps file keys"))

    def new_file_key(self) -> bytes:
        """A fresh key for one dataset, wrapped; store it in the dataset's row."""
        nonce = os.urandom(NONCE_BYTES)
        return WRAP_MARK + nonce + self._master.encrypt(nonce, os.urandom(32), WRAP_MARK)

    def write(self, key: str, content: Readable | bytes, wrapped_key: bytes) -> WrittenFile:
        """Stores ``content`` under ``key``, whole or not at all; an earlier file of that name is replaced."""
        source = io.BytesIO(content) if isinstance(content, bytes) else content
        place, unfinished = self._place(key), self._place(f"{key}.{os.urandom(6).hex()}.part")
        self._fs.makedirs(self._fs._parent(place), exist_ok=True)
        try:
            with self._fs.open(unfinished, "wb") as target:
                written = self._seal(source, target, key, wrapped_key)
            self._fs.mv(unfinished, place)
        except BaseException:
            with contextlib.suppress(OSError):
                self._fs.rm(unfinished)
            raise
        return written

    def read(self, key: str, wrapped_key: bytes | None) -> bytes:
        """The plain bytes of a file.

        Raises:
            StorageProblem: missing, altered, cut off, or the key was destroyed.
        """
        return b"".join(self._chunks(key, wrapped_key))

    def read_to(self, key: str, wrapped_key: bytes | None, path: Path) -> None:
        """Writes the plain bytes to ``path`` (mode 600); on any problem no file is left there."""
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
                for chunk in self._chunks(key, wrapped_key):
                    target.write(chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def delete(self, key: str) -> bool:
        """Removes a file; says whether it was there."""
        try:
            self._fs.rm(self._place(key))
        except FileNotFoundError:
            return False
        return True

    def ready(self) -> None:
        """Raises ``OSError`` unless files can be written and removed."""
        place = self._place(f"ready-{os.urandom(6).hex()}")
        self._fs.makedirs(self._root, exist_ok=True)
        self._fs.pipe_file(place, b"1")
        self._fs.rm(place)

    def _place(self, key: str) -> str:
        if not key or key.startswith("/") or ".." in key.split("/"):
            raise StorageProblem("A storage key must be a relative path. It is not. This is a fault of ours.")
        return f"{self._root.rstrip('/')}/{key}"

    def _file_cipher(self, wrapped_key: bytes | None, salt: bytes) -> AESGCM:
        if not wrapped_key:
            raise StorageProblem("The key of this file was destroyed. The dataset was erased. Nothing can be read.")
        try:
            nonce, sealed = wrapped_key[1 : 1 + NONCE_BYTES], wrapped_key[1 + NONCE_BYTES :]
            file_key = self._master.decrypt(nonce, sealed, wrapped_key[:1])
        except (InvalidTag, ValueError) as error:
            raise StorageProblem(
                "The key of this file cannot be unwrapped. SECRET_KEY differs from when it was stored. Set it back."
            ) from error
        return AESGCM(derive(file_key, salt, b"seals one file"))

    def _seal(self, source: Readable, target: IO[bytes], key: str, wrapped_key: bytes) -> WrittenFile:
        salt, digest, size, number = os.urandom(SALT_BYTES), hashlib.sha256(), 0, 0
        cipher = self._file_cipher(wrapped_key, salt)
        target.write(MAGIC + salt)
        chunk = _read_full(source, CHUNK_BYTES)
        while True:
            following = _read_full(source, CHUNK_BYTES)
            digest.update(chunk)
            size += len(chunk)
            target.write(cipher.encrypt(_nonce(number, last=not following), chunk, key.encode()))
            if not following:
                return WrittenFile(size, digest.hexdigest())
            chunk, number = following, number + 1

    def _chunks(self, key: str, wrapped_key: bytes | None) -> Iterator[bytes]:
        try:
            with self._fs.open(self._place(key), "rb") as source:
                yield from self._open(source, key, wrapped_key)
        except FileNotFoundError as error:
            raise StorageProblem("A stored file is missing. It was erased or the storage was changed.") from error
        except InvalidTag as error:
            raise StorageProblem(
                "A stored file was altered or cut off. It is not used. Restore the storage."
            ) from error

    def _open(self, source: IO[bytes], key: str, wrapped_key: bytes | None) -> Iterator[bytes]:
        header = _read_full(source, len(MAGIC) + SALT_BYTES)
        if len(header) < len(MAGIC) + SALT_BYTES or not header.startswith(MAGIC):
            raise InvalidTag
        cipher, number = self._file_cipher(wrapped_key, header[len(MAGIC) :]), 0
        chunk = _read_full(source, CHUNK_BYTES + TAG_BYTES)
        while True:
            following = _read_full(source, CHUNK_BYTES + TAG_BYTES)
            yield cipher.decrypt(_nonce(number, last=not following), chunk, key.encode())
            if not following:
                return
            chunk, number = following, number + 1


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(NONCE_BYTES - 1, "big") + (b"\x01" if last else b"\x00")


def _read_full(source: Readable, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := source.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
