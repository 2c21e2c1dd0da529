"""Accounts, ends of sessions, counted sign-ins, and the activity log with its guard."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003_people"
down_revision = "0002_numbers"
branch_labels = None
depends_on = None

GUARD_FUNCTION = """
CREATE OR REPLACE FUNCTION activity_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The activity log is append-only: % is refused.', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$
"""
GUARD_TRIGGER = """
CREATE TRIGGER activity_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON activity
FOR EACH STATEMENT EXECUTE FUNCTION activity_is_append_only()
"""


def upgrade() -> None:
    _people()
    op.create_table(
        "sign_in_count",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_sign_in_count")),
    )
    op.create_table(
        "activity",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("action", sa.String(length=50), nullable=False),
        sa.Column("person_id", sa.String(length=32), nullable=True),
        sa.Column("team_id", sa.String(length=32), nullable=True),
        sa.Column("via", sa.String(length=20), nullable=False),
        sa.Column("address", sa.String(length=45), nullable=False),
        sa.Column("object_kind", sa.String(length=30), nullable=True),
        sa.Column("object_id", sa.String(length=32), nullable=True),
        sa.Column("details", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_activity")),
        sa.UniqueConstraint("hash", name=op.f("uq_activity_hash")),
    )
    for column in ("at", "action", "person_id", "object_id"):
        op.create_index(op.f(f"ix_activity_{column}"), "activity", [column], unique=False)
    op.create_table(
        "activity_end",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_activity_end")),
    )
    op.execute(GUARD_FUNCTION)
    op.execute(GUARD_TRIGGER)


def _people() -> None:
    for name, length in (("email", 254), ("password_hash", 300), ("issuer", 300), ("subject", 300)):
        op.add_column("person", sa.Column(name, sa.String(length=length), nullable=True))
    op.create_unique_constraint(op.f("uq_person_email"), "person", ["email"])
    op.create_unique_constraint(op.f("uq_person_issuer_subject"), "person", ["issuer", "subject"])
    op.add_column("sign_in_link", sa.Column("purpose", sa.String(length=20), server_default="sign-in", nullable=False))
    op.create_check_constraint(
        op.f("ck_sign_in_link_purpose"), "sign_in_link", "purpose IN ('sign-in', 'invitation', 'reset')"
    )
    op.add_column("browser_session", sa.Column("ended_by", sa.String(length=20), nullable=True))
    op.add_column("browser_session", sa.Column("browser", sa.String(length=100), server_default="", nullable=False))
    op.add_column("browser_session", sa.Column("address", sa.String(length=45), server_default="", nullable=False))
    op.add_column("browser_session", sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_table("activity_end")
    op.drop_table("activity")
    op.execute("DROP FUNCTION activity_is_append_only()")
    op.drop_table("sign_in_count")
    for column in ("last_seen_at", "address", "browser", "ended_by"):
        op.drop_column("browser_session", column)
    op.drop_constraint(op.f("ck_sign_in_link_purpose"), "sign_in_link", type_="check")
    op.drop_column("sign_in_link", "purpose")
    op.drop_constraint(op.f("uq_person_issuer_subject"), "person", type_="unique")
    op.drop_constraint(op.f("uq_person_email"), "person", type_="unique")
    for column in ("subject", "issuer", "password_hash", "email"):
        op.drop_column("person", column)
