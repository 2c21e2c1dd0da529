"""People and tokens, as REST shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field


class Me(BaseModel):
    """Whoever asks."""

    id: str
    name: str
    role: str
    team: str
    permissions: list[str]
    via: str


class TokenAsked(BaseModel):
    """A new token for oneself."""

    name: str = Field(max_length=200)
    scopes: list[str] = Field(description="Some of read, run, decide; never more than the role allows.")
    days: float = Field(90, gt=0, le=366)


class TokenView(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


class TokenMade(BaseModel):
    """The secret, shown this once."""

    token: str


class TokenList(BaseModel):
    """The asker's own tokens."""

    items: list[TokenView]
    next: None = None
