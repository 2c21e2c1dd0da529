"""News, append-only. Numbered per stream under that stream's row lock, so that a reader misses nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, String, func
from sqlalchemy.orm import Mapped, mapped_column

from backend.tables.base import Base


class Event(Base):
    """Event ``number`` of one stream; a stream is an audit or a dataset and has its id.

    ``position`` orders events of different streams roughly; it is not gap-free and becomes visible out of order.
    """

    __tablename__ = "event"
    __table_args__ = (Index("ix_event_team_id_position", "team_id", "position"),)
    stream: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    position: Mapped[int] = mapped_column(BigInteger, Identity(), unique=True)
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"))
    kind: Mapped[str] = mapped_column(String(50))
    payload: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
