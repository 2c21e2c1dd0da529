"""A small table as an upload, its roles, and a question about it."""

from __future__ import annotations

import csv
import io
from typing import Any

from tests.builders import make_table
from worker.engine.datasets.table import Table


def csv_of(table: Table) -> bytes:
    """The table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.name for column in table.columns])
    columns = [column.values_as_text() for column in table.columns]
    writer.writerows([["" if cell is None else cell for cell in row] for row in zip(*columns, strict=True)])
    return text.getvalue().encode()


CSV = csv_of(make_table(400))
ROLES: dict[str, Any] = {
    "target": {"column": "income", "favourable": ">50K"},
    "protected": ["sex", "race"],
    "features": ["age", "hours", "job"],
}


def question(dataset_id: str, /, **changes: Any) -> dict[str, Any]:
    """Two epsilons, two seeds, a little training."""
    return {
        "dataset": dataset_id,
        "methods": ["dp-sgd"],
        "epsilons": [1.0, 8.0],
        "seeds": 2,
        "network": {"kind": "logistic"},
        "training": {"epochs": 1, "batch_size": 64},
    } | changes
