"""Teams, people, and the three ways in: one-time links, browser sessions, service tokens."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from backend.tables.base import Base, Identified

ROLES = ("analyst", "dpo", "auditor", "admin")
SCOPES = ("read", "run", "decide")


class Team(Identified, Base):
    """People who share datasets and audits; nobody else but a DPO or auditor sees them."""

    __tablename__ = "team"
    name: Mapped[str] = mapped_column(String(200), unique=True)


class Person(Identified, Base):
    """Somebody who signs in. The role says what they may do."""

    __tablename__ = "person"
    __table_args__ = (
        CheckConstraint("role IN ('analyst', 'dpo', 'auditor', 'admin')", name="role"),
        UniqueConstraint("issuer", "subject"),
    )
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(20))
    active: Mapped[bool] = mapped_column(default=True, server_default="true")
    email: Mapped[str | None] = mapped_column(String(254), unique=True)
    """In small letters; what one signs in with."""
    password_hash: Mapped[str | None] = mapped_column(String(300))
    issuer: Mapped[str | None] = mapped_column(String(300))
    """Who vouches for ``subject``, the name that an identity provider gives to this person."""
    subject: Mapped[str | None] = mapped_column(String(300))


class SignInLink(Identified, Base):
    """A link that signs one person in, once, before it expires. Only the hash of its secret is stored.

    ``purpose``: `sign-in` needs a press of a button, `invitation` also makes the account, `reset` a new password.
    """

    __tablename__ = "sign_in_link"
    __table_args__ = (CheckConstraint("purpose IN ('sign-in', 'invitation', 'reset')", name="purpose"),)
    purpose: Mapped[str] = mapped_column(String(20), default="sign-in", server_default="sign-in")
    person_id: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class BrowserSession(Identified, Base):
    """A signed-in browser; revocable on the server. Only the hash of its secret is stored.

    ``ended_by`` says why it was revoked: `here`, `elsewhere`, `everywhere`, `password`, `admin`.
    """

    __tablename__ = "browser_session"
    person_id: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    ended_by: Mapped[str | None] = mapped_column(String(20))
    browser: Mapped[str] = mapped_column(String(100), default="", server_default="")
    address: Mapped[str] = mapped_column(String(45), default="", server_default="")
    last_seen_at: Mapped[datetime | None]


class SignInCount(Base):
    """Failed sign-ins of one account or one address, in one window of time. The key is a hash, never a name."""

    __tablename__ = "sign_in_count"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    failures: Mapped[int] = mapped_column(default=0, server_default="0")
    since: Mapped[datetime]


class Token(Identified, Base):
    """A bearer token for internal tools: scoped, expiring, shown once. Only its hash is stored."""

    __tablename__ = "token"
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    person_id: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String(20)))
    expires_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class IdempotencyKey(Identified, Base):
    """The answer already given to a creating POST, so that sending it again creates nothing twice."""

    __tablename__ = "idempotency_key"
    __table_args__ = (UniqueConstraint("person_id", "key"),)
    person_id: Mapped[str] = mapped_column(ForeignKey("person.id"))
    key: Mapped[str] = mapped_column(String(200))
    route: Mapped[str] = mapped_column(String(200))
    body_sha256: Mapped[str] = mapped_column(String(64))
    object_id: Mapped[str | None] = mapped_column(String(32))
