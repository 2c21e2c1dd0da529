"""Who somebody is and what they may do: sign-in links, browser sessions, tokens, ownership.

Secrets are 256 random bits; only their SHA-256 is stored (they are not guessable, so no slow hash is needed).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, select, true
from sqlalchemy.orm import Session

from backend.errors import InputProblem, NotAllowed, NotFound, NotSignedIn
from backend.people import queries
from backend.settings import Settings
from backend.tables import SCOPES, BrowserSession, Person, SignInLink, Team, Token

Permission = Literal["read", "run", "decide", "admin"]

PERMISSIONS_OF_ROLE: dict[str, frozenset[str]] = {
    "analyst": frozenset({"read", "run"}),
    "dpo": frozenset({"read", "decide"}),
    "auditor": frozenset({"read"}),
    "admin": frozenset({"read", "admin"}),
}
READS_ALL_TEAMS = frozenset({"dpo", "auditor"})
NAME_OF_DEMO_PERSON = {"analyst": "Demo analyst", "dpo": "Demo data-protection officer", "admin": "Demo admin"}

LINK_HOURS = 24
SESSION_DAYS = 14
TOKEN_DAYS = 90
TOKEN_MARK = "cp_"  # noqa: S105 - a prefix by which secret scanners can find our tokens

Row = TypeVar("Row")


@dataclass(frozen=True)
class Principal:
    """Whoever asks: a person, through a browser session or a token. ``scopes`` are the permissions they hold here."""

    person_id: str
    team_id: str
    name: str
    role: str
    scopes: frozenset[str]
    via: Literal["session", "token"]

    @property
    def reads_all_teams(self) -> bool:
        return self.role in READS_ALL_TEAMS


def require(principal: Principal, *permissions: Permission) -> None:
    """Refuses unless the principal holds one of ``permissions``."""
    if not principal.scopes.intersection(permissions):
        raise NotAllowed(
            f"This needs the permission '{permissions[0]}'. {principal.name} has the role '{principal.role}' and holds "
            f"{', '.join(sorted(principal.scopes)) or 'none'} here. Ask somebody with that role."
        )


def visible(principal: Principal, table: Any) -> ColumnElement[bool]:
    """The condition under which rows of ``table`` may be read by the principal; every list applies it."""
    return true() if principal.reads_all_teams else table.team_id == principal.team_id


def fetch_owned(session: Session, principal: Principal, table: type[Row], object_id: str, *, lock: bool = False) -> Row:
    """THE ownership function: the row, if the principal may see it.

    Args:
        lock: lock the row for a change; then it must be of the principal's own team, whatever the role.

    Raises:
        NotFound: unknown, or of another team; the two are not told apart.
    """
    columns: Any = table
    condition = columns.team_id == principal.team_id if lock else visible(principal, columns)
    found = select(table).where(columns.id == _plain(object_id), condition)
    if lock:
        found = found.with_for_update().execution_options(populate_existing=True)
    row = session.scalar(found)
    if row is None:
        raise NotFound(columns.__tablename__)
    return row


def _plain(object_id: str) -> str:
    """The id, or one that no row has where it holds what the database cannot compare."""
    return object_id if object_id.isascii() and object_id.isalnum() and len(object_id) <= 32 else ""


def ensure_demo_people(session: Session, settings: Settings) -> dict[str, str]:
    """The first team with an analyst, a DPO and an admin; made once. Returns role -> person id."""
    queries.lock_people(session)
    team = queries.team_named(session, settings.team_name)
    if team is None:
        team = Team(name=settings.team_name)
        session.add(team)
        session.flush()
    people = {}
    for role, name in NAME_OF_DEMO_PERSON.items():
        person = queries.person_of_role(session, team.id, role)
        if person is None:
            person = Person(team_id=team.id, name=name, role=role)
            session.add(person)
            session.flush()
        people[role] = person.id
    return people


def make_link(session: Session, person_id: str, *, hours: float = LINK_HOURS) -> str:
    """A one-time sign-in link's secret; the address is ``sign_in_url`` of it."""
    secret = secrets.token_urlsafe(32)
    session.add(SignInLink(person_id=person_id, secret_hash=hashed(secret), expires_at=_in(hours=hours)))
    session.flush()
    return secret


