"""Where in the rows of a text table the table itself stands: lines before it, its header, rows after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from worker.engine.datasets.cells import parse_number
from worker.engine.datasets.counted import counted
from worker.engine.datasets.formats.dialect import Record, common_width
from worker.engine.errors import TableProblem

_SHOWN = 60
TOTAL_WORDS = frozenset(
    ["total", "totals", "grand total", "sum", "summe", "gesamt", "insgesamt", "totaal", "somme", "totale"]
)


@dataclass(frozen=True)
class Frame:
    """What stands where.

    Attributes:
        skip_lines: physical lines before the first row of the table.
        skip_rows: rows that are not blank among those.
        header_rows: 0, 1 or 2.
        names: one a column; empty texts where there is no name.
        width: cells of a row.
        extra_cell: rows end with one empty cell too many.
        notes: what was decided and why.
    """

    skip_lines: int
    skip_rows: int
    header_rows: int
    names: list[str]
    width: int
    extra_cell: bool = False
    notes: list[dict[str, Any]] = field(default_factory=list)


def find_frame(records: list[Record], decimal: str, asked: Mapping[str, Any]) -> Frame:
    """The frame as asked; what was not asked is judged from the first rows. Raises TableProblem if there are none."""
    if not records:
        raise TableProblem("The file is empty.", next_step="Upload a table with a header and at least one row.")
    width, extra = _width(records)
    notes: list[dict[str, Any]] = []
    skip = int(asked["skip_rows"]) if "skip_rows" in asked else _first_row(records, width)
    if skip >= len(records):
        raise TableProblem(
            f"The recipe leaves out {skip} rows at the top, and no more were found.",
            next_step="Give a smaller skip_rows.",
        )
    if skip and "skip_rows" not in asked:
        shown = "; ".join(" ".join(filter(None, record.cells))[:_SHOWN] for record in records[:3][:skip])
        notes.append({"field": "skip_rows", "message": f"{counted(skip, 'row')} above the header left out: {shown}."})
    table = records[skip:]
    if len(table[0].cells) != width and "skip_rows" in asked:
        width = len(table[0].cells)
    header_rows, why = _header_rows(table, decimal, asked)
    notes += [{"field": "header", "message": why}] if why else []
    names = _names(table, header_rows, width)
    if header_rows and len(table[0].cells) == width - 1 and not extra:
        names = ["", *table[0].cells]
        notes.append(
            {
                "field": "header",
                "message": "The header has one name too few; the first column was taken as the nameless one.",
            }
        )
    if extra:
        notes.append(
            {"message": "Every row ends with a delimiter that the header lacks; the empty last cell was dropped."}
        )
    return Frame(table[0].line, skip, header_rows, names, width, extra, notes)


def _width(records: list[Record]) -> tuple[int, bool]:
    """Cells of a row, and whether each row has an empty one too many at its end, which the header lacks."""
    width, _ = common_width(records)
    rows = [record.cells for record in records if len(record.cells) == width]
    if width > 1 and all(not cells[-1].strip() for cells in rows):
        place = next((place for place, record in enumerate(records) if len(record.cells) == width), 0)
        if place and len(records[place - 1].cells) == width - 1 and records[place - 1].cells[-1].strip():
            return width - 1, True
    return width, False


def _first_row(records: list[Record], width: int) -> int:
    """Rows above the table: those that fill less than two thirds of its width, if a wide one follows."""
    for place, record in enumerate(records[:50]):
        filled = sum(bool(cell.strip()) for cell in record.cells)
        if len(record.cells) >= width - 1 and 3 * filled >= 2 * width:
            above = records[place - 1].cells if place else []
            names = [cell for cell in above if cell.strip()]
            grouped = len(above) == width and len(names) > 1 and not any(parse_number(cell, ".") for cell in names)
            return place - 1 if grouped and 2 * len(names) >= width // 2 else place
    return 0


def _header_rows(table: list[Record], decimal: str, asked: Mapping[str, Any]) -> tuple[int, str | None]:
    if asked.get("header") is not None:
        return (max(1, int(asked.get("header_rows", 1))) if asked["header"] else 0), None
    if "header_rows" in asked:
        return int(asked["header_rows"]), None
    body = [record.cells for record in table[1:] if len(record.cells) == len(table[0].cells)]
    if not body:
        return 1, None
    if _looks_like_data(table[0].cells, body, decimal):
        return 0, (
            "The first row looks like the others, so it was read as data and the columns got numbers for names. If it is a "
            "header, say so in the recipe."
        )
    if len(body) > 1 and _second_header(table[0].cells, body, decimal):
        return 2, "The first two rows were both read as header; each name joins the two."
    return 1, None


def _looks_like_data(first: list[str], body: list[list[str]], decimal: str) -> bool:
    """Whether the first row holds values: numbers above numbers, texts that occur again; years in a row are names."""
    for_data = for_names = 0
    numbers = [parse_number(cell, decimal) for cell in first]
    for place, cell in enumerate(first):
        column = [row[place].strip() for row in body]
        stated = [text for text in column if text]
        numeric = sum(parse_number(text, decimal) is not None for text in stated)
        if not cell.strip() or not stated:
            continue
        if numeric > 0.8 * len(stated):
            for_data, for_names = (for_data + 1, for_names) if numbers[place] is not None else (for_data, for_names + 1)
        elif len(set(stated)) <= max(2, len(stated) // 2):
            again = cell.strip() in column
            for_data, for_names = for_data + again, for_names + (not again)
    known = [number.value for number in numbers if number is not None]
    years = len(known) > 1 and all(1900 <= value <= 2100 for value in known) and sorted(set(known)) == known
    return for_data > for_names and not years


def _second_header(first: list[str], body: list[list[str]], decimal: str) -> bool:
    """Whether the second row names columns too: no number in either, and mostly numbers below."""
    second = body[0]
    if any(parse_number(cell, decimal) is not None for cell in (*first, *second)) or not all(c.strip() for c in second):
        return False
    below = body[1:]
    numeric = [
        sum(parse_number(row[place], decimal) is not None for row in below) > 0.8 * len(below)
        for place in range(len(first))
    ]
    return sum(numeric) >= max(1, len(first) // 2)


def _names(table: list[Record], header_rows: int, width: int) -> list[str]:
    if not header_rows:
        return [""] * width
    first = _fitted(table[0].cells, width)
    if header_rows == 1 or len(table) < 2:
        return first
    second, names, group = _fitted(table[1].cells, width), [], ""
    for upper, lower in zip(first, second, strict=True):
        group = upper.strip() or group
        names.append(f"{group} {lower.strip()}".strip())
    return names


def _fitted(cells: list[str], width: int) -> list[str]:
    return [*cells, *[""] * width][:width]


def is_total(cells: list[str], column_texts: frozenset[str], *, adds_up: bool) -> bool:
    """Whether a last row adds up the others: it says so where no other row does, and its numbers do or cells are empty."""
    said = [cell.strip().rstrip(":").casefold() for cell in cells]
    return any(word in TOTAL_WORDS and word not in column_texts for word in said) and (
        adds_up or any(not word for word in said)
    )
