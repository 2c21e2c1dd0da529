"""Logits of evaluation rows: what can be read off one, and the columnar file that keeps them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.results import StackResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALLEST_PROBABILITY = 1e-12
"""Losses are cut where the probability of the true class falls below this (METHODS.md 1.3)."""


@dataclass(frozen=True)
class LogitsTable:
    """Logits of one stack.

    Attributes:
        rows: int64, shape (m,), row ids of the evaluation rows.
        logits: by run id, float32, shape (m, outputs); a diverged run is absent.
    """

    rows: NDArray[np.int64]
    logits: Mapping[str, NDArray[np.float32]]

    @property
    def row_ids(self) -> NDArray[np.int64]:
        """The same as ``rows``, by the name that measuring knows."""
        return self.rows


def predictions(logits: NDArray[np.float32]) -> NDArray[np.int64]:
    """Predicted class of logits, shape (..., outputs). One output: class 1 where it is above 0. Ties go to the lower
    class."""
    if logits.shape[-1] == 1:
        return (logits[..., 0] > 0).astype(np.int64)
    return np.asarray(logits.argmax(-1), dtype=np.int64)


def log_probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Natural logarithm of each class's probability, shape (..., classes), computed stably in float64."""
    exact = logits.astype(np.float64)
    if exact.shape[-1] == 1:
        exact = np.concatenate([np.zeros_like(exact), exact], -1)
    top = exact - exact.max(-1, keepdims=True)
    return np.asarray(top - np.log(np.exp(top).sum(-1, keepdims=True)), dtype=np.float64)


def losses(log_probability: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cross-entropy of each row, in nats, from log probabilities (..., m, classes) and labels (m,)."""
    which = np.broadcast_to(labels, log_probability.shape[:-1])[..., None]
    true = np.take_along_axis(log_probability, which, -1)[..., 0]
    return np.asarray(np.minimum(-true, -np.log(SMALLEST_PROBABILITY)), dtype=np.float64)


def to_bytes(result: StackResult, run_ids: Sequence[str]) -> bytes:
    """The file: column ``row_id``, then one column a run (``run``, or ``run:class`` for several outputs)."""
    import pyarrow
    import pyarrow.parquet

    columns = {"row_id": pyarrow.array(result.rows)}
    for position, (run_id, run) in enumerate(zip(run_ids, result.runs, strict=True)):
        if run.state != "finished":
            continue
        for output in range(result.logits.shape[2]):
            name = run_id if result.logits.shape[2] == 1 else f"{run_id}:{output}"
            columns[name] = pyarrow.array(np.ascontiguousarray(result.logits[position, :, output]))
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd", use_dictionary=False)
    return sink.getvalue()


def from_bytes(content: bytes) -> LogitsTable:
    """Read what ``to_bytes`` wrote."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(content))
    columns: dict[str, list[NDArray[np.float32]]] = {}
    for name in table.column_names[1:]:
        columns.setdefault(name.split(":")[0], []).append(table.column(name).to_numpy())
    logits = {run: np.stack(outputs, 1) for run, outputs in columns.items()}
    return LogitsTable(table.column("row_id").to_numpy(), logits)
