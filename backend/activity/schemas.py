"""The activity log, as REST shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class ActivityView(BaseModel):
    """One thing done. `hash` chains it to the row before."""

    number: int
    at: datetime
    action: str
    person: str | None = Field(description="The name that this person has now; not part of the hash.")
    person_id: str | None
    team_id: str | None
    via: str
    address: str
    object: str | None = Field(description="The name, where the object is a person; not part of the hash.")
    object_kind: str | None
    object_id: str | None
    details: dict[str, Any]
    previous_hash: str
    hash: str


class ActivityList(BaseModel):
    """The log in pages, newest first."""

    items: list[ActivityView]
    next: str | None


class ChainCheck(BaseModel):
    """Note the newest number and hash elsewhere: then even a cut end shows."""

    whole: bool
    rows: int
    broken_at: int | None
    reason: str | None
    newest_number: int
    newest_hash: str
