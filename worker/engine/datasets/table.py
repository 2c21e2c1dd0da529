"""A table in memory: numbers as float64, texts as codes into a list of categories.

The row id is the position of the data row in the stored original, counted from 0; rows of a test file continue after
the first file's. It is unique and never changes: sampling coins and the split belong to it, so twins never share one.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal

import numpy as np

from worker.engine.datasets.role_set import number_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["number", "category"]
MISSING = -1
"""Code of a missing cell; a missing number is NaN."""


@dataclass(frozen=True)
class Column:
    """One column of n rows.

    Attributes:
        numbers: float64, shape (n,), NaN where missing; None for a category.
        codes: int32, shape (n,), positions in ``categories``, -1 where missing; None for a number.
        categories: the different texts in sorted order; empty for a number.
    """

    name: str
    kind: Kind
    numbers: NDArray[np.float64] | None = None
    codes: NDArray[np.int32] | None = None
    categories: tuple[str, ...] = ()

    def missing(self) -> NDArray[np.bool_]:
        """Bool, shape (n,): which cells are missing."""
        if self.numbers is not None:
            return np.asarray(np.isnan(self.numbers))
        return np.asarray(self.filled_codes() == MISSING)

    def filled_codes(self) -> NDArray[np.int32]:
        """The codes of a category column."""
        if self.codes is None:
            raise TypeError(f"Column {self.name} holds numbers.")
        return self.codes

    def as_category(self) -> Column:
        """The same column with its values as texts: a number that is whole prints without a decimal point."""
        if self.numbers is None:
            return self
        present = ~np.isnan(self.numbers)
        different, inverse = np.unique(self.numbers[present], return_inverse=True)
        codes = np.full(len(self.numbers), MISSING, dtype=np.int32)
        codes[present] = inverse.astype(np.int32)
        return Column(self.name, "category", codes=codes, categories=tuple(number_text(value) for value in different))

    def values_as_text(self) -> list[str | None]:
        """Every cell as text, None where missing. For small tables and single columns only."""
        column = self.as_category()
        return [column.categories[code] if code >= 0 else None for code in column.filled_codes().tolist()]

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Column:
        """The same column with these rows only."""
        numbers = None if self.numbers is None else self.numbers[rows]
        codes = None if self.codes is None else self.codes[rows]
        return Column(self.name, self.kind, numbers, codes, self.categories)


@dataclass(frozen=True)
class Table:
    """Columns over the same n rows.

    Attributes:
        row_ids: int64, shape (n,), unique.
        columns: in the order of the file; names are unique.
        from_test_file: bool, shape (n,): the row came from the test file.
    """

    row_ids: NDArray[np.int64]
    columns: tuple[Column, ...]
    from_test_file: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of this name. Raises KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Table:
        """The same table with these rows only; their ids stay."""
        columns = tuple(column.take(rows) for column in self.columns)
        return Table(self.row_ids[rows], columns, self.from_test_file[rows])


def write_table(table: Table, target: str | IO[bytes]) -> None:
    """The table as a Parquet file. Columns go by position, their names and categories by metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [pa.array(table.row_ids), pa.array(table.from_test_file)]
    arrays += [pa.array(c.numbers if c.numbers is not None else c.filled_codes()) for c in table.columns]
    names = ["row_id", "from_test_file", *(f"c{i}" for i in range(len(table.columns)))]
    about = [{"name": c.name, "kind": c.kind, "categories": c.categories} for c in table.columns]
    stored = pa.table(arrays, names=names).replace_schema_metadata({"columns": json.dumps(about)})
    codes = [f"c{i}" for i, column in enumerate(table.columns) if column.numbers is None]
    split = {f"c{i}": "BYTE_STREAM_SPLIT" for i, column in enumerate(table.columns) if column.numbers is not None}
    pq.write_table(
        stored,
        target,
        compression="zstd",
        compression_level=1,
        use_dictionary=codes,
        column_encoding=split or None,
        write_statistics=False,
    )


def to_bytes(table: Table) -> bytes:
    """As ``write_table``, in memory."""
    sink = io.BytesIO()
    write_table(table, sink)
    return sink.getvalue()


def from_bytes(data: bytes) -> Table:
    """The table that ``to_bytes`` wrote."""
    import pyarrow.parquet as pq

    stored = pq.read_table(io.BytesIO(data))
    columns = []
    for position, about in enumerate(json.loads(stored.schema.metadata[b"columns"])):
        values = stored.column(position + 2).to_numpy()
        if about["kind"] == "number":
            columns.append(Column(about["name"], "number", numbers=values))
        else:
            columns.append(Column(about["name"], "category", codes=values, categories=tuple(about["categories"])))
    return Table(stored.column(0).to_numpy(), tuple(columns), stored.column(1).to_numpy(zero_copy_only=False))
