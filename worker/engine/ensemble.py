"""Networks outside the shared loop: many teachers on disjoint rows, or many students on the same rows, each as one
tensor program. Nothing here draws a coin; what a network becomes depends on its own rows and labels alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from worker.engine.datasets.split import mixed
from worker.engine.networks.initial import initial_weights
from worker.engine.networks.own_rows import OwnRows, OwnRowsStack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from worker.engine.methods.pate import Lessons
    from worker.engine.results import EncodedData, NetworkSpec

_ROWS_AT_ONCE, _ASKED_AT_ONCE = 4096, 256
_ORDER = 0x5EED
_NUMBERS_AT_ONCE = 60_000_000
"""Hidden values and features that a stack of teachers may hold: about a quarter of a gigabyte."""

Look = Callable[[int, int], None]
"""Told (steps done, steps in all) of one tensor program."""


class Ensemble:
    """Trains what a method outside the shared loop asks for, on one table.

    Args:
        data: the table.
        network: shape of teachers and students.
        weight_seed: of the initial weights that all of them start from.
        look: told of progress; may end the training by raising.
    """

    def __init__(
        self,
        data: EncodedData,
        network: NetworkSpec,
        weight_seed: int,
        look: Look,
        *,
        threads: int = 1,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        torch.set_num_threads(threads)
        self._answers: dict[tuple[object, ...], NDArray[np.int64]] = {}
        self._data, self._activation, self._look = data, network.activation, look
        self._device, self._dtype = device, dtype
        self._outputs = 1 if data.classes == 2 else data.classes
        hidden = network.hidden if network.kind != "logistic" else ()
        self._layers = initial_weights(data.feature_names, (*hidden, self._outputs), weight_seed)
        self._width = len(data.feature_names) + 2 * sum(hidden) + self._outputs
        features = torch.as_tensor(data.features, device=device, dtype=dtype)
        self._features = torch.nan_to_num(features, nan=0.0, posinf=0.0, neginf=0.0)
        self._one_hot = torch.as_tensor(np.eye(data.classes)[data.labels], device=device, dtype=dtype)

    def teacher_votes(
        self,
        rows: NDArray[np.int64],
        teacher: NDArray[np.int64],
        teachers: int,
        asked: NDArray[np.int64],
        lessons: Lessons,
    ) -> NDArray[np.int64]:
        """What each teacher predicts, int64, shape (teachers, asked).

        Args:
            rows: positions of the private rows.
            teacher: of each of them.
            asked: positions of the rows to predict.

        A teacher without rows votes for class 0, one whose rows have one class for that class, untrained. Asked the same
        again, it answers from memory.
        """
        question = (teachers, lessons, *(hashlib.blake2b(part.tobytes()).digest() for part in (rows, teacher, asked)))
        if question not in self._answers:
            self._answers[question] = self._teach(rows, teacher, teachers, asked, lessons)
        return self._answers[question]

    def _teach(
        self,
        rows: NDArray[np.int64],
        teacher: NDArray[np.int64],
        teachers: int,
        asked: NDArray[np.int64],
        lessons: Lessons,
    ) -> NDArray[np.int64]:
        shards = self._shards(rows, teacher, teachers)
        predicted = np.zeros((teachers, len(asked)), dtype=np.int64)
        for number, shard in enumerate(shards):
            if len(shard):
                predicted[number] = self._data.labels[shard[0]]
        taught = np.array([n for n, shard in enumerate(shards) if len(np.unique(self._data.labels[shard])) > 1], int)
        at_once = max(1, _NUMBERS_AT_ONCE // ((lessons.batch + len(asked)) * self._width))
        for start in range(0, len(taught), at_once):
            members = taught[start : start + at_once]
            stack = self._stack(len(members))
            penalties = [lessons.penalties[number] for number in members]
            stack.fit(
                self._in_turn([shards[number] for number in members], lessons), lessons, penalties, self._told(lessons)
            )
            predicted[members] = self._predictions(stack, asked)
        return predicted

    def _shards(self, rows: NDArray[np.int64], teacher: NDArray[np.int64], teachers: int) -> list[NDArray[np.int64]]:
        """Each teacher's rows, in an order that a hash of their ids gives: its first rows are as mixed as any."""
        order = np.lexsort((mixed(self._data.row_ids[rows].astype(np.uint64), _ORDER), teacher))
        ends = np.searchsorted(teacher[order], np.arange(teachers + 1))
        return [rows[order[ends[number] : ends[number + 1]]] for number in range(teachers)]

    def _in_turn(self, shards: Sequence[NDArray[np.int64]], lessons: Lessons) -> Callable[[int], OwnRows]:
        """Each step the next rows of each shard, round and round: no coin, and nothing of another's size."""
        table = torch.as_tensor(np.concatenate(shards), device=self._device)
        sizes = torch.tensor([len(shard) for shard in shards], device=self._device)[:, None]
        first = torch.tensor(np.cumsum([0, *map(len, shards[:-1])]), device=self._device)[:, None]
        step_rows = torch.arange(lessons.batch, device=self._device)[None]

        def rows_at(step: int) -> OwnRows:
            chosen = table[first + (step * lessons.batch + step_rows) % sizes]
            return OwnRows(self._features[chosen], self._one_hot[chosen])

        return rows_at

    def student_logits(
        self, rows: NDArray[np.int64], labels: NDArray[np.float64], lessons: Lessons
    ) -> NDArray[np.float32]:
        """Logits of every row of the table by each student, shape (students, n, outputs).

        Args:
            rows: positions of the rows that all students learn from.
            labels: weight of each class, shape (students, rows, classes).
        """
        stack = self._stack(len(labels))
        given = torch.as_tensor(labels, device=self._device, dtype=self._dtype)
        all_rows = OwnRows(self._of(rows)[None], given)
        stack.fit(lambda _: all_rows, lessons, lessons.penalties, self._told(lessons))
        return self._logits(stack)

    def _stack(self, networks: int) -> OwnRowsStack:
        return OwnRowsStack(self._layers, self._activation, networks, device=self._device, dtype=self._dtype)

    def _of(self, rows: NDArray[np.int64]) -> Tensor:
        return self._features[torch.as_tensor(rows, device=self._device)]

    def _told(self, lessons: Lessons) -> Callable[[int], None]:
        return lambda step: self._look(step, lessons.steps)

    def _predictions(self, stack: OwnRowsStack, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        pieces = []
        with torch.inference_mode():
            for start in range(0, len(asked), _ASKED_AT_ONCE):
                logits = stack.forward(self._of(asked[start : start + _ASKED_AT_ONCE])[None])
                chosen = logits[..., 0] > 0 if self._outputs == 1 else logits.argmax(-1)
                pieces.append(chosen.long().cpu().numpy())
        return np.concatenate(pieces, 1) if pieces else np.zeros((len(stack.parameters[0]), 0), dtype=np.int64)

    def _logits(self, stack: OwnRowsStack) -> NDArray[np.float32]:
        pieces = []
        with torch.inference_mode():
            for start in range(0, len(self._features), _ROWS_AT_ONCE):
                logits = stack.forward(self._features[None, start : start + _ROWS_AT_ONCE])
                pieces.append(logits.float().cpu().numpy())
        return np.concatenate(pieces, 1)
