"""PATE: an ensemble of teachers labels public rows by a noisy vote, and a student learns from these alone.

Papernot et al. 2017 and 2018 (GNMax); soft labels after Tran, Dinh, Beiter, Fioretto 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from worker.engine.datasets.split import mixed
from worker.engine.mechanisms import votes
from worker.engine.methods.base import Budget, Calibrate, MethodPlan
from worker.engine.params import Param
from worker.engine.results import PARTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from worker.engine.results import EncodedData, RunSpec, TrainingSize

TEACHERS = Param(
    "teachers",
    "Teachers",
    "Networks that each learn from a part of the rows of their own. More of them drown the noise, but each learns less.",
    250,
    1,
    10_000,
    integer=True,
)
QUERIES = Param(
    "queries",
    "Labelled rows",
    "Public rows that the teachers label. Each one spends privacy; the student learns from these alone.",
    300,
    1,
    100_000,
    integer=True,
)
TEACHER_STEPS = Param(
    "teacher_steps",
    "Steps of a teacher",
    "Steps of each teacher, each on the next 16 of its rows.",
    100,
    1,
    10_000,
    integer=True,
)
STUDENT_STEPS = Param(
    "student_steps",
    "Steps of the student",
    "Steps of the student, each on all labelled rows.",
    300,
    1,
    100_000,
    integer=True,
)
PENALTY = Param(
    "penalty",
    "Penalty on large weights",
    "Lambda of the student: mean loss + lambda times the squared weights. More of it steadies the student and blunts it.",
    0.003,
    0.0,
    10.0,
)
PROJECTION = Param(
    "projection",
    "Noisy shares",
    "0: shifted to sum 1 (unbiased). 1: as they come. 2: negative ones cut, then scaled (biased toward even).",
    0,
    0,
    2,
    integer=True,
)
TEACHER_PENALTY = 0.001
"""Lambda of every teacher: their shards are small."""

RATE = 0.02
"""First step length of teachers and students, falling to 0; on features scaled to about one."""


@dataclass(frozen=True)
class Lessons:
    """The public constants of one call to the trainer: steps, first step length, lambda of each network, and
    the rows of one step of a teacher (a student's step takes all of its rows)."""

    steps: int
    learning_rate: float
    penalties: tuple[float, ...]
    batch: int = 16


class Trainer(Protocol):
    """What PATE is handed: it trains, and knows nothing of votes."""

    def teacher_votes(
        self,
        rows: NDArray[np.int64],
        teacher: NDArray[np.int64],
        teachers: int,
        asked: NDArray[np.int64],
        lessons: Lessons,
    ) -> NDArray[np.int64]:
        """Predictions of each teacher on the rows asked, int64, shape (teachers, asked)."""

    def student_logits(
        self, rows: NDArray[np.int64], labels: NDArray[np.float64], lessons: Lessons
    ) -> NDArray[np.float32]:
        """Logits of all rows of the table by each student, shape (students, n, outputs)."""


@dataclass(frozen=True)
class Taught:
    """What became of one run.

    Attributes:
        logits: of every row of the table, float32, shape (n, outputs).
        clean: the same of the student taught without noise, from the same votes.
        asked: positions of the labelled rows, int64, shape (m,).
        votes: before noise, int64, shape (m, classes). Private: audit-only.
        noise_std: of the noise on each count.
    """

    logits: NDArray[np.float32]
    clean: NDArray[np.float32]
    asked: NDArray[np.int64]
    votes: NDArray[np.int64]
    noise_std: float


@dataclass(frozen=True)
class Pate:
    """The student sees only public rows and noisy votes, so that the private rows reach it through the votes alone.

    Each private unit belongs to one teacher by a keyed hash of its id. Each labelled row's counts get N(0, sigma^2) and
    are rounded: one Gaussian event on everyone, multiplier sigma / sqrt(2), a labelled row (``mechanisms.votes``). The
    claim is data-independent. People in the public pool have no protection at all: their features go to the student.
    Void if: shards depend on positions, sizes or labels; the number of steps depends on the data; the same row is asked
    twice and charged once; votes or agreement are published beside the labels.
    """

    key: str
    title: str
    help: str
    soft: bool
    params: tuple[Param, ...]
    private: bool = True
    uses_groups: bool = False
    limit: Mapping[str, float] = field(default_factory=dict)

    def plan(self, budget: Budget, size: TrainingSize, values: Mapping[str, float], calibrate: Calibrate) -> MethodPlan:
        """The least noise that spends no more than the budget on all labelled rows.

        Raises:
            ValueError: the budget has no epsilon.
            AccountingProblem: no noise meets the budget, or the accountants disagree.
        """
        if budget.epsilon is None:
            raise ValueError("PATE was planned without an epsilon. Give every private run one.")
        del size  # the votes are not sampled, and how many people there are changes nothing
        queries = int(values["queries"])
        found = calibrate(budget.epsilon, budget.delta, 1.0, queries)
        events = votes.vote_events(votes.noise_std_of(found.noise_multiplier), queries)
        return MethodPlan(float(found.noise_multiplier), found.epsilon_spent, events, found.check)

    def labels(self, counts: NDArray[np.int64], values: Mapping[str, float]) -> NDArray[np.float64]:
        """Label weights of noisy (or clean) counts, shape (m, classes)."""
        if not self.soft:
            return votes.hard_labels(counts)
        return votes.soft_labels(counts, int(values["teachers"]), votes.PROJECTIONS[int(values["projection"])])

    def fit(
        self, runs: Sequence[RunSpec], data: EncodedData, public: NDArray[np.bool_], seed: int, trainer: Trainer
    ) -> list[Taught]:
        """Train the runs of this method in a stack: one student each, all from the same teachers where settings agree.

        Args:
            public: bool, shape (n,): rows of the pool; no teacher learns from them.
            seed: of shards and of the choice of labelled rows; runs share it, so that they are paired.
        """
        by_settings: dict[tuple[tuple[str, float], ...], list[int]] = {}
        for position, run in enumerate(runs):
            by_settings.setdefault(_settings(run), []).append(position)
        taught: dict[int, Taught] = {}
        for positions in by_settings.values():
            members = [runs[position] for position in positions]
            ballot = _ballot_of(members[0], data, public, seed, trainer)
            taught |= zip(positions, self._students(members, ballot, trainer), strict=True)
        return [taught[position] for position in range(len(runs))]

    def _students(self, runs: Sequence[RunSpec], ballot: _Ballot, trainer: Trainer) -> list[Taught]:
        """One student a run and one without noise, all with the same settings."""
        values = runs[0].parameters
        stds = [votes.noise_std_of(run.noise_multiplier) for run in runs]
        counts = [votes.noisy_counts(ballot.counts, std, run.noise_seed) for run, std in zip(runs, stds, strict=True)]
        labels = np.stack([self.labels(each, values) for each in (*counts, ballot.counts)])
        lessons = Lessons(int(values["student_steps"]), RATE, (float(values["penalty"]),) * len(labels))
        logits = trainer.student_logits(ballot.asked, labels, lessons)
        return [
            Taught(own, logits[-1], ballot.asked, ballot.counts, std)
            for own, std in zip(logits[:-1], stds, strict=True)
        ]


PATE = Pate(
    "pate",
    "PATE, hard labels",
    "Teachers trained on separate parts of the rows vote on public rows; noise is added to the votes, and a student learns "
    "from the winners. Tends to fail where teachers disagree, which is often in small groups.",
    False,
    (TEACHERS, QUERIES, TEACHER_STEPS, STUDENT_STEPS, PENALTY),
)
PATE_SOFT = Pate(
    "pate-soft",
    "PATE, soft labels",
    "As with hard labels, but the student learns from the noisy shares of the vote instead of the winner alone, at the same "
    "epsilon. Steadier where teachers disagree; where they agree it may be worse.",
    True,
    (TEACHERS, QUERIES, TEACHER_STEPS, STUDENT_STEPS, PENALTY, PROJECTION),
)


def asked_rows(data: EncodedData, public: NDArray[np.bool_], queries: int, seed: int) -> NDArray[np.int64]:
    """Positions of the public rows that are labelled, int64, shape (queries,): those with the smallest keyed hash.

    Raises:
        ValueError: there are fewer public rows.
    """
    pool = np.flatnonzero(public)
    if len(pool) < queries:
        raise ValueError(f"{queries} labelled rows were asked for and {len(pool)} are public. Ask for fewer.")
    order = np.argsort(mixed(data.row_ids[pool].astype(np.uint64), seed), kind="stable")
    return pool[order[:queries]]


def teacher_lessons(teachers: int, steps: int) -> Lessons:
    """How all teachers learn."""
    return Lessons(steps, RATE, (TEACHER_PENALTY,) * teachers)


@dataclass(frozen=True, eq=False)
class _Ballot:
    """Labelled rows and their clean counts."""

    asked: NDArray[np.int64]
    counts: NDArray[np.int64]


def _ballot_of(run: RunSpec, data: EncodedData, public: NDArray[np.bool_], seed: int, trainer: Trainer) -> _Ballot:
    """Teachers from their shards to counts. Runs with equal settings ask the trainer the same, which answers once."""
    teachers, queries, steps = (int(run.parameters[name]) for name in ("teachers", "queries", "teacher_steps"))
    private = np.flatnonzero((data.parts == PARTS.index("train")) & ~public)
    asked = asked_rows(data, public, queries, seed)
    teacher = votes.teacher_of(data.unit_ids[private], teachers, seed)
    lessons = teacher_lessons(teachers, steps)
    predicted = trainer.teacher_votes(private, teacher, teachers, asked, lessons)
    return _Ballot(asked, votes.count_votes(predicted, data.classes))


def _settings(run: RunSpec) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(run.parameters.items()))
