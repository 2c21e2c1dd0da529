"""The two layers of stored numbers: sufficient statistics per run, and measurements made from the logits.

All of it is computed on raw evaluation rows and is therefore ``audit-only``.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Float, ForeignKey, Identity, Integer, String, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from backend.tables.base import Base


class Statistic(Base):
    """Sufficient statistics of one run on the rows of one group, true label and part.

    ``predicted`` counts rows by predicted class. The four ``both_right`` ... counts and the ``*_difference`` sums are
    joint with the baseline of the same seed (null for the baseline itself); differences are baseline minus run.
    """

    __tablename__ = "statistic"
    __table_args__ = (UniqueConstraint("run_id", "group_id", "label", "part"),)
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    audit_id: Mapped[str] = mapped_column(ForeignKey("audit.id"), index=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("run.id"))
    group_id: Mapped[str] = mapped_column(ForeignKey("group.id"))
    label: Mapped[int]
    part: Mapped[str] = mapped_column(String(20))
    n: Mapped[int]
    predicted: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    loss: Mapped[float] = mapped_column(Float(53))
    loss_squared: Mapped[float] = mapped_column(Float(53))
    squared_error: Mapped[float] = mapped_column(Float(53))
    score: Mapped[float] = mapped_column(Float(53))
    both_right: Mapped[int | None]
    baseline_only_right: Mapped[int | None]
    run_only_right: Mapped[int | None]
    both_wrong: Mapped[int | None]
    loss_difference: Mapped[float | None] = mapped_column(Float(53))
    loss_difference_squared: Mapped[float | None] = mapped_column(Float(53))


class Measurement(Base):
    """Row-level sums of values averaged over seeds, made from the stored logits by ``audit.measure``.

    ``quantity`` is a metric's key (baseline minus run), ``level:`` and the key (the run itself, the baseline's too), or
    ``rest:accuracy`` (the difference of the group less that of all others; without epsilon, averaged over the epsilons).
    For one method, epsilon, group, part and quantity: over units u (rows, or persons), with D_u the unit's sum over its
    rows of the seed-mean and n_u its rows: ``units``, ``rows`` = sum n_u, ``total`` = sum D_u, ``total_squared`` =
    sum D_u^2, ``cross`` = sum D_u n_u, ``rows_squared`` = sum n_u^2, ``total_each_squared`` = mean over seeds of the sum
    over units of d_us^2 (for the residual). ``label`` is the true label that the metric rests on (null: all). ``reason``
    is a code of ``engine.metrics.reasons``.
    """

    __tablename__ = "measurement"
    __table_args__ = (
        UniqueConstraint(
            "audit_id",
            "method",
            "epsilon_asked",
            "group_id",
            "label",
            "part",
            "quantity",
            postgresql_nulls_not_distinct=True,
        ),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    audit_id: Mapped[str] = mapped_column(ForeignKey("audit.id"), index=True)
    method: Mapped[str] = mapped_column(String(50))
    epsilon_asked: Mapped[float | None]
    group_id: Mapped[str] = mapped_column(ForeignKey("group.id"))
    label: Mapped[int | None]
    part: Mapped[str] = mapped_column(String(20))
    quantity: Mapped[str] = mapped_column(String(50))
    seeds: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    units: Mapped[int]
    rows: Mapped[int]
    total: Mapped[float | None] = mapped_column(Float(53))
    total_squared: Mapped[float | None] = mapped_column(Float(53))
    cross: Mapped[float | None] = mapped_column(Float(53))
    rows_squared: Mapped[float] = mapped_column(Float(53))
    total_each_squared: Mapped[float | None] = mapped_column(Float(53))
    reason: Mapped[str | None] = mapped_column(String(200))


class RunValue(Base):
    """A metric of one run and group that counts cannot give (AUC, calibration), made from the logits."""

    __tablename__ = "run_value"
    __table_args__ = (UniqueConstraint("run_id", "group_id", "part", "metric"),)
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    audit_id: Mapped[str] = mapped_column(ForeignKey("audit.id"), index=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("run.id"))
    group_id: Mapped[str] = mapped_column(ForeignKey("group.id"))
    part: Mapped[str] = mapped_column(String(20))
    metric: Mapped[str] = mapped_column(String(50))
    value: Mapped[float | None] = mapped_column(Float(53))
    rows: Mapped[int]
    reason: Mapped[str | None] = mapped_column(String(50))


class GapFloor(Base):
    """What a gap and an excess gap would be if all groups were equal, by shuffling whole units over groups.

    ``by`` holds the names of the attributes that make the groups. Means over ``draws`` shuffles, and 95th percentiles.
    """

    __tablename__ = "gap_floor"
    __table_args__ = (
        UniqueConstraint("audit_id", "method", "epsilon_asked", "metric", "by", postgresql_nulls_not_distinct=True),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    audit_id: Mapped[str] = mapped_column(ForeignKey("audit.id"), index=True)
    method: Mapped[str] = mapped_column(String(50))
    epsilon_asked: Mapped[float | None]
    metric: Mapped[str] = mapped_column(String(50))
    by: Mapped[str]
    gap: Mapped[float | None] = mapped_column(Float(53))
    gap_upper: Mapped[float | None] = mapped_column(Float(53))
    excess: Mapped[float | None] = mapped_column(Float(53))
    excess_upper: Mapped[float | None] = mapped_column(Float(53))
    draws: Mapped[int]
    reason: Mapped[str | None] = mapped_column(String(50))
