"""Frozen records that cross the borders of the engine: what goes into a stack and what comes out of it.

Arrays are numpy, shapes stand beside them. Nothing here computes. Torch-free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARTS: tuple[str, ...] = ("train", "validation", "test")
"""Parts of the one split of a recipe; their position is their code in ``EncodedData.parts``."""

EVERYONE = "everyone"
"""Key of the group that holds all rows."""

PRIMARY = "accuracy"
"""Key of the metric that marks, tuning and planning rest on, fixed before anything trains."""

LEVEL, REST = "level:", "rest:"
"""What stands before a metric's key in ``MeasurementRow.quantity`` where it is not the difference of a group but its own
level (baseline: the baseline's), or the difference of the group less that of everyone else."""


def attribute_set(attributes: Mapping[str, str]) -> str:
    """What makes a group, in words: ``sex``, or ``sex x race``; groups of one set do not overlap."""
    return " × ".join(attributes)


RunState = Literal["finished", "diverged"]
Tag = Literal["inside", "audit-only"]


@dataclass(frozen=True)
class NetworkSpec:
    """Shape of a network: ``kind`` is ``logistic`` or ``mlp``; ``hidden`` are the widths of its hidden layers."""

    kind: str
    hidden: tuple[int, ...] = ()
    activation: Literal["tanh", "relu"] = "tanh"


@dataclass(frozen=True)
class TrainingSize:
    """Public constants of training: they fix the sampling probability, the steps and the denominator.

    Attributes:
        units: rows of the training part, or persons where the unit of protection is the person (n).
        batch_size: nominal batch; the sampling probability is ``1 / ceil(units / batch_size)``.
        epochs: passes; there are ``epochs * ceil(units / batch_size)`` steps.
    """

    units: int
    batch_size: int
    epochs: int

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.units // self.batch_size)

    @property
    def sampling_probability(self) -> float:
        return 1.0 / self.batches_per_epoch

    @property
    def steps(self) -> int:
        return self.epochs * self.batches_per_epoch

    @property
    def expected_batch_size(self) -> float:
        """The constant denominator b = q n of every step."""
        return self.sampling_probability * self.units


@dataclass(frozen=True)
class PrivacyEvent:
    """What a method spent, as data: ``steps`` times one Gaussian release on a Poisson batch.

    ``noise_multiplier`` is the noise standard deviation over the joint L2 sensitivity of *all* releases of a step.
    It is always a Python float (METHODS.md 5.3: other number types make dp-accounting return a wrong epsilon).
    """

    noise_multiplier: float
    sampling_probability: float
    steps: int
    adjacency: Literal["add-or-remove-one"] = "add-or-remove-one"


@dataclass(frozen=True)
class Calibration:
    """Noise found for a budget, with what both accountants say of it."""

    noise_multiplier: float
    epsilon_spent: float
    check: Mapping[str, float | str]


@dataclass(frozen=True)
class RunSpec:
    """One run of a stack. ``parameters`` are the method's values (learning_rate, clip, ...)."""

    run: str
    method: str
    seed: int
    epsilon: float | None
    noise_multiplier: float
    noise_seed: int
    parameters: Mapping[str, float]


@dataclass(frozen=True)
class StackSpec:
    """The runs that train together: same rows, initial weights and Poisson batches, each its own noise.

    The first run is the baseline of this seed. ``kernel`` names the program (``eager-cpu``, ``eager-cuda``).
    """

    runs: tuple[RunSpec, ...]
    network: NetworkSpec
    size: TrainingSize
    weight_seed: int
    batch_seed: int
    kernel: str
    threads: int


@dataclass(frozen=True)
class GroupRows:
    """Rows of one group: ``key`` as in the database, ``member`` bool, shape (n,)."""

    key: str
    member: NDArray[np.bool_]


@dataclass(frozen=True)
class EncodedData:
    """A table as numbers, ready to train on.

    Attributes:
        features: float32, shape (n, d).
        labels: int64, shape (n,), values 0 .. classes-1; for two classes 1 is the favourable value.
        parts: int8, shape (n,), positions in ``PARTS``.
        row_ids: int64, shape (n,), unique ids of the stored rows.
        unit_ids: int64, shape (n,): the row id, or the person's number where the unit is the person. Sampling coins
            belong to these ids.
        universe: all unit ids lie in [0, universe); a public constant that does not depend on which rows are there.
        groups: first ``everyone``, then each group in order.
        feature_names: one a column of ``features``.
    """

    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    classes: int
    parts: NDArray[np.int8]
    row_ids: NDArray[np.int64]
    unit_ids: NDArray[np.int64]
    universe: int
    groups: tuple[GroupRows, ...]
    feature_names: tuple[str, ...]


@dataclass(frozen=True)
class StatisticRow:
    """Sufficient statistics of one run on one group, true label and part; see ``backend.tables.Statistic``.

    Differences are baseline minus run, and None for the baseline itself. Sums are float64.
    ``score`` sums the probability of class 1 (of the true class where there are more than two).
    """

    group: str
    label: int
    part: str
    n: int
    predicted: tuple[int, ...]
    loss: float
    loss_squared: float
    squared_error: float
    score: float
    both_right: int | None = None
    baseline_only_right: int | None = None
    run_only_right: int | None = None
    both_wrong: int | None = None
    loss_difference: float | None = None
    loss_difference_squared: float | None = None


@dataclass(frozen=True)
class RunResult:
    """Outcome of one run. A diverged run has a reason and no statistics."""

    run: str
    state: RunState
    reason: str | None
    statistics: tuple[StatisticRow, ...]


@dataclass(frozen=True)
class StackResult:
    """Outcome of one stack.

    Attributes:
        runs: in the order of the spec.
        logits: float32, shape (runs, rows, outputs); outputs is 1 for two classes, else the number of classes.
        rows: int64, shape (rows,), the row ids of the evaluation rows (validation and test) in the order of ``logits``.
        seconds: wall clock of training and measuring.
        steps: steps taken.
    """

    runs: tuple[RunResult, ...]
    logits: NDArray[np.float32]
    rows: NDArray[np.int64]
    seconds: float
    steps: int


@dataclass(frozen=True)
class MeasurementRow:
    """Row-level sums over the units of a group, see ``backend.tables.Measurement``; label None means all labels.

    ``quantity`` is a metric's key, or one with ``LEVEL`` or ``REST`` before it. With ``REST`` and no epsilon the differences
    are means over all epsilons of the method. ``reason`` is a code of ``engine.metrics.reasons``.
    """

    method: str
    epsilon: float | None
    group: str
    label: int | None
    part: str
    quantity: str
    seeds: tuple[int, ...]
    units: int
    rows: int
    total: float | None
    total_squared: float | None
    cross: float | None
    rows_squared: float
    total_each_squared: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Counts:
    """Test counts and sums of all runs of an audit as arrays: r runs, g groups, l true labels, l predicted labels.

    Attributes:
        n: int64, shape (r, g, l), rows.
        predicted: int64, shape (r, g, l, l), rows by predicted class.
        loss, squared_error: float64, shape (r, g, l), sums.
        present: bool, shape (r,), whether the run has statistics at all.
    """

    n: NDArray[np.int64]
    predicted: NDArray[np.int64]
    loss: NDArray[np.float64]
    squared_error: NDArray[np.float64]
    present: NDArray[np.bool_]

    @property
    def classes(self) -> int:
        return int(self.n.shape[2])


@dataclass(frozen=True)
class RunValue:
    """A metric of one run and group that counts cannot give, made from the logits; ``reason`` is a code."""

    run: str
    group: str
    part: str
    metric: str
    value: float | None
    rows: int
    reason: str | None = None


@dataclass(frozen=True)
class FloorRow:
    """What a max-min gap and an excess gap would be if all groups were equal, by permuting whole units over groups.

    ``by`` names the attributes that make the groups; ``gap`` and ``excess`` are means over ``draws`` permutations,
    the ``*_upper`` their 95th percentiles. Undefined numbers are None and ``reason`` is a code.
    """

    method: str
    epsilon: float | None
    metric: str
    by: str
    gap: float | None
    gap_upper: float | None
    excess: float | None
    excess_upper: float | None
    draws: int
    reason: str | None = None


@dataclass(frozen=True)
class RunFacts:
    """A run as the facts layer sees it: where it stands and its test statistics."""

    run: str
    method: str
    seed: int
    epsilon_asked: float | None
    epsilon_spent: float | None
    state: str
    statistics: tuple[StatisticRow, ...] = ()


@dataclass(frozen=True)
class GroupFacts:
    """A group as the facts layer sees it. ``n`` counts test rows, ``units`` their persons where rows belong to persons."""

    key: str
    label: str
    attributes: Mapping[str, str]
    n: int
    estimable: bool
    reason: str | None
    units: int | None = None


@dataclass(frozen=True)
class AuditFacts:
    """All that the numbers of one audit are made from, as read from the database.

    ``counts`` holds the runs' statistics as arrays, in the order of ``runs`` and ``groups``; where it is None they are
    made from ``runs[*].statistics``. ``values`` holds by metric what counts cannot give, float64 of shape (runs, groups),
    NaN where undefined.
    """

    groups: tuple[GroupFacts, ...]
    runs: tuple[RunFacts, ...]
    measurements: tuple[MeasurementRow, ...] = ()
    counts: Counts | None = None
    values: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    floors: tuple[FloorRow, ...] = ()
    seeds_planned: int = 0
    withheld_below: int = 10
    estimable_rows: int = 30
    estimable_per_label: int = 5


@dataclass(frozen=True)
class CostRow:
    """One row of ``/audits/{id}/costs``. Undefined numbers are None and ``reason`` says why.

    Rates are shares (0..1); ``cost`` = baseline - value for metrics where higher is better, value - baseline for
    losses, and for metrics without direction (selection rate) a *change*, value - baseline.
    ``fresh_low`` and ``fresh_high`` are the prediction interval of ``value`` for one more run with these settings.
    ``marked`` says whether this group pays more than the rest (see ``engine.facts.marks``), None where it cannot be said.
    ``survives_tuning`` is None until an audit has a tuning grid. ``reason_code`` is the first reason in one word.
    """

    method: str
    epsilon_asked: float | None
    epsilon_spent: float | None
    group: str
    group_label: str
    n: int
    value: float | None
    baseline: float | None
    cost: float | None
    low: float | None
    high: float | None
    interval: str
    seeds: int
    marked: bool | None = None
    survives_tuning: str | None = None
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None
    fresh_low: float | None = None
    fresh_high: float | None = None


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of an input; ``field`` is a dotted path as in the request (``training.clip``)."""

    field: str
    message: str


@dataclass(frozen=True)
class Forecast:
    """What an audit will take, before it starts. ``seconds`` is an estimate, said to be one.

    ``detectable`` gives per group key the smallest cost of accuracy (share) that would be seen, or None with a reason.
    """

    runs: int
    stacks: int
    steps: int
    seconds: float
    memory_bytes: int
    detectable: tuple[tuple[str, float | None, str | None], ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class MarkRow:
    """Whether one method costs one group more than all other rows, on the primary metric averaged over epsilons.

    ``difference`` is the group's cost less that of everyone else; ``p`` is one-sided, ``p_adjusted`` by Holm over
    ``family`` comparisons, fixed when the audit was planned. Undefined numbers are None and ``reason`` says why.
    """

    method: str
    group: str
    group_label: str
    n: int
    metric: str
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    marked: bool | None
    family: int
    seeds: int
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class GapRow:
    """The spread of a metric over the groups of one set of attributes (``by``), which do not overlap.

    ``gap`` is the highest less the lowest group's seed mean (the gap of means), ``ratio`` the lowest over the highest,
    ``excess`` = gap - baseline_gap. ``signed`` is the private difference of the pair that set the *baseline's* gap: where it
    is negative the order has turned. ``cost_gap`` is the largest less the smallest cost, ``xi`` the largest distance of a
    group's cost from everyone's. ``low`` and ``high`` hold ``excess``; ``floor`` is the gap, ``excess_floor`` the excess, if
    all groups were equal. Only groups that can be judged set a gap; ``left_out`` counts the others.
    """

    method: str
    epsilon_asked: float | None
    epsilon_spent: float | None
    metric: str
    by: str
    groups: int
    left_out: int
    highest: str | None = None
    lowest: str | None = None
    gap: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None
    baseline_gap: float | None = None
    excess: float | None = None
    low: float | None = None
    high: float | None = None
    signed: float | None = None
    ratio: float | None = None
    cost_gap: float | None = None
    xi: float | None = None
    floor: float | None = None
    floor_upper: float | None = None
    excess_floor: float | None = None
    excess_floor_upper: float | None = None
    seeds: int = 0
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class DisparityRow:
    """One group's metric against a reference group's, or the best group's, of the same method and epsilon."""

    method: str
    epsilon_asked: float | None
    epsilon_spent: float | None
    metric: str
    group: str
    group_label: str
    n: int
    reference: str | None
    value: float | None
    reference_value: float | None
    difference: float | None
    ratio: float | None
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class CandidateRow:
    """One point of the trade-off: method and epsilon with what it costs. ``pareto``: no other point is as good in the
    overall metric, the worst group's cost, the excess gap and epsilon, and better in one.

    ``worst_upper`` is the largest one-sided upper limit of any group's cost, at 0.95 after Bonferroni over methods.
    ``passes`` says whether all groups that the question is about stay within the limit; None where nothing can be said.
    """

    method: str
    epsilon_asked: float
    epsilon_spent: float | None
    metric: str
    overall: float | None
    worst_cost: float | None
    worst_upper: float | None
    worst_group: str | None
    excess: float | None
    excess_by: str | None
    pareto: bool | None
    passes: bool | None
    groups: int
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None
