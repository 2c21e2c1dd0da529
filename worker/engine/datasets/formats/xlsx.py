"""Workbooks: one sheet of an XLSX file, with its header found where it stands."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker.engine.datasets.assemble import assemble, check_size
from worker.engine.datasets.counted import counted
from worker.engine.datasets.formats.csv import from_rows
from worker.engine.datasets.formats.dialect import Record
from worker.engine.datasets.formats.frame import find_frame
from worker.engine.datasets.formats.text_table import Rows
from worker.engine.datasets.formats.unpacking import Budget, damage_told, open_archive
from worker.engine.datasets.reading import require_reading
from worker.engine.datasets.role_set import number_text
from worker.engine.datasets.table import Table
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

    from worker.engine.datasets.formats.base import ReadLimits

_SAMPLE_ROWS = 200
_CHUNK = 1 << 20
_ERROR_CELL = re.compile(rb"<(?:\w+:)?c (?=[^>]*\bt=\"e\")[^>]*?\br=\"([A-Z]{1,3}[0-9]{1,7})\"")
_INSIDE = (b"[Content_Types].xml", b"_rels/.rels", b"xl/", b"docProps/")


@dataclass(frozen=True)
class Xlsx:
    """XLSX workbooks, recognised by what lies in them, whatever their name."""

    key: str = "xlsx"
    title: str = "XLSX"
    help: str = "A workbook; the recipe says which sheet (sheet). Dates come as texts, cells with errors as missing."

    def recognises(self, name: str, first_bytes: bytes) -> bool:  # noqa: ARG002 - by content, not by name
        """A zip archive that begins with the parts of an Office document."""
        return first_bytes.startswith(b"PK\x03\x04") and any(part in first_bytes for part in _INSIDE)

    def read(self, path: Path, asked: Mapping[str, Any], limits: ReadLimits) -> tuple[Table, dict[str, Any]]:
        """The table of one sheet and the reading: sheet, header, types. Raises TableProblem."""
        from python_calamine import CalamineWorkbook

        require_reading(asked)
        errors = _inspect(path, limits)
        with _damage_told(), CalamineWorkbook.from_path(path) as workbook:
            sheet, notes = _choose(workbook, asked.get("sheet"))
            check_size(1, sheet.width, limits)
            check_size(max(sheet.height - 1, 1), 1, limits)
            lines = list(_lines(sheet))
        notes += _error_note(errors)
        records = [Record(place, cells) for place, cells in lines[:_SAMPLE_ROWS]]
        frame = find_frame(records, ".", asked)
        rows = _as_columns([cells for place, cells in lines if place >= frame.skip_lines], frame.width)
        raw = from_rows(rows, frame, asked, {"format": self.key, "sheet": sheet.name}, notes + frame.notes)
        return assemble(raw, asked, limits)


XLSX = Xlsx()


def _inspect(path: Path, limits: ReadLimits) -> list[str]:
    """Unpack everything once under the limits, keeping nothing but the places of cells with errors."""
    budget, errors = Budget(path.stat().st_size, limits), []
    with open_archive(path, limits) as archive:
        if not any(name.startswith("xl/workbook") for name in archive.namelist()):
            raise TableProblem(
                "The file is an Office document without sheets.", next_step="Upload the workbook or a CSV of it."
            )
        with damage_told("a workbook"):
            for entry in archive.infolist():
                with archive.open(entry) as source:
                    tail = b""
                    while chunk := source.read(_CHUNK):
                        budget.take(len(chunk))
                        if entry.filename.startswith("xl/worksheets/"):
                            found = _ERROR_CELL.findall(tail + chunk)
                            errors += [cell.decode("ascii") for cell in found]
                            tail = chunk[chunk.rfind(b"<") :]
    return errors


@contextmanager
def _damage_told() -> Iterator[None]:
    """As ``damage_told``, with the errors of calamine, which are kinds of none of Python's own."""
    from python_calamine import CalamineError

    with damage_told("a workbook"):
        try:
            yield
        except CalamineError as error:
            raise ValueError from error


def _error_note(errors: list[str]) -> list[dict[str, Any]]:
    if not errors:
        return []
    message = f"{counted(len(errors), 'cell')} with an error such as #N/A taken as missing, the first in {errors[0]}."
    return [{"message": message}]


def _choose(workbook: CalamineWorkbook, wanted: object) -> tuple[CalamineSheet, list[dict[str, Any]]]:
    """The sheet asked for, or the first visible one that holds a table; the others are named."""
    from python_calamine import SheetVisibleEnum

    names = workbook.sheet_names
    if wanted is not None:
        if wanted not in names:
            shown = ", ".join(name[:40] for name in names[:8])
            raise TableProblem(
                "The workbook has no sheet of the name that the recipe gives.", next_step=f"Use one of: {shown}."
            )
        return workbook.get_sheet_by_name(str(wanted)), []
    hidden = [sheet.name for sheet in workbook.sheets_metadata if sheet.visible != SheetVisibleEnum.Visible]
    visible = [name for name in names if name not in hidden]
    filled = [name for name in visible if workbook.get_sheet_by_name(name).height > 1]
    if not filled:
        raise TableProblem(
            "The workbook has no visible sheet with a header and rows.",
            next_step="Name a sheet in the recipe (sheet), or upload a workbook with a table.",
        )
    others = [name[:40] for name in visible if name != filled[0]] + [f"{name[:40]} (hidden)" for name in hidden]
    notes = []
    if others:
        message = f"The sheet {filled[0][:40]} was read. The workbook also has: {', '.join(others[:8])}."
        notes.append({"field": "sheet", "message": message})
    return workbook.get_sheet_by_name(filled[0]), notes


def _lines(sheet: CalamineSheet) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with its place in the sheet."""
    for place, cells in enumerate(sheet.iter_rows()):
        texts = [_text(cell) for cell in cells]
        if any(texts):
            yield place, texts


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float):
        return number_text(float(cell))
    if isinstance(cell, datetime.datetime):
        midnight = cell.time() == datetime.time()
        return cell.date().isoformat() if midnight else cell.isoformat(sep=" ")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)


def _as_columns(lines: list[list[str]], width: int) -> Rows:
    import pyarrow as pa

    columns = [pa.chunked_array([[cells[place] for cells in lines]], pa.string()) for place in range(width)]
    return Rows(columns, len(lines))
