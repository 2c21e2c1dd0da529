"""The activity log: append-only, each row chained to the one before by its hash."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import DDL, BigInteger, String, event
from sqlalchemy.orm import Mapped, mapped_column

from backend.tables.base import Base

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


class Activity(Base):
    """Who did what to what, when, from where. Ids only: no name, no cell, no secret, so that a person can be renamed."""

    __tablename__ = "activity"
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    at: Mapped[datetime] = mapped_column(index=True)
    action: Mapped[str] = mapped_column(String(50), index=True)
    person_id: Mapped[str | None] = mapped_column(String(32), index=True)
    team_id: Mapped[str | None] = mapped_column(String(32))
    via: Mapped[str] = mapped_column(String(20))
    address: Mapped[str] = mapped_column(String(45))
    object_kind: Mapped[str | None] = mapped_column(String(30))
    object_id: Mapped[str | None] = mapped_column(String(32), index=True)
    details: Mapped[dict[str, Any]]
    previous_hash: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64), unique=True)


class ActivityEnd(Base):
    """The newest number and hash of the log, in its only row: a log that was cut at its end no longer fits it."""

    __tablename__ = "activity_end"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    number: Mapped[int] = mapped_column(BigInteger)
    hash: Mapped[str] = mapped_column(String(64))


for statement in (GUARD_FUNCTION, GUARD_TRIGGER):
    guard = DDL(statement.replace("%", "%%"))  # type: ignore[no-untyped-call]  # SQLAlchemy's own
    event.listen(Activity.__table__, "after_create", guard)
