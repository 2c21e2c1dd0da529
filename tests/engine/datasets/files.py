"""Small files of each kind, made by hand: workbooks, archives, Parquet and Arrow."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from worker.engine.catalogue import FORMATS
from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.profile import profile_table
from worker.engine.datasets.read import read_table

LIMITS = ReadLimits(rows=100_000, columns=300, memory_bytes=1_000_000_000, unpacked_bytes=30_000_000)

Sheet = Sequence[Sequence[object]]
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    "{}</Types>"
)
_RELS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
_REL = '<Relationship Id="rId{}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}" Target="{}"/>'
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"


class Error(str):
    """A cell that holds an error."""


class Day(int):
    """A cell that holds a date, as days since 1899-12-30."""


def workbook(sheets: Mapping[str, Sheet], hidden: Sequence[str] = ()) -> bytes:
    """An XLSX file of these sheets."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    listed, rels, types = "", "", ""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, name in enumerate(sheets, start=1):
            state = ' state="hidden"' if name in hidden else ""
            listed += f'<sheet name="{escape(name)}" sheetId="{number}"{state} r:id="rId{number}"/>'
            rels += _REL.format(number, "worksheet", f"worksheets/sheet{number}.xml")
            types += f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{_SHEET_TYPE}"/>'
        styles = (
            f'<styleSheet xmlns="{main}"><fonts><font/></fonts><fills><fill/></fills><borders><border/></borders>'
            '<cellStyleXfs><xf/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs>'
            "</styleSheet>"
        )
        rels += _REL.format(len(sheets) + 1, "styles", "styles.xml")
        office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        archive.writestr("[Content_Types].xml", _TYPES.format(types))
        archive.writestr("_rels/.rels", _RELS.format(_REL.format(1, "officeDocument", "xl/workbook.xml")))
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>'
        )
        archive.writestr("xl/_rels/workbook.xml.rels", _RELS.format(rels))
        archive.writestr("xl/styles.xml", styles)
        for number, rows in enumerate(sheets.values(), start=1):
            lines = "".join(_row(place, cells) for place, cells in enumerate(rows, start=1))
            data = f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
            archive.writestr(f"xl/worksheets/sheet{number}.xml", data)
    return out.getvalue()


def _row(number: int, cells: Sequence[object]) -> str:
    shown = "".join(_cell(f"{chr(65 + place)}{number}", cell) for place, cell in enumerate(cells) if cell is not None)
    return f'<row r="{number}">{shown}</row>'


def _cell(place: str, cell: object) -> str:
    if isinstance(cell, Error):
        return f'<c r="{place}" t="e"><v>{cell}</v></c>'
    if isinstance(cell, bool):
        return f'<c r="{place}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, Day):
        return f'<c r="{place}" s="1"><v>{int(cell)}</v></c>'
    if isinstance(cell, int | float):
        return f'<c r="{place}"><v>{cell!r}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(str(cell))}</t></is></c>'


def archive(members: Mapping[str, bytes]) -> bytes:
    """A zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return out.getvalue()


class Read:
    """A file that was read with the formats of the catalogue: table, reading and profile, and short ways into them."""

    def __init__(self, folder: Path, content: bytes | str, asked: Any = None, test: bytes | str | None = None) -> None:
        first, second = folder / "upload", None
        first.write_bytes(content.encode() if isinstance(content, str) else content)
        if test is not None:
            second = folder / "test"
            second.write_bytes(test.encode() if isinstance(test, str) else test)
        self.table, self.reading = read_table(first, second, asked or {}, LIMITS, FORMATS)
        self.profile = profile_table(self.table, self.reading)
        self.columns = {column["name"]: column for column in self.profile["columns"]}

    def cells(self, name: str) -> list[str | None]:
        return self.table.column(name).values_as_text()

    def notes(self, name: str | None = None) -> str:
        return " ".join(n["message"] for n in self.profile["notes"] if name is None or n.get("column") == name)

    def counts(self, name: str) -> dict[str, int]:
        return {entry["value"]: entry["count"] for entry in self.columns[name]["values"]}

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.table), len(self.table.names)
