"""One stack and one table in, results out: train, evaluate every part, count per group, true label and part."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.audits.logits import log_probabilities, losses, predictions
from worker.engine.methods.base import Method
from worker.engine.observer import Observer
from worker.engine.params import NetworkKind
from worker.engine.results import PARTS, EncodedData, RunResult, StackResult, StackSpec, StatisticRow
from worker.engine.training import Trained, train_stack

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS_AT_ONCE = 4096


def execute_stack(
    spec: StackSpec,
    data: EncodedData,
    methods: Sequence[Method],
    networks: Sequence[NetworkKind],
    observer: Observer,
    *,
    device: str = "cpu",
) -> StackResult:
    """Train and evaluate the runs of a stack. The first run is the baseline that the others are joined with.

    Raises:
        Stopped: the observer said so.
        ValueError: an unknown method or network.
    """
    started = time.perf_counter()
    trained = train_stack(spec, data, methods, networks, observer, device=device)
    logits = evaluate(trained)
    runs = run_results(spec, data, trained.diverged, logits, trained.reasons)
    held_out = data.parts != PARTS.index("train")
    seconds = time.perf_counter() - started
    return StackResult(runs, logits[:, held_out], data.row_ids[held_out], seconds, trained.steps)


def evaluate(trained: Trained) -> NDArray[np.float32]:
    """Logits of all rows of the table, shape (runs, n, outputs)."""
    import torch

    features, parts = trained.rows.features, []
    with torch.inference_mode():
        for start in range(0, len(features), _ROWS_AT_ONCE):
            scores = trained.network.forward(features[start : start + _ROWS_AT_ONCE])
            parts.append(scores.transpose(0, 1).float().cpu().numpy().copy())
    return np.concatenate(parts, 1)


def run_results(
    spec: StackSpec,
    data: EncodedData,
    diverged: Sequence[int | None],
    logits: NDArray[np.float32],
    reasons: Sequence[str | None] = (),
) -> tuple[RunResult, ...]:
    """Each run's outcome with its sufficient statistics; a diverged run has none, but says when and why."""
    cells = list(_cells(data))
    baseline = _Outcome.of(logits[0], data) if diverged[0] is None else None
    results = []
    for position, run in enumerate(spec.runs):
        step = diverged[position]
        if step is not None:
            why = (reasons[position] if position < len(reasons) else None) or "Choose a smaller learning rate."
            results.append(RunResult(run.run, "diverged", f"Diverged at step {step}. {why}", ()))
            continue
        outcome = baseline if position == 0 and baseline else _Outcome.of(logits[position], data)
        other = None if position == 0 else baseline
        rows = tuple(_statistic(cell, outcome, other, data.classes) for cell in cells)
        results.append(RunResult(run.run, "finished", None, rows))
    return tuple(results)


@dataclass(frozen=True)
class _Cell:
    """Rows of one group, true label and part, by position."""

    group: str
    label: int
    part: str
    rows: NDArray[np.int64]


def _cells(data: EncodedData) -> Iterator[_Cell]:
    """Every group x label x part, also where it is empty: an absent row would read as a lost one."""
    for group in data.groups:
        for label in range(data.classes):
            chosen = group.member & (data.labels == label)
            for code, part in enumerate(PARTS):
                yield _Cell(group.key, label, part, np.flatnonzero(chosen & (data.parts == code)))


@dataclass(frozen=True)
class _Outcome:
    """What one network says of each row of the table; arrays of shape (n,)."""

    predicted: NDArray[np.int64]
    right: NDArray[np.bool_]
    loss: NDArray[np.float64]
    squared_error: NDArray[np.float64]
    score: NDArray[np.float64]

    @classmethod
    def of(cls, logits: NDArray[np.float32], data: EncodedData) -> _Outcome:
        """``squared_error`` is the Brier score: (p - y)^2 for two classes, summed over the classes for more."""
        log_probability = log_probabilities(logits)
        probability, predicted = np.exp(log_probability), predictions(logits)
        true = np.take_along_axis(probability, data.labels[:, None], 1)[:, 0]
        if data.classes == 2:
            squared_error, score = (1.0 - true) ** 2, probability[:, 1]
        else:
            squared_error, score = (probability**2).sum(1) - 2.0 * true + 1.0, true
        return cls(predicted, predicted == data.labels, losses(log_probability, data.labels), squared_error, score)


def _statistic(cell: _Cell, run: _Outcome, baseline: _Outcome | None, classes: int) -> StatisticRow:
    """Sums over one cell; joint counts and differences (baseline minus run) where there is a baseline."""
    rows = cell.rows
    loss, right = run.loss[rows], run.right[rows]
    row = StatisticRow(
        group=cell.group,
        label=cell.label,
        part=cell.part,
        n=len(rows),
        predicted=tuple(int(count) for count in np.bincount(run.predicted[rows], minlength=classes)),
        loss=float(loss.sum()),
        loss_squared=float((loss**2).sum()),
        squared_error=float(run.squared_error[rows].sum()),
        score=float(run.score[rows].sum()),
    )
    if baseline is None:
        return row
    before, difference = baseline.right[rows], baseline.loss[rows] - loss
    return replace(
        row,
        both_right=int((before & right).sum()),
        baseline_only_right=int((before & ~right).sum()),
        run_only_right=int((~before & right).sum()),
        both_wrong=int((~before & ~right).sum()),
        loss_difference=float(difference.sum()),
        loss_difference_squared=float((difference**2).sum()),
    )
