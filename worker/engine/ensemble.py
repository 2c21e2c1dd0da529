"""Networks outside the shared loop: many teachers on disjoint rows, or many students on the same rows, each as one
tensor program. Nothing here draws a coin; what a network becomes depends on its own rows and labels alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from worker.engine.networks.initial import initial_weights
from worker.engine.networks.own_rows import OwnRows, OwnRowsStack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from worker.engine.methods.pate import Lessons
    from worker.engine.results import EncodedData, NetworkSpec

LEAST_ROOM = 32
_ROWS_AT_ONCE = 4096
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
        predicted = np.zeros((teachers, len(asked)), dtype=np.int64)
        order = np.argsort(teacher, kind="stable")
        ends = np.searchsorted(teacher[order], np.arange(teachers + 1))
        shards = [rows[order[ends[number] : ends[number + 1]]] for number in range(teachers)]
        for number, shard in enumerate(shards):
            if len(shard):
                predicted[number] = self._data.labels[shard[0]]
        taught = [n for n, shard in enumerate(shards) if len(np.unique(self._data.labels[shard])) > 1]
        for room, members in self._by_room(taught, shards):
            stack = self._stack(len(members))
            penalties = [lessons.penalties[number] for number in members]
            own = self._own_rows([shards[number] for number in members], room)
            stack.fit(own, lessons, penalties, self._told(lessons))
            predicted[members] = self._predictions(stack, asked)
        return predicted

    def student_logits(
        self, rows: NDArray[np.int64], labels: NDArray[np.float64], lessons: Lessons
    ) -> NDArray[np.float32]:
        """Logits of every row of the table by each student, shape (students, n, outputs).

        Args:
            rows: positions of the rows that all students learn from.
            labels: weight of each class, shape (students, rows, classes).
        """
        stack = self._stack(len(labels))
        weights = torch.full((1, len(rows)), 1.0 / len(rows), device=self._device, dtype=self._dtype)
        given = torch.as_tensor(labels, device=self._device, dtype=self._dtype)
        stack.fit(OwnRows(self._of(rows)[None], given, weights), lessons, lessons.penalties, self._told(lessons))
        return self._logits(stack)

    def _stack(self, networks: int) -> OwnRowsStack:
        return OwnRowsStack(self._layers, self._activation, networks, device=self._device, dtype=self._dtype)

    def _of(self, rows: NDArray[np.int64]) -> Tensor:
        return self._features[torch.as_tensor(rows, device=self._device)]

    def _told(self, lessons: Lessons) -> Callable[[int], None]:
        return lambda step: self._look(step, lessons.steps)

    def _by_room(
        self, taught: Sequence[int], shards: Sequence[NDArray[np.int64]]
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Teachers whose shards need the same room, a few at a time: a teacher's room depends on its own rows only."""
        rooms: dict[int, list[int]] = {}
        for number in taught:
            rooms.setdefault(room_for(len(shards[number])), []).append(number)
        for room, members in sorted(rooms.items()):
            at_once = max(1, _NUMBERS_AT_ONCE // (room * self._width))
            for start in range(0, len(members), at_once):
                yield room, np.array(members[start : start + at_once], dtype=np.int64)

    def _own_rows(self, shards: Sequence[NDArray[np.int64]], room: int) -> OwnRows:
        """Shards filled up to ``room`` rows; what fills up is zero and has weight 0."""
        places = np.zeros((len(shards), room), dtype=np.int64)
        weights = np.zeros((len(shards), room))
        for number, shard in enumerate(shards):
            places[number, : len(shard)] = shard
            weights[number, : len(shard)] = 1.0 / len(shard)
        given = torch.as_tensor(weights, device=self._device, dtype=self._dtype)
        features = self._of(places.reshape(-1)).view(len(shards), room, -1) * (given > 0)[:, :, None]
        labels = np.eye(self._data.classes)[self._data.labels[places]]
        return OwnRows(features, torch.as_tensor(labels, device=self._device, dtype=self._dtype), given)

    def _predictions(self, stack: OwnRowsStack, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        pieces = []
        with torch.inference_mode():
            for start in range(0, len(asked), LEAST_ROOM * 8):
                logits = stack.forward(self._of(asked[start : start + LEAST_ROOM * 8])[None])
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


def room_for(rows: int) -> int:
    """Room for so many rows: 32, 40, 48, 56, 64, 80, ... at most a quarter more than needed, few enough to share."""
    size = LEAST_ROOM
    while size < rows:
        size *= 2
    steps = [size * share // 8 for share in (5, 6, 7, 8)] if size > LEAST_ROOM else [LEAST_ROOM]
    return next(step for step in steps if step >= rows)
