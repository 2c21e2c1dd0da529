"""Text tables: CSV and its relatives with another delimiter, in any encoding.

What was detected (encoding, delimiter, decimal sign, header, lines around the table) is recorded with its evidence and can be
changed. Nothing is repaired silently: a ragged row or a broken quote is refused with the place and the next step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from worker.engine.datasets.assemble import RawTable, assemble, check_size
from worker.engine.datasets.cells import parse_number
from worker.engine.datasets.counted import counted
from worker.engine.datasets.formats.dialect import find_decimal, find_dialect
from worker.engine.datasets.formats.encodings import check_text
from worker.engine.datasets.formats.frame import TOTAL_WORDS, Frame, find_frame, is_total
from worker.engine.datasets.formats.text_table import Rows, load_rows
from worker.engine.datasets.reading import require_reading
from worker.engine.datasets.table import Table

if TYPE_CHECKING:
    from worker.engine.datasets.formats.base import ReadLimits

_SHOWN = 60
_SAMPLE_TEXTS = 5_000
_MOST_SUMMED = 100_000


@dataclass(frozen=True)
class Csv:
    """CSV, the format of spreadsheets' text exports."""

    key: str = "csv"
    title: str = "CSV"
    help: str = (
        "Text with comma, semicolon, tab, bar or another character between the columns, in UTF-8 or another encoding, "
        "with or without a header."
    )

    def recognises(self, name: str, first_bytes: bytes) -> bool:
        """Always: this is the last format asked, and what is no text is refused on reading, in words."""
        return bool(name or first_bytes)

    def read(self, path: Path, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
        """The table and the reading: delimiter, quote, header, types, missing codes, notes. Raises TableProblem."""
        require_reading(asked)
        with TemporaryDirectory(dir=path.parent, prefix="reading-") as folder:
            text = check_text(path, Path(folder), asked)
            dialect, records = find_dialect(text.path, asked)
            decimal = find_decimal(records, asked)
            frame = find_frame(records, decimal, asked)
            check_size(1, frame.width, limits)
            rows = load_rows(text, dialect, frame, asked, limits, Path(folder))
        notes = text.notes + _decimal_note(decimal, asked) + frame.notes
        reading = {
            "format": self.key,
            "encoding": text.encoding,
            "delimiter": dialect.delimiter,
            "quote": dialect.quote,
        }
        raw = from_rows(rows, frame, asked, reading, notes)
        raw.decimal = decimal
        return assemble(raw, asked, limits)


CSV = Csv()


def _decimal_note(decimal: str, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    if decimal == "," and "decimal" not in asked:
        message = "Numbers were read with a decimal comma, because none has a decimal point."
        return [{"field": "decimal", "message": message}]
    return []


def from_rows(
    rows: Rows, frame: Frame, asked: Mapping[str, Any], reading: dict[str, Any], notes: list[dict[str, Any]]
) -> RawTable:
    """The rows below the header as a raw table; rows at the end that are no part of it are left out and noted."""
    columns = [cells.slice(frame.header_rows) for cells in rows.columns]
    rows.columns = []
    count = max(rows.count - frame.header_rows, 0)
    footer = int(asked["footer_rows"]) if "footer_rows" in asked else int(_ends_in_total(columns, count))
    if footer and count > footer:
        below = [" ".join(filter(None, row))[:_SHOWN] for row in _last_rows(columns, count, footer)]
        if "footer_rows" not in asked:
            message = f"The last row adds up the others and was left out: {below[0]}. Say footer_rows 0 to keep it."
            notes.append({"field": "footer_rows", "message": message})
        count -= footer
        columns = [cells.slice(0, count) for cells in columns]
    if rows.footer:
        shown = "; ".join(" ".join(filter(None, row))[:_SHOWN] for row in rows.footer[:3])
        notes.append({"message": f"{counted(len(rows.footer), 'line')} below the table left out: {shown}."})
    if rows.ragged_left_out:
        places = ", ".join(str(row) for row in rows.ragged_left_out[:5])
        more = " and others" if len(rows.ragged_left_out) > 5 else ""
        message = f"{counted(len(rows.ragged_left_out), 'row')} of another width left out, as asked: {places}{more}."
        notes.append({"field": "ragged_rows", "message": message})
    known = {
        "header": frame.header_rows > 0,
        "header_rows": frame.header_rows,
        "skip_rows": frame.skip_rows,
        "footer_rows": footer,
    }
    if asked.get("ragged_rows"):
        known["ragged_rows"] = asked["ragged_rows"]
    return RawTable(frame.names, columns, count, reading | known, named=frame.header_rows > 0, notes=notes)


def _last_rows(columns: list[Any], count: int, rows: int) -> list[list[str]]:
    last = [cells.slice(count - rows, rows).to_pylist() for cells in columns]
    return [[cells[place] for cells in last] for place in range(rows)]


def _ends_in_total(columns: list[Any], count: int) -> bool:
    if count < 3 or len(columns) < 2:
        return False
    last = _last_rows(columns, count, 1)[0]
    if not any(text.strip().rstrip(":").casefold() in TOTAL_WORDS for text in last):
        return False
    others: frozenset[str] = frozenset()
    for cells, text in zip(columns, last, strict=True):
        if text.strip().rstrip(":").casefold() in TOTAL_WORDS:
            seen = cells.slice(0, min(count - 1, _SAMPLE_TEXTS)).to_pylist()
            others |= {text.strip().rstrip(":").casefold()} & {cell.strip().casefold() for cell in seen}
    return is_total(last, others, adds_up=_adds_up(columns, last, count))


def _adds_up(columns: list[Any], last: list[str], count: int) -> bool:
    """Whether the numbers of the last row are the sums of those above, in every column that has numbers there."""
    sums = []
    for cells, text in zip(columns, last, strict=True):
        number = parse_number(text, ".")
        if number is not None and count <= _MOST_SUMMED:
            above = [parse_number(cell, ".") for cell in cells.slice(0, count - 1).to_pylist()]
            sums.append(abs(sum(one.value for one in above if one) - number.value) <= 1e-6 * abs(number.value))
    return bool(sums) and all(sums)