def sign_in_url(settings: Settings, secret: str) -> str:
    """The address a person opens; a page with a button, so that a link preview does not burn it."""
    return f"{settings.base_url.rstrip('/')}/sign-in/{secret}"


def link_is_open(session: Session, secret: str) -> bool:
    """Whether a link can still be redeemed. Reading changes nothing."""
    return queries.open_link(session, hashed(secret)) is not None


def link_person(session: Session, secret: str) -> dict[str, str] | None:
    """Name and role of whoever a link signs in, while it can be redeemed. Reading changes nothing."""
    link = queries.open_link(session, hashed(secret))
    person = link and queries.active_person(session, link.person_id)
    return {"name": person.name, "role": person.role} if person else None


def redeem_link(session: Session, secret: str) -> str:
    """Uses a link up and returns the secret of a new browser session.

    Raises:
        NotSignedIn: unknown, used or expired.
    """
    link = queries.open_link(session, hashed(secret), lock=True)
    person = link and queries.active_person(session, link.person_id)
    if link is None or person is None:
        raise NotSignedIn("This sign-in link cannot be used. It was used already or has expired. Ask for a fresh one.")
    link.used_at = datetime.now(UTC)
    session_secret = secrets.token_urlsafe(32)
    session.add(
        BrowserSession(person_id=person.id, secret_hash=hashed(session_secret), expires_at=_in(hours=24 * SESSION_DAYS))
    )
    session.flush()
    return session_secret


def sign_out(session: Session, session_secret: str) -> None:
    """Revokes a browser session on the server."""
    queries.revoke_session(session, hashed(session_secret))


def make_token(
    session: Session, person_id: str, *, name: str, scopes: Sequence[str] = ("read", "run"), days: float = TOKEN_DAYS
) -> str:
    """A bearer token's secret, shown once.

    Raises:
        InputProblem: an unknown scope, or a name or a life out of range.
    """
    if not scopes or not set(scopes) <= set(SCOPES):
        raise InputProblem.at("scopes", f"Scopes must be some of {', '.join(SCOPES)}.")
    if not 0 < days <= 366:
        raise InputProblem.at("days", "A token lives between 1 and 366 days.")
    if not 0 < len(name) <= 200:
        raise InputProblem.at("name", "A token needs a name of at most 200 characters.")
    person = queries.active_person(session, person_id)
    if person is None:
        raise NotFound("person")
    secret = TOKEN_MARK + secrets.token_urlsafe(32)
    session.add(
        Token(
            team_id=person.team_id,
            person_id=person.id,
            name=name,
            secret_hash=hashed(secret),
            scopes=sorted(set(scopes)),
            expires_at=_in(hours=24 * days),
        )
    )
    session.flush()
    return secret


def list_tokens(session: Session, principal: Principal) -> list[dict[str, Any]]:
    """The principal's own tokens, without their secrets."""
    return [token_view(token) for token in queries.tokens_of(session, principal.person_id)]


def token_view(token: Token) -> dict[str, Any]:
    """A token as its owner sees it; the secret is not kept."""
    return {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "created_at": token.created_at,
    }


def revoke_token(session: Session, principal: Principal, token_id: str) -> None:
    """Ends one of the principal's own tokens."""
    token = fetch_owned(session, principal, Token, token_id, lock=True)
    if token.person_id != principal.person_id and "admin" not in principal.scopes:
        raise NotFound("token")
    token.revoked_at = datetime.now(UTC)


def principal_of_session(session: Session, session_secret: str) -> Principal | None:
    """Whoever a browser session belongs to, while it lives."""
    person = queries.person_of_session(session, hashed(session_secret))
    return None if person is None else _principal(person, PERMISSIONS_OF_ROLE[person.role], "session")


def principal_of_token(session: Session, secret: str) -> Principal | None:
    """Whoever a token belongs to, with the permissions that role and scopes share."""
    found = queries.token_with_person(session, hashed(secret))
    if found is None:
        return None
    token, person = found
    queries.touch_token(session, token.id)
    return _principal(person, PERMISSIONS_OF_ROLE[person.role] & frozenset(token.scopes), "token")


def _principal(person: Person, scopes: frozenset[str], via: Literal["session", "token"]) -> Principal:
    return Principal(person.id, person.team_id, person.name, person.role, scopes, via)


def hashed(secret: str) -> str:
    """The stored form of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _in(*, hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)
