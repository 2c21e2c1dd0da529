"""Values made from logits, permutation floors, persons of a group; measurements are called by their metric."""

import sqlalchemy as sa
from alembic import op

revision = "0002_numbers"
down_revision = "0001"
branch_labels = None
depends_on = None

CALLED = (
    ("correct", None, "accuracy"),
    ("loss", None, "loss"),
    ("predicted_positive", None, "selection_rate"),
    ("predicted_positive", 1, "true_positive_rate"),
    ("predicted_positive", 0, "false_positive_rate"),
)
"""Earlier quantity and label, and the metric they stand for."""


def upgrade() -> None:
    op.add_column("group", sa.Column("test_units", sa.Integer(), nullable=True))
    measurement = sa.table("measurement", sa.column("quantity"), sa.column("label"))
    for quantity, label, metric in CALLED:
        chosen = (measurement.c.quantity == quantity) & measurement.c.label.is_not_distinct_from(label)
        op.execute(measurement.update().where(chosen).values(quantity=metric))
    op.execute(measurement.delete().where(measurement.c.quantity.in_(["correct", "predicted_positive"])))
    op.execute(measurement.delete().where((measurement.c.quantity == "loss") & measurement.c.label.is_not(None)))
    _run_value()
    _gap_floor()


def _run_value() -> None:
    op.create_table(
        "run_value",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("audit_id", sa.String(length=32), nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("group_id", sa.String(length=32), nullable=False),
        sa.Column("part", sa.String(length=20), nullable=False),
        sa.Column("metric", sa.String(length=50), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=50), nullable=True),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_run_value_team_id_team")),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], name=op.f("fk_run_value_audit_id_audit")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_value_run_id_run")),
        sa.ForeignKeyConstraint(["group_id"], ["group.id"], name=op.f("fk_run_value_group_id_group")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_value")),
        sa.UniqueConstraint(
            "run_id", "group_id", "part", "metric", name=op.f("uq_run_value_run_id_group_id_part_metric")
        ),
    )
    op.create_index(op.f("ix_run_value_audit_id"), "run_value", ["audit_id"], unique=False)
    op.create_index(op.f("ix_run_value_team_id"), "run_value", ["team_id"], unique=False)


def _gap_floor() -> None:
    op.create_table(
        "gap_floor",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("audit_id", sa.String(length=32), nullable=False),
        sa.Column("method", sa.String(length=50), nullable=False),
        sa.Column("epsilon_asked", sa.Double(), nullable=True),
        sa.Column("metric", sa.String(length=50), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("gap", sa.Float(precision=53), nullable=True),
        sa.Column("gap_upper", sa.Float(precision=53), nullable=True),
        sa.Column("excess", sa.Float(precision=53), nullable=True),
        sa.Column("excess_upper", sa.Float(precision=53), nullable=True),
        sa.Column("draws", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=50), nullable=True),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_gap_floor_team_id_team")),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], name=op.f("fk_gap_floor_audit_id_audit")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gap_floor")),
        sa.UniqueConstraint(
            "audit_id",
            "method",
            "epsilon_asked",
            "metric",
            "by",
            name=op.f("uq_gap_floor_audit_id_method_epsilon_asked_metric_by"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_index(op.f("ix_gap_floor_audit_id"), "gap_floor", ["audit_id"], unique=False)
    op.create_index(op.f("ix_gap_floor_team_id"), "gap_floor", ["team_id"], unique=False)


def downgrade() -> None:
    op.drop_table("gap_floor")
    op.drop_table("run_value")
    measurement = sa.table("measurement", sa.column("quantity"), sa.column("label"))
    known = [metric for _, _, metric in CALLED]
    op.execute(measurement.delete().where(measurement.c.quantity.not_in(known)))
    for quantity, _, metric in CALLED:
        op.execute(measurement.update().where(measurement.c.quantity == metric).values(quantity=quantity))
    op.drop_column("group", "test_units")
