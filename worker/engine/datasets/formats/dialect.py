"""What separates the columns of a text table, what encloses a cell, and which sign stands before the decimals."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SAMPLE_CHARACTERS = 1 << 18
_SAMPLE_RECORDS = 200
_USUAL = (",", ";", "\t", "|")
_UNUSUAL = ("^", "~", ":", "\x1f", "\x01", " ")
LONGEST_CELL = 16_000_000
_COMMA_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,3}(?:[. '][0-9]{3})+|[0-9]+),[0-9]+")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_POINT_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)\.[0-9]+")


@dataclass(frozen=True)
class Dialect:
    """What separates the columns and what encloses a cell; an empty ``quote`` means that nothing does."""

    delimiter: str
    quote: str


@dataclass(frozen=True)
class Record:
    """One row of a text table; ``line`` is the number of physical lines before it."""

    line: int
    cells: list[str]


def records_of(lines: Any, dialect: Dialect) -> Iterator[Record]:
    """The rows that are not blank. Raises csv.Error where quotes do not fit."""
    csv.field_size_limit(LONGEST_CELL)
    if dialect.quote:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True)
    else:
        reader = csv.reader(lines, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE, strict=True)
    line = 0
    for cells in reader:
        if cells:
            yield Record(line, cells)
        line = reader.line_num


def find_dialect(path: Path, asked: Mapping[str, Any]) -> tuple[Dialect, list[Record]]:
    """The dialect as asked, else the one under which the most of the first rows are equally wide; and those rows."""
    quote = str(asked.get("quote", '"'))
    with path.open(encoding="utf-8-sig", newline="") as file:
        sample = file.read(_SAMPLE_CHARACTERS)
    whole = len(sample) < _SAMPLE_CHARACTERS
    if asked.get("delimiter"):
        dialect = Dialect(str(asked["delimiter"]), quote)
        return dialect, _sample(sample, dialect, whole)
    for candidates in (_USUAL, _UNUSUAL):
        tried = [
            (Dialect(delimiter, quote), _sample(sample, Dialect(delimiter, quote), whole)) for delimiter in candidates
        ]
        best = max(tried, key=lambda one: _score(one[1]))
        if _score(best[1]) > 0.5:
            return best
    dialect = Dialect(",", quote)
    return dialect, _sample(sample, dialect, whole)


def _sample(text: str, dialect: Dialect, whole: bool) -> list[Record]:
    found: list[Record] = []
    try:
        for record in records_of(io.StringIO(text, newline=""), dialect):
            found.append(record)
            if len(found) == _SAMPLE_RECORDS:
                return found
    except csv.Error:
        pass
    return found if whole or len(found) < 2 else found[:-1]  # the last one may be cut off


def _score(records: list[Record]) -> float:
    """Share of the rows that have the commonest width, times how much that width says; 0 for a single column."""
    width, count = common_width(records)
    return 0.0 if width < 2 else count / len(records) * math.log2(1 + width)


def common_width(records: list[Record]) -> tuple[int, int]:
    """The commonest number of cells, and how many rows have it; of equals the larger."""
    counts = Counter(len(record.cells) for record in records)
    return max(counts.items(), key=lambda pair: (pair[1], pair[0]), default=(0, 0))


def find_decimal(records: list[Record], asked: Mapping[str, Any]) -> str:
    """``,`` where numbers can only be read with a decimal comma and none has a decimal point; else ``.``."""
    if asked.get("decimal"):
        return str(asked["decimal"])
    commas = points = 0
    for record in records:
        for cell in record.cells:
            text = cell.strip()
            commas += bool(_COMMA_DECIMAL.fullmatch(text)) and not _GROUPED.fullmatch(text)
            points += bool(_POINT_DECIMAL.fullmatch(text))
    return "," if commas and not points else "."
