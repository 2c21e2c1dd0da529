"""Audits as REST shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class RunCounts(BaseModel):
    """Runs of an audit by state."""

    total: int
    finished: int
    failed: int
    diverged: int
    waiting: int
    training: int
    stopped: int


class Detectable(BaseModel):
    """The smallest cost of accuracy (a share) that this group would show, and what would halve it.

    Units are test rows, or persons where rows belong to persons. ``seeds_to_halve`` is null where no number of seeds would
    do: ``with_endless_seeds`` is what stays. Audits planned before these were known lack them.
    """

    group: str
    smallest_detectable_cost: float | None
    units: int | None = None
    units_to_halve: int | None = None
    seeds_to_halve: int | None = None
    with_endless_seeds: float | None = None
    reason: str | None


class ForecastView(BaseModel):
    """What an audit will take: an estimate."""

    runs: int
    stacks: int
    steps: int
    seconds: float
    memory_bytes: int
    detectable: list[Detectable]


class AuditLine(BaseModel):
    """An audit in a list."""

    id: str
    name: str
    state: str = Field(description="planning, queued, running, finished, stopped, failed or erased")
    dataset: str
    runs: RunCounts
    steps_done: int
    steps_total: int
    stop_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class AuditView(AuditLine):
    """An audit in full."""

    recipe: str
    question: dict[str, Any]
    delta: float
    forecast: ForecastView
    claim: dict[str, Any] | None
    problem: dict[str, Any] | None
    receipt: dict[str, Any] | None


class AuditList(BaseModel):
    """A page of audits, newest first."""

    items: list[AuditLine]
    next: str | None


class NetworkAsked(BaseModel):
    """A kind from the catalogue, with hidden widths where it has any, and their activation (tanh or relu)."""

    kind: str
    hidden: list[int] | None = None
    activation: str | None = None


class TrainingAsked(BaseModel):
    """How private runs train; the baseline's own settings stand in ``parameters``. ``optimizer`` is sgd or adam, for
    all runs; the learning rate that is left out is the optimizer's."""

    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    clip: float | None = None
    optimizer: str | None = None


class AuditAsked(BaseModel):
    """One question about one dataset; what is left out takes its default."""

    dataset: str
    name: str | None = None
    methods: list[str]
    epsilons: list[float] | None = None
    delta: float | None = None
    seeds: int | None = None
    network: NetworkAsked | None = None
    training: TrainingAsked | None = None
    parameters: dict[str, dict[str, float]] | None = None


class Cost(BaseModel):
    """Privacy cost of one group at one point. Shares are between 0 and 1; undefined numbers are null with a reason."""

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
    marked: bool | None
    survives_tuning: str | None
    tag: str
    reason: str | None
    reason_code: str | None
    fresh_low: float | None
    fresh_high: float | None


class CostTable(BaseModel):
    """Costs of all groups, methods and epsilons, and a sentence made from them."""

    rows: list[Cost]
    headline: str
    metric: str
    interval: str


class Gap(BaseModel):
    """The spread of a metric over the groups of one set of attributes, and what privacy added to it."""

    method: str
    epsilon_asked: float | None
    epsilon_spent: float | None
    metric: str
    by: str
    groups: int
    left_out: int
    highest: str | None
    lowest: str | None
    gap: float | None
    gap_low: float | None
    gap_high: float | None
    baseline_gap: float | None
    excess: float | None
    low: float | None
    high: float | None
    signed: float | None
    ratio: float | None
    cost_gap: float | None
    xi: float | None
    floor: float | None
    floor_upper: float | None
    excess_floor: float | None
    excess_floor_upper: float | None
    seeds: int
    tag: str
    reason: str | None
    reason_code: str | None


class GapTable(BaseModel):
    """Gaps of all methods, epsilons and sets of attributes."""

    rows: list[Gap]
    metric: str
    title: str


class Disparity(BaseModel):
    """One group against the reference group."""

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
    tag: str
    reason: str | None
    reason_code: str | None


class DisparityTable(BaseModel):
    """Differences and ratios of all groups."""

    rows: list[Disparity]
    metric: str
    reference: str


class Mark(BaseModel):
    """One comparison of the planned family: one group against all other rows, for one method."""

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
    tag: str
    reason: str | None
    reason_code: str | None


class MarkTable(BaseModel):
    """The planned family of comparisons."""

    rows: list[Mark]


class Candidate(BaseModel):
    """One method and epsilon of the trade-off."""

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
    tag: str
    reason: str | None
    reason_code: str | None


class CandidateTable(BaseModel):
    """Candidates and the answer."""

    rows: list[Candidate]
    answer: str
    method: str | None
    epsilon_asked: float | None
    metric: str
    group_min: int
    max_cost: float


class RunRow(BaseModel):
    """A run: what was asked, spent and done."""

    id: str
    stack: str
    method: str
    seed: int
    epsilon_asked: float | None
    epsilon_spent: float | None
    noise_multiplier: float | None
    state: str
    reason: str | None
    parameters: dict[str, Any]
    accountant_check: dict[str, Any] | None
    events: list[Any] | None


class RunTable(BaseModel):
    """All runs of an audit."""

    rows: list[RunRow]


class StatisticTable(BaseModel):
    """Sufficient statistics per run, group, true label and part; audit-only."""

    rows: list[dict[str, Any]]


class QueueRow(BaseModel):
    """Jobs of one name in one queue."""

    job: str
    queue: str
    waiting: int
    working: int
    longest_wait_seconds: float | None


class QueueTable(BaseModel):
    """What waits and how long, of all teams together."""

    rows: list[QueueRow]


class AuditReceipt(BaseModel):
    """What was erased; the runs stay as the record of what privacy was spent."""

    erased_at: str
    erased_by: str
    audit: str
    files_deleted: int
    statistics_removed: int
    measurements_removed: int
