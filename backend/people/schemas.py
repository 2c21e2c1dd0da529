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
    csrf_token: str | None = Field(description="For cookies without a browser: send it as X-CSRF-Token.")


class Invitation(BaseModel):
    """A new person."""

    name: str = Field(max_length=200)
    email: str = Field(max_length=254)
    role: str = Field(description="analyst, dpo, auditor or admin.")
    team: str | None = Field(None, description="Id of a team; without, your own.")


class PersonChange(BaseModel):
    """What shall be different; the rest stays."""

    name: str | None = None
    email: str | None = None
    role: str | None = None
    team: str | None = None
    active: bool | None = Field(None, description="False switches the account off and ends its sessions and links.")


class PersonView(BaseModel):
    """Somebody who signs in; `state` is invited, active or off."""

    id: str
    name: str
    email: str | None
    role: str
    team: str
    state: str
    created_at: datetime


class PersonWithLink(PersonView):
    """`link` is shown this once, where no mail was sent."""

    mailed: bool
    link: str | None


class PersonList(BaseModel):
    """People in pages."""

    items: list[PersonView]
    next: str | None


class TeamAsked(BaseModel):
    """A team's name."""

    name: str = Field(max_length=200)


class TeamView(BaseModel):
    """People who share datasets and audits."""

    id: str
    name: str
    created_at: datetime


class TeamList(BaseModel):
    """An admin sees all teams, everybody else their own."""

    items: list[TeamView]
    next: None = None


class SessionView(BaseModel):
    """A signed-in browser; `this` is the one that asks."""

    id: str
    browser: str
    address: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    this: bool


class SessionList(BaseModel):
    """The browsers in which one is signed in."""

    items: list[SessionView]
    next: None = None


class Ended(BaseModel):
    """How many sessions ended."""

    ended: int


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
    expired: bool
    last_used_at: datetime | None


class TokenMade(BaseModel):
    """The secret, shown this once."""

    token: str


class TokenList(BaseModel):
    """The asker's own tokens."""

    items: list[TokenView]
    next: None = None
