"""From the bytes of a text file to UTF-8: which encoding, by what evidence, and what the file is if it is no text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from worker.engine.errors import TableProblem

_CHUNK = 1 << 20
_SAMPLE = 1 << 18
_AS_CSV = "Open it in the program it came from, save it as CSV (UTF-8) and upload that."
_BY_FIRST_BYTES: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"SQLite format 3", "an SQLite database"),
    (b"{\\rtf", "a text document (RTF)"),
    (b"BZh", "packed with bzip2"),
    (b"\xfd7zXZ", "packed with xz"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd"),
    (b"7z\xbc\xaf", "packed with 7z"),
    (b"Rar!", "packed with RAR"),
    (b"FEA1", "a Feather file of version 1"),
)
_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_OTHERS = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "mac_roman", "cp850"),
)
_LONG_RUN = re.compile(rb"[\x80-\xff]{3,}")


@dataclass(frozen=True)
class Text:
    """A file as UTF-8 text.

    Attributes:
        path: the file itself, or a copy in UTF-8 with LF at the end of lines.
        encoding: what it was read as.
        notes: what was decided, with the evidence.
        quotes: how often the character ``"`` occurs.
        line_end: bytes that end a line (1 or 2); a mark at the start is ``mark`` bytes long.
    """

    path: Path
    encoding: str
    notes: list[dict[str, Any]] = field(default_factory=list)
    quotes: int = 0
    line_end: int = 1
    mark: int = 0


@dataclass
class _Scan:
    """Counts over a file in UTF-8, or where it is not."""

    pairs: int = 0
    feeds: int = 0
    returns: int = 0
    quotes: int = 0
    zero_at: int | None = None
    broken_at: int | None = None

    def count(self, chunk: bytes, last: bytes) -> None:
        """Count line ends and quotes of a piece; ``last`` is the byte before it."""
        letters = np.frombuffer(chunk, dtype=np.uint8)
        self.quotes += int(np.count_nonzero(letters == ord('"')))
        feeds, returns = int(np.count_nonzero(letters == ord("\n"))), chunk.count(b"\r")
        pairs = (chunk.count(b"\r\n") if returns else 0) + (last == b"\r" and chunk[:1] == b"\n")
        self.pairs += pairs
        self.feeds += feeds - pairs
        self.returns += returns - pairs

    @property
    def mixed(self) -> bool:
        return sum(1 for count in (self.pairs, self.feeds, self.returns) if count) > 1


def check_text(path: Path, folder: Path, asked: Mapping[str, Any]) -> Text:
    """The file as UTF-8 text, copied into ``folder`` where its encoding or its line endings have to be changed.

    Raises TableProblem naming what the file is if it is no text, or the byte that does not belong to its encoding.
    """
    with path.open("rb") as file:
        first = file.read(_SAMPLE)
    _check_kind(first)
    wanted = _canonical(asked.get("encoding"))
    encoding = wanted or _by_mark(first)
    notes: list[dict[str, Any]] = []
    scan = _Scan()
    if encoding in (None, "utf-8"):
        scan = _scan(path)
        if scan.zero_at is None and scan.broken_at is None:
            return _in_utf8(path, folder, scan, 3 if first.startswith(codecs.BOM_UTF8) else 0)
        encoding, notes = _without_mark(path, scan, wanted)
    copy = _transcode(path, folder / "text.csv", encoding or "utf-8")
    after = _scan(copy)
    return Text(copy, encoding or "utf-8", notes + _mixed_note(scan), after.quotes)


def _check_kind(first: bytes) -> None:
    if not first.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableProblem("The file is empty.", next_step="Upload a table with a header and at least one row.")
    for signature, kind in _BY_FIRST_BYTES:
        if first.startswith(signature):
            raise TableProblem(f"The file is not a table that can be read: it is {kind}.", next_step=_AS_CSV)
    start = first.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<table")):
        sign_in = b'type="password"' in start or b"type='password'" in start or b"type=password" in start
        what = "a sign-in page" if sign_in else "a web page or an XML document"
        step = "Sign in where the table lies, download the table itself" if sign_in else "Download the table itself"
        raise TableProblem(f"The file is not a table: it is {what}.", next_step=f"{step} and upload that.")
    if start.startswith((b"{", b"[{")) and b'":' in start[:2000]:
        raise TableProblem("The file is not a table: it is JSON.", next_step=_AS_CSV)


def _canonical(asked: object) -> str | None:
    if not isinstance(asked, str) or not asked:
        return None
    name = codecs.lookup(asked).name
    return {"utf-8-sig": "utf-8", "iso8859-1": "latin-1"}.get(name, name)


def _by_mark(first: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if first.startswith(mark):
            return encoding
    head = first[:4096]
    if len(head) >= 8:
        for odd, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            share = head[odd::2].count(0) / len(head[odd::2])
            if share > 0.4 and head[1 - odd :: 2].count(0) == 0:
                return encoding
    return None


def _scan(path: Path) -> _Scan:
    decoder = codecs.getincrementaldecoder("utf-8")()
    found, position, last = _Scan(), 0, b""
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                found.broken_at = position - pending + error.start
                return found
            if (at := chunk.find(0)) >= 0:
                found.zero_at = position + at
                return found
            found.count(chunk, last)
            position, last = position + len(chunk), chunk[-1:]
            if not chunk:
                return found


def _in_utf8(path: Path, folder: Path, scan: _Scan, mark: int) -> Text:
    if scan.mixed or scan.returns:
        return Text(_transcode(path, folder / "text.csv", "utf-8"), "utf-8", _mixed_note(scan), scan.quotes)
    return Text(path, "utf-8", [], scan.quotes, 2 if scan.pairs else 1, mark)


def _mixed_note(scan: _Scan) -> list[dict[str, Any]]:
    return [{"message": "The line endings are mixed; all were read as ends of rows."}] if scan.mixed else []


def _transcode(path: Path, target: Path, encoding: str) -> Path:
    source_encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        with (
            path.open(encoding=source_encoding, newline=None) as source,
            target.open("w", encoding="utf-8", newline="\n") as out,
        ):
            while text := source.read(_CHUNK):
                if "\0" in text:
                    raise TableProblem(f"The file is not text in {encoding}: it holds zero bytes.", next_step=_AS_CSV)
                out.write(text)
    except UnicodeError as error:
        raise TableProblem(
            f"The file is not text in {encoding}.",
            next_step="Choose another encoding in the recipe, or save it as UTF-8 and upload it again.",
        ) from error
    return target


def _without_mark(path: Path, scan: _Scan, wanted: str | None) -> tuple[str, list[dict[str, Any]]]:
    """The encoding of a file that is not UTF-8, or a refusal."""
    if scan.zero_at is not None:
        raise TableProblem(f"The file is not text: byte {scan.zero_at} is zero.", next_step=_AS_CSV)
    sample = _sample_around(path, scan.broken_at or 0)
    if wanted == "utf-8" or _nearly_utf8(sample):
        raise TableProblem(
            f"The file is not UTF-8 text: it breaks off at byte {scan.broken_at}.",
            next_step="Save it as UTF-8 (in Excel: CSV UTF-8) and upload it again, or choose its encoding in the recipe.",
        )
    encoding = _guess(sample)
    return encoding, [{"field": "encoding", "message": _evidence(sample, encoding)}]


def _sample_around(path: Path, place: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, place - 1000))
        return file.read(_SAMPLE)


def _nearly_utf8(sample: bytes) -> bool:
    """Whether most characters beyond ASCII are good UTF-8, so that a few broken ones are damage and not an encoding."""
    broken = sample.decode("utf-8", errors="replace").count("\ufffd")
    good = sum(1 for letter in sample.decode("utf-8", errors="ignore") if ord(letter) > 127)
    return good > 10 * broken


def _guess(sample: bytes) -> str:
    """Western where high bytes stand alone among letters, as they do in its languages; else what the statistics say."""
    high = sum(byte > 127 for byte in sample)
    in_runs = sum(len(run) for run in _LONG_RUN.findall(sample))
    if in_runs * 2 < high:
        return "cp1252" if any(0x80 <= byte < 0xA0 for byte in sample) and _decodes(sample, "cp1252") else "latin-1"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_OTHERS)).best()
    return "latin-1" if best is None else codecs.lookup(best.encoding).name


def _decodes(sample: bytes, encoding: str) -> bool:
    try:
        sample.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _evidence(sample: bytes, encoding: str) -> str:
    said = (
        f"The file is not UTF-8; it was read as {encoding}. So its words read: {', '.join(_words(sample, encoding))}."
    )
    others = [(name, _words(sample, name)) for name in ("cp1250", "cp1251", "mac_roman", "latin-1") if name != encoding]
    shown = next((f" As {name} they would read: {', '.join(found)}." for name, found in others if found), "")
    return said + shown + " Choose another encoding if these are wrong."


def _words(sample: bytes, encoding: str) -> list[str]:
    text = sample.decode(encoding, errors="ignore")
    found = re.findall(r"[^\W\d_]*[^\W\d_\x00-\x7f][^\W\d_]*", text)
    return list(dict.fromkeys(word[:30] for word in found))[:4]
