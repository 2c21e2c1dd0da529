"""The text below a CSV: is it text at all, what separates its columns, where is its first broken row."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worker.engine.errors import TableProblem

_CHUNK = 1 << 20
_SAMPLE_BYTES = 1 << 18
_SAMPLE_RECORDS = 100
_DELIMITERS = (",", ";", "\t", "|")
_LONGEST_CELL = 16_000_000
_AS_CSV = "Open it in the program it came from, save it as CSV (UTF-8) and upload that."
_BY_FIRST_BYTES: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a workbook or zip archive", _AS_CSV),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", _AS_CSV),
    (b"\x1f\x8b", "compressed with gzip", "Unpack it and upload the CSV inside."),
    (b"PAR1", "a Parquet file", _AS_CSV),
    (b"%PDF", "a PDF document", _AS_CSV),
    (b"\xff\xfe", "text in UTF-16", "Save it as UTF-8 and upload it again."),
    (b"\xfe\xff", "text in UTF-16", "Save it as UTF-8 and upload it again."),
)


@dataclass(frozen=True)
class Dialect:
    """What separates the columns and what encloses a cell; an empty ``quote`` means that nothing does."""

    delimiter: str
    quote: str


@dataclass(frozen=True)
class Text:
    """A file that is UTF-8 text; ``path`` is a copy with equal line endings where they were mixed."""

    path: Path
    mixed_line_endings: bool


def check_text(path: Path, folder: Path) -> Text:
    """Read the file once: refuse what is no UTF-8 text, even out mixed line endings into a copy in ``folder``.

    Raises TableProblem with the byte position where the text breaks off.
    """
    with path.open("rb") as file:
        first = file.read(512)
    _check_first_bytes(first)
    endings = _scan(path)
    mixed = sum(1 for count in endings if count) > 1 or endings[2] > 0
    return Text(_even_out(path, folder / "rows.csv"), sum(1 for c in endings if c) > 1) if mixed else Text(path, False)


def _check_first_bytes(first: bytes) -> None:
    if not first.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableProblem("The file is empty.", next_step="Upload a table with a header and at least one row.")
    for signature, kind, next_step in _BY_FIRST_BYTES:
        if first.startswith(signature):
            raise TableProblem(f"The file is not a CSV: it is {kind}.", next_step=next_step)
    start = first.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise TableProblem(
            "The file is not a CSV: it is a web page.", next_step="Download the table itself and upload that."
        )


def _scan(path: Path) -> tuple[int, int, int]:
    """Counts of CR LF, lone LF and lone CR. Raises TableProblem at the first byte that is not UTF-8 text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, pairs, feeds, returns, last = 0, 0, 0, 0, b""
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            pending = len(decoder.getstate()[0])
            _decode(decoder, chunk, position - pending)
            if b"\0" in chunk:
                raise TableProblem(
                    f"The file is not text: byte {position + chunk.index(0)} is zero.", next_step=_AS_CSV
                )
            pairs += chunk.count(b"\r\n") + (last == b"\r" and chunk[:1] == b"\n")
            feeds += chunk.count(b"\n")
            returns += chunk.count(b"\r")
            position, last = position + len(chunk), chunk[-1:]
            if not chunk:
                return pairs, feeds - pairs, returns - pairs


def _decode(decoder: codecs.IncrementalDecoder, chunk: bytes, start: int) -> None:
    try:
        decoder.decode(chunk, final=not chunk)
    except UnicodeDecodeError as error:
        raise TableProblem(
            f"The file is not UTF-8 text: it breaks off at byte {start + error.start}.",
            next_step="Save it as UTF-8 (in Excel: CSV UTF-8) and upload it again.",
        ) from error


def _even_out(path: Path, target: Path) -> Path:
    with (
        path.open(encoding="utf-8-sig", newline=None) as source,
        target.open("w", encoding="utf-8", newline="\n") as out,
    ):
        while text := source.read(_CHUNK):
            out.write(text)
    return target


def find_dialect(path: Path, asked: Mapping[str, Any]) -> Dialect:
    """As asked; else the delimiter under which most of the first rows have as many cells as the first, above one."""
    quote = str(asked.get("quote", '"'))
    if asked.get("delimiter"):
        return Dialect(str(asked["delimiter"]), quote)
    with path.open(encoding="utf-8-sig", newline="") as file:
        sample = file.read(_SAMPLE_BYTES)
    best, best_score = ",", (0.0, 1)
    for delimiter in _DELIMITERS:
        widths = _widths(sample, Dialect(delimiter, quote))
        if widths and widths[0] > 1:
            score = (sum(width in (widths[0], widths[0] + 1) for width in widths) / len(widths), widths[0])
            best, best_score = (delimiter, score) if score > best_score else (best, best_score)
    return Dialect(best, quote)


def _widths(sample: str, dialect: Dialect) -> list[int]:
    widths: list[int] = []
    try:
        for record in _records(io.StringIO(sample, newline=""), dialect):
            widths += [len(record)] if record else []
            if len(widths) == _SAMPLE_RECORDS:
                break
    except csv.Error:
        pass
    return widths[:-1] if 1 < len(widths) < _SAMPLE_RECORDS and len(sample) >= _SAMPLE_BYTES else widths


def _records(lines: Any, dialect: Dialect) -> Iterator[list[str]]:
    csv.field_size_limit(_LONGEST_CELL)
    if not dialect.quote:
        return csv.reader(lines, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE, strict=True)
    return csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True)


def first_record(path: Path, dialect: Dialect) -> list[str]:
    """The cells of the first row that is not blank."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            for record in _records(file, dialect):
                if record:
                    return record
        except csv.Error as error:
            raise TableProblem(
                "The first row cannot be read: a quote is opened and not closed, or stands inside a cell.",
                next_step="Correct the quotes in the first row, or say which character encloses cells.",
                row=0,
            ) from error
    raise TableProblem("The file is empty.", next_step="Upload a table with a header and at least one row.")


def count_rows(path: Path, dialect: Dialect, width: int, most: int) -> int:
    """Rows that are not blank, the first among them; stops one above ``most``.

    A second reader beside the database, which drops all that follows a quote that is never closed without a word
    (duckdb 2.0.1). Raises TableProblem at the first row of another width than the first, or with broken quotes.
    """
    rows = 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            for record in _records(file, dialect):
                rows += bool(record)
                if record and len(record) != width and not (len(record) == width + 1 and not record[-1]):
                    raise _ragged(rows - 1, len(record), width)
                if rows > most:
                    break
        except csv.Error as error:
            raise TableProblem(
                f"Row {rows} has a quote that is opened and not closed, or one inside a cell.",
                next_step="Correct the quotes in that row.",
                row=rows,
            ) from error
    return rows


def _ragged(row: int, cells: int, width: int) -> TableProblem:
    return TableProblem(
        f"Row {row} has {cells} cells, but the header has {width}.",
        next_step="Correct that row, or enclose cells that hold the delimiter in quotes.",
        row=row,
    )
