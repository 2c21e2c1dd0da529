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
    """The smallest cost of accuracy (a share) that this group would show."""

    group: str
    smallest_detectable_cost: float | None
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


class CostTable(BaseModel):
    """Costs of all groups, methods and epsilons, and a sentence made from them."""

    rows: list[Cost]
    headline: str
    metric: str
    interval: str


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
