"""The first tables: teams and people, datasets and groups, audits, runs and their numbers, events."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "calibration",
        sa.Column("sampling_probability", sa.Double(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("epsilon", sa.Double(), nullable=False),
        sa.Column("noise_multiplier", sa.Double(), nullable=False),
        sa.Column("epsilon_spent", sa.Double(), nullable=False),
        sa.Column("accountant_check", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_calibration")),
        sa.UniqueConstraint(
            "sampling_probability",
            "steps",
            "delta",
            "epsilon",
            name=op.f("uq_calibration_sampling_probability_steps_delta_epsilon"),
        ),
    )
    op.create_table(
        "team",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_team")),
        sa.UniqueConstraint("name", name=op.f("uq_team_name")),
    )
    op.create_table(
        "event",
        sa.Column("stream", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=50), nullable=False),
        sa.Column("payload", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_event_team_id_team")),
        sa.PrimaryKeyConstraint("stream", "number", name=op.f("pk_event")),
        sa.UniqueConstraint("position", name=op.f("uq_event_position")),
    )
    op.create_index("ix_event_team_id_position", "event", ["team_id", "position"], unique=False)
    op.create_table(
        "person",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("role IN ('analyst', 'dpo', 'auditor', 'admin')", name=op.f("ck_person_role")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_person_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
    )
    op.create_index(op.f("ix_person_team_id"), "person", ["team_id"], unique=False)
    op.create_table(
        "browser_session",
        sa.Column("person_id", sa.String(length=32), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_browser_session_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_browser_session")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_browser_session_secret_hash")),
    )
    op.create_index(op.f("ix_browser_session_person_id"), "browser_session", ["person_id"], unique=False)
    op.create_table(
        "dataset",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("created_by", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("problem", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("sample", sa.String(length=50), nullable=True),
        sa.Column("file_name", sa.String(length=300), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("storage_key", sa.String(length=300), nullable=True),
        sa.Column("test_file_name", sa.String(length=300), nullable=True),
        sa.Column("test_sha256", sa.String(length=64), nullable=True),
        sa.Column("test_storage_key", sa.String(length=300), nullable=True),
        sa.Column("file_key", sa.LargeBinary(), nullable=True),
        sa.Column("asked_recipe", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("receipt", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.CheckConstraint("state IN ('received', 'profiled', 'refused', 'erased')", name=op.f("ck_dataset_state")),
        sa.ForeignKeyConstraint(["created_by"], ["person.id"], name=op.f("fk_dataset_created_by_person")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_dataset_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset")),
    )
    op.create_index(op.f("ix_dataset_team_id"), "dataset", ["team_id"], unique=False)
    op.create_table(
        "idempotency_key",
        sa.Column("person_id", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("route", sa.String(length=200), nullable=False),
        sa.Column("body_sha256", sa.String(length=64), nullable=False),
        sa.Column("object_id", sa.String(length=32), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_idempotency_key_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_idempotency_key")),
        sa.UniqueConstraint("person_id", "key", name=op.f("uq_idempotency_key_person_id_key")),
    )
    op.create_table(
        "sign_in_link",
        sa.Column("person_id", sa.String(length=32), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_sign_in_link_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_link")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_sign_in_link_secret_hash")),
    )
    op.create_index(op.f("ix_sign_in_link_person_id"), "sign_in_link", ["person_id"], unique=False)
    op.create_table(
        "token",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("person_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.String(length=20)), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_token_person_id_person")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_token_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_token_secret_hash")),
    )
    op.create_index(op.f("ix_token_person_id"), "token", ["person_id"], unique=False)
    op.create_index(op.f("ix_token_team_id"), "token", ["team_id"], unique=False)
    op.create_table(
        "recipe",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("dataset_id", sa.String(length=32), nullable=False),
        sa.Column("created_by", sa.String(length=32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reading", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("profile", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("roles", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("encoding", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("summary", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("table_key", sa.String(length=300), nullable=True),
        sa.Column("problem", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.CheckConstraint("state IN ('read', 'counting', 'ready', 'refused')", name=op.f("ck_recipe_state")),
        sa.ForeignKeyConstraint(["created_by"], ["person.id"], name=op.f("fk_recipe_created_by_person")),
        sa.ForeignKeyConstraint(["dataset_id"], ["dataset.id"], name=op.f("fk_recipe_dataset_id_dataset")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_recipe_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipe")),
        sa.UniqueConstraint("dataset_id", "version", name=op.f("uq_recipe_dataset_id_version")),
    )
    op.create_index(op.f("ix_recipe_dataset_id"), "recipe", ["dataset_id"], unique=False)
    op.create_index(op.f("ix_recipe_team_id"), "recipe", ["team_id"], unique=False)
    op.create_table(
        "audit",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("dataset_id", sa.String(length=32), nullable=False),
        sa.Column("recipe_id", sa.String(length=32), nullable=False),
        sa.Column("created_by", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("question", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("forecast", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("claim", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("problem", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("stop_requested", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("measured_stacks", sa.Integer(), server_default="0", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.CheckConstraint(
            "state IN ('planning', 'queued', 'running', 'finished', 'stopped', 'failed', 'erased')",
            name=op.f("ck_audit_state"),
        ),
        sa.ForeignKeyConstraint(["created_by"], ["person.id"], name=op.f("fk_audit_created_by_person")),
        sa.ForeignKeyConstraint(["dataset_id"], ["dataset.id"], name=op.f("fk_audit_dataset_id_dataset")),
        sa.ForeignKeyConstraint(["recipe_id"], ["recipe.id"], name=op.f("fk_audit_recipe_id_recipe")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_audit_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_dataset_id"), "audit", ["dataset_id"], unique=False)
    op.create_index(op.f("ix_audit_team_id"), "audit", ["team_id"], unique=False)
    op.create_table(
        "group",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("recipe_id", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=2000), nullable=False),
        sa.Column("attributes", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("train", sa.Integer(), nullable=False),
        sa.Column("validation", sa.Integer(), nullable=False),
        sa.Column("test", sa.Integer(), nullable=False),
        sa.Column("label_counts", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("base_rate", sa.Double(), nullable=True),
        sa.Column("estimable", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["recipe_id"], ["recipe.id"], name=op.f("fk_group_recipe_id_recipe")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_group_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_group")),
        sa.UniqueConstraint("recipe_id", "key", name=op.f("uq_group_recipe_id_key")),
        sa.UniqueConstraint("recipe_id", "position", name=op.f("uq_group_recipe_id_position")),
    )
    op.create_index(op.f("ix_group_recipe_id"), "group", ["recipe_id"], unique=False)
    op.create_index(op.f("ix_group_team_id"), "group", ["team_id"], unique=False)
    op.create_table(
        "measurement",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("audit_id", sa.String(length=32), nullable=False),
        sa.Column("method", sa.String(length=50), nullable=False),
        sa.Column("epsilon_asked", sa.Double(), nullable=True),
        sa.Column("group_id", sa.String(length=32), nullable=False),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("part", sa.String(length=20), nullable=False),
        sa.Column("quantity", sa.String(length=50), nullable=False),
        sa.Column("seeds", postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("total", sa.Float(precision=53), nullable=True),
        sa.Column("total_squared", sa.Float(precision=53), nullable=True),
        sa.Column("cross", sa.Float(precision=53), nullable=True),
        sa.Column("rows_squared", sa.Float(precision=53), nullable=False),
        sa.Column("total_each_squared", sa.Float(precision=53), nullable=True),
        sa.Column("reason", sa.String(length=200), nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], name=op.f("fk_measurement_audit_id_audit")),
        sa.ForeignKeyConstraint(["group_id"], ["group.id"], name=op.f("fk_measurement_group_id_group")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_measurement_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurement")),
        sa.UniqueConstraint(
            "audit_id",
            "method",
            "epsilon_asked",
            "group_id",
            "label",
            "part",
            "quantity",
            name=op.f("uq_measurement_audit_id_method_epsilon_asked_group_id_label_part_quantity"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_index(op.f("ix_measurement_audit_id"), "measurement", ["audit_id"], unique=False)
    op.create_index(op.f("ix_measurement_team_id"), "measurement", ["team_id"], unique=False)
    op.create_table(
        "stack",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("audit_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("kernel", sa.String(length=50), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), server_default="0", nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("logits_key", sa.String(length=300), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.CheckConstraint(
            "state IN ('waiting', 'training', 'finished', 'stopped', 'failed')", name=op.f("ck_stack_state")
        ),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], name=op.f("fk_stack_audit_id_audit")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_stack_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stack")),
        sa.UniqueConstraint("audit_id", "number", name=op.f("uq_stack_audit_id_number")),
    )
    op.create_index(op.f("ix_stack_audit_id"), "stack", ["audit_id"], unique=False)
    op.create_index(op.f("ix_stack_team_id"), "stack", ["team_id"], unique=False)
    op.create_table(
        "run",
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("audit_id", sa.String(length=32), nullable=False),
        sa.Column("stack_id", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("method", sa.String(length=50), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("epsilon_asked", sa.Double(), nullable=True),
        sa.Column("epsilon_spent", sa.Double(), nullable=True),
        sa.Column("noise_multiplier", sa.Double(), nullable=True),
        sa.Column("parameters", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("events", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("accountant_check", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "state IN ('waiting', 'training', 'finished', 'diverged', 'stopped', 'failed')", name=op.f("ck_run_state")
        ),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], name=op.f("fk_run_audit_id_audit")),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name=op.f("fk_run_stack_id_stack")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_run_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint(
            "audit_id",
            "method",
            "epsilon_asked",
            "seed",
            name=op.f("uq_run_audit_id_method_epsilon_asked_seed"),
            postgresql_nulls_not_distinct=True,
        ),
        sa.UniqueConstraint("stack_id", "position", name=op.f("uq_run_stack_id_position")),
    )
    op.create_index(op.f("ix_run_audit_id"), "run", ["audit_id"], unique=False)
    op.create_index(op.f("ix_run_stack_id"), "run", ["stack_id"], unique=False)
    op.create_index(op.f("ix_run_team_id"), "run", ["team_id"], unique=False)
    op.create_table(
        "statistic",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("team_id", sa.String(length=32), nullable=False),
        sa.Column("audit_id", sa.String(length=32), nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("group_id", sa.String(length=32), nullable=False),
        sa.Column("label", sa.Integer(), nullable=False),
        sa.Column("part", sa.String(length=20), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("predicted", postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.Column("loss", sa.Float(precision=53), nullable=False),
        sa.Column("loss_squared", sa.Float(precision=53), nullable=False),
        sa.Column("squared_error", sa.Float(precision=53), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=False),
        sa.Column("both_right", sa.Integer(), nullable=True),
        sa.Column("baseline_only_right", sa.Integer(), nullable=True),
        sa.Column("run_only_right", sa.Integer(), nullable=True),
        sa.Column("both_wrong", sa.Integer(), nullable=True),
        sa.Column("loss_difference", sa.Float(precision=53), nullable=True),
        sa.Column("loss_difference_squared", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], name=op.f("fk_statistic_audit_id_audit")),
        sa.ForeignKeyConstraint(["group_id"], ["group.id"], name=op.f("fk_statistic_group_id_group")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_statistic_run_id_run")),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name=op.f("fk_statistic_team_id_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_statistic")),
        sa.UniqueConstraint(
            "run_id", "group_id", "label", "part", name=op.f("uq_statistic_run_id_group_id_label_part")
        ),
    )
    op.create_index(op.f("ix_statistic_audit_id"), "statistic", ["audit_id"], unique=False)
    op.create_index(op.f("ix_statistic_team_id"), "statistic", ["team_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_statistic_team_id"), table_name="statistic")
    op.drop_index(op.f("ix_statistic_audit_id"), table_name="statistic")
    op.drop_table("statistic")
    op.drop_index(op.f("ix_run_team_id"), table_name="run")
    op.drop_index(op.f("ix_run_stack_id"), table_name="run")
    op.drop_index(op.f("ix_run_audit_id"), table_name="run")
    op.drop_table("run")
    op.drop_index(op.f("ix_stack_team_id"), table_name="stack")
    op.drop_index(op.f("ix_stack_audit_id"), table_name="stack")
    op.drop_table("stack")
    op.drop_index(op.f("ix_measurement_team_id"), table_name="measurement")
    op.drop_index(op.f("ix_measurement_audit_id"), table_name="measurement")
    op.drop_table("measurement")
    op.drop_index(op.f("ix_group_team_id"), table_name="group")
    op.drop_index(op.f("ix_group_recipe_id"), table_name="group")
    op.drop_table("group")
    op.drop_index(op.f("ix_audit_team_id"), table_name="audit")
    op.drop_index(op.f("ix_audit_dataset_id"), table_name="audit")
    op.drop_table("audit")
    op.drop_index(op.f("ix_recipe_team_id"), table_name="recipe")
    op.drop_index(op.f("ix_recipe_dataset_id"), table_name="recipe")
    op.drop_table("recipe")
    op.drop_index(op.f("ix_token_team_id"), table_name="token")
    op.drop_index(op.f("ix_token_person_id"), table_name="token")
    op.drop_table("token")
    op.drop_index(op.f("ix_sign_in_link_person_id"), table_name="sign_in_link")
    op.drop_table("sign_in_link")
    op.drop_table("idempotency_key")
    op.drop_index(op.f("ix_dataset_team_id"), table_name="dataset")
    op.drop_table("dataset")
    op.drop_index(op.f("ix_browser_session_person_id"), table_name="browser_session")
    op.drop_table("browser_session")
    op.drop_index(op.f("ix_person_team_id"), table_name="person")
    op.drop_table("person")
    op.drop_index("ix_event_team_id_position", table_name="event")
    op.drop_table("event")
    op.drop_table("team")
    op.drop_table("calibration")
