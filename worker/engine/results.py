"""Frozen records that cross the borders of the engine: what goes into a stack and what comes out of it.

Arrays are numpy, shapes stand beside them. Nothing here computes. Torch-free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

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

RunState = Literal["finished", "diverged"]
Activation = Literal["tanh", "relu"]
Optimizer = Literal["sgd", "adam"]
Tag = Literal["inside", "audit-only"]


@dataclass(frozen=True)
class NetworkSpec:
    """Shape of a network: ``kind`` is ``logistic`` or ``mlp``; ``hidden`` are the widths of its hidden layers."""

    kind: str
    hidden: tuple[int, ...] = ()
    activation: Activation = "tanh"


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
class Release:
    """One of the things a step releases: what it is, and its noise standard deviation over its own sensitivity."""

    what: str
    noise_multiplier: float


@dataclass(frozen=True)
class PrivacyEvent:
    """What a method spent, as data: ``steps`` times one Gaussian release on a Poisson batch.

    ``noise_multiplier`` is the noise standard deviation over the joint L2 sensitivity of *all* releases of a step:
    several releases on one batch are one event with (sum of sigma^-2)^(-1/2) (METHODS.md 5.2). ``releases`` lists them,
    so that the joint figure can be recomputed. It is always a Python float (METHODS.md 5.3: other number types make
    dp-accounting return a wrong epsilon).
    """

    noise_multiplier: float
    sampling_probability: float
    steps: int
    adjacency: Literal["add-or-remove-one"] = "add-or-remove-one"
    releases: tuple[Release, ...] = ()


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

    The first run is the baseline of this seed. ``kernel`` names the program (``eager-cpu``, ``eager-cuda``). All runs
    of a stack have the same ``optimizer``.
    """

    runs: tuple[RunSpec, ...]
    network: NetworkSpec
    size: TrainingSize
    weight_seed: int
    batch_seed: int
    kernel: str
    threads: int
    optimizer: Optimizer = "sgd"


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
        training_groups: int64, shape (n,), values 0 .. training_group_count-1: each row's value of the first protected
            column, for methods that use groups while they train; None where there is one group. Numbered by first row
            id, so that renaming a value changes nothing.
        training_group_count: a public constant, like the groups.
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
    training_groups: NDArray[np.int64] | None = None
    training_group_count: int = 1


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
    """A metric of one run and group that counts cannot give; ``reason`` is a code."""

    run: str
    group: str
    part: str
    metric: str
    value: float | None
    rows: int
    reason: str | None = None


@dataclass(frozen=True)
class FloorRow:
    """A gap and an excess gap if all groups by ``by`` were equal: means and 95th percentiles over ``draws`` shuffles."""

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
    NaN where undefined. ``sums`` holds measurements by quantity as ``facts.grid.SumTable``; what is not there is made from
    ``measurements``.
    """

    groups: tuple[GroupFacts, ...]
    runs: tuple[RunFacts, ...]
    measurements: tuple[MeasurementRow, ...] = ()
    sums: Mapping[str, Any] = field(default_factory=dict)
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
