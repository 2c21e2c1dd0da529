"""Tables of results as CSV: the same rows and digits as JSON, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A text cell that begins so could run as a formula; the last four are the full-width forms."""

LINES_AT_ONCE = 500


def cell(value: Any) -> str:
    """One cell. Numbers are written as in JSON and stay numbers; text that could be a formula gets a quote in front."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float | dict | list):
        return json.dumps(value, allow_nan=False)
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def csv_lines(columns: list[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The table in pieces of text, header first."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([cell(column) for column in columns])
    for number, row in enumerate(rows, 1):
        writer.writerow([cell(row[column]) for column in columns])
        if number % LINES_AT_ONCE == 0:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def csv_response(name: str, columns: list[str], rows: Iterable[Mapping[str, Any]]) -> StreamingResponse:
    """The table as a download; ``name`` is made of our own words and ids."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(csv_lines(columns, rows), media_type="text/csv; charset=utf-8", headers=headers)
