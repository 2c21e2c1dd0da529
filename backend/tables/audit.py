"""An audit and what it is made of: stacks that train together, runs inside them, and cached calibrations."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.tables.base import Base, Claimable, Identified


class Audit(Identified, Claimable, Base):
    """One question about one dataset: methods x epsilons x seeds, with the training settings.

    ``measured_stacks`` counts the finished stacks that the last ``audit.measure`` saw.
    """

    __tablename__ = "audit"
    __table_args__ = (
        CheckConstraint(
            "state IN ('planning', 'queued', 'running', 'finished', 'stopped', 'failed', 'erased')", name="state"
        ),
    )
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("dataset.id"), index=True)
    recipe_id: Mapped[str] = mapped_column(ForeignKey("recipe.id"))
    created_by: Mapped[str] = mapped_column(ForeignKey("person.id"))
    name: Mapped[str] = mapped_column(String(200))
    state: Mapped[str] = mapped_column(String(20), default="planning")
    question: Mapped[dict[str, Any]]
    delta: Mapped[float]
    forecast: Mapped[dict[str, Any]]
    claim: Mapped[dict[str, Any] | None]
    problem: Mapped[dict[str, Any] | None]
    stop_requested: Mapped[bool] = mapped_column(default=False, server_default="false")
    measured_stacks: Mapped[int] = mapped_column(default=0, server_default="0")
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class Stack(Identified, Claimable, Base):
    """The runs of one seed that train together as one tensor program.

    ``kernel`` and ``threads`` are part of the plan: the same stack, kernel and threads give the same bits, and a
    worker that lacks the kernel does not claim the stack. ``logits_key`` is the columnar file of evaluation logits.
    """

    __tablename__ = "stack"
    __table_args__ = (
        UniqueConstraint("audit_id", "number"),
        CheckConstraint("state IN ('waiting', 'training', 'finished', 'stopped', 'failed')", name="state"),
    )
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    audit_id: Mapped[str] = mapped_column(ForeignKey("audit.id"), index=True)
    number: Mapped[int]
    seed: Mapped[int]
    state: Mapped[str] = mapped_column(String(20), default="waiting")
    kernel: Mapped[str] = mapped_column(String(50))
    threads: Mapped[int]
    step: Mapped[int] = mapped_column(default=0, server_default="0")
    steps: Mapped[int]
    seconds: Mapped[float | None]
    logits_key: Mapped[str | None] = mapped_column(String(300))
    reason: Mapped[str | None] = mapped_column(String(500))


class Run(Identified, Base):
    """One trained network: method x epsilon x seed. ``events`` is what the accountant was handed."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("audit_id", "method", "epsilon_asked", "seed", postgresql_nulls_not_distinct=True),
        UniqueConstraint("stack_id", "position"),
        CheckConstraint("state IN ('waiting', 'training', 'finished', 'diverged', 'stopped', 'failed')", name="state"),
    )
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    audit_id: Mapped[str] = mapped_column(ForeignKey("audit.id"), index=True)
    stack_id: Mapped[str] = mapped_column(ForeignKey("stack.id"), index=True)
    position: Mapped[int]
    method: Mapped[str] = mapped_column(String(50))
    seed: Mapped[int]
    epsilon_asked: Mapped[float | None]
    epsilon_spent: Mapped[float | None]
    noise_multiplier: Mapped[float | None]
    parameters: Mapped[dict[str, Any]]
    events: Mapped[list[Any] | None]
    accountant_check: Mapped[dict[str, Any] | None]
    state: Mapped[str] = mapped_column(String(20), default="waiting")
    reason: Mapped[str | None] = mapped_column(String(500))


class Calibration(Identified, Base):
    """A noise multiplier found once for (sampling probability, steps, delta, epsilon); holds no personal data."""

    __tablename__ = "calibration"
    __table_args__ = (UniqueConstraint("sampling_probability", "steps", "delta", "epsilon"),)
    sampling_probability: Mapped[float]
    steps: Mapped[int]
    delta: Mapped[float]
    epsilon: Mapped[float]
    noise_multiplier: Mapped[float]
    epsilon_spent: Mapped[float]
    accountant_check: Mapped[dict[str, Any]]
