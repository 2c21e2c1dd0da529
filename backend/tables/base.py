"""What every table shares: names for constraints, random ids, times, and the marks of a claimed job."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import uuid4

from sqlalchemy import DateTime, Integer, MetaData, String, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


def random_id() -> str:
    """A random 128-bit id as 32 hexadecimal characters; guessing one is hopeless."""
    return uuid4().hex


class Base(DeclarativeBase):
    """Root of all tables. Dictionaries and lists are stored as JSONB, times with their zone."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        dict[str, Any]: JSONB(none_as_null=True),
        list[Any]: JSONB(none_as_null=True),
        datetime: DateTime(timezone=True),
    }


class Identified:
    """A random primary key and the time of creation by the database's clock."""

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=random_id)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Claimable:
    """A row that a worker does something about: asked for, claimed with a lease, tried again.

    ``asked_at`` is when the job name last went to the queue; the sweeper sends it again when nobody took it.
    ``lease_until`` is by the database's clock; while it lies ahead the row belongs to ``worker``.
    """

    asked_at: Mapped[datetime | None]
    attempt: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    lease_until: Mapped[datetime | None]
    worker: Mapped[str | None] = mapped_column(String(200))
