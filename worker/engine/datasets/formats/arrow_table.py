"""Columns that come with types of their own (Parquet, Arrow): as numbers or texts, and what has no place in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.assemble import RawTable
from worker.engine.datasets.counted import counted
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT = 2**53
_EXACT_DIGITS = 15


def raw_table(
    names: Iterable[str], column: Callable[[int], pa.ChunkedArray], rows: int, reading: dict[str, Any]
) -> RawTable:
    """A raw table from typed columns, each asked for once. Raises TableProblem where none can be used."""
    kept, columns, notes = [], [], []
    for place, name in enumerate(names):
        whole = column(place)
        whole.validate(full=True)
        if len(whole) != rows:
            raise ValueError("a column of another length")
        cells, remark = _plain(whole)
        if remark:
            notes.append({"column": "".join(c if c.isprintable() else " " for c in name)[:200], "message": remark})
        if cells is not None:
            kept.append(name)
            columns.append(cells)
    if not kept:
        raise TableProblem(
            "No column of the file holds plain values.", next_step="Unnest the columns and upload the table again."
        )
    return RawTable(kept, columns, rows, reading, notes=notes)


def _plain(cells: pa.ChunkedArray) -> tuple[pa.ChunkedArray | None, str | None]:
    """The column as float64 or texts, and a remark; None where its cells hold several values or none that can be read."""
    import pyarrow as pa
    from pyarrow import types

    kind = cells.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa.chunked_array([chunk.storage for chunk in cells.chunks], kind.storage_type))
    if types.is_dictionary(kind):
        return _dictionary(cells)
    if (
        types.is_nested(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return None, f"Set aside: its cells hold {kind}, not single values."
    if types.is_integer(kind):
        return _integers(cells)
    if types.is_floating(kind):
        return _floats(cells)
    if types.is_decimal(kind):
        remark = "Its decimals were rounded to 15 digits." if kind.precision > _EXACT_DIGITS else None
        return cells.cast(pa.float64()), remark
    try:
        return cells.cast(pa.string()), None
    except pa.ArrowException:
        return None, f"Set aside: values of the type {kind} cannot be read."


def _dictionary(cells: pa.ChunkedArray) -> tuple[pa.ChunkedArray | None, str | None]:
    import pyarrow as pa
    from pyarrow import types

    if types.is_string(cells.type.value_type) or types.is_large_string(cells.type.value_type):
        return cells.cast(pa.string()).dictionary_encode(), None
    return _plain(cells.cast(cells.type.value_type))


def _integers(cells: pa.ChunkedArray) -> tuple[pa.ChunkedArray, str | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(cells).as_py()
    if max(abs(ends["min"] or 0), abs(ends["max"] or 0)) >= _EXACT:
        return cells.cast(pa.string()), "Kept as text: its whole numbers are too long to stay exact."
    return cells.cast(pa.float64()), None


def _floats(cells: pa.ChunkedArray) -> tuple[pa.ChunkedArray, str | None]:
    import pyarrow as pa

    numbers = np.array(cells.cast(pa.float64()).fill_null(np.nan).to_numpy())
    infinite = np.isinf(numbers)
    if not infinite.any():
        return pa.chunked_array([numbers]), None
    numbers[infinite] = np.nan
    return pa.chunked_array([numbers]), f"{counted(int(infinite.sum()), 'infinite cell')} taken as missing."
