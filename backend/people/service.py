"""Who somebody is and what they may do: sign-in links, browser sessions, tokens, ownership.

Secrets are 256 random bits; only their SHA-256 is stored (they are not guessable, so no slow hash is needed).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, select, true
from sqlalchemy.orm import Session

from backend.chain import Somebody, record
from backend.errors import InputProblem, NotAllowed, NotFound, NotSignedIn
from backend.people import queries
from backend.settings import Settings
from backend.tables import SCOPES, BrowserSession, Person, SignInLink, Team, Token

Permission = Literal["read", "run", "decide", "oversee", "admin"]

PERMISSIONS_OF_ROLE: dict[str, frozenset[str]] = {
    "analyst": frozenset({"read", "run"}),
    "dpo": frozenset({"read", "decide", "oversee"}),
    "auditor": frozenset({"read", "oversee"}),
    "admin": frozenset({"read", "oversee", "admin"}),
}
COMES_WITH = {"read": "oversee"}
"""Scopes of a token that bring a permission along, where the role has it."""
READS_ALL_TEAMS = frozenset({"dpo", "auditor"})
NAME_OF_DEMO_PERSON = {"analyst": "Demo analyst", "dpo": "Demo data-protection officer", "admin": "Demo admin"}

Purpose = Literal["sign-in", "invitation", "reset"]
HOURS_OF: dict[Purpose, float] = {"sign-in": 24, "invitation": 7 * 24, "reset": 24}
SESSION_DAYS = 14
TOKEN_DAYS = 90
TOKEN_SCOPES = SCOPES
TOKEN_MARK = "cp_"  # noqa: S105 - a prefix by which secret scanners can find our tokens

Row = TypeVar("Row")


@dataclass(frozen=True)
class Origin:
    """Where a request came from: the address, and which browser it says it is."""

    address: str = ""
    browser: str = ""


@dataclass(frozen=True)
class Principal:
    """Whoever asks: a person, through a browser session or a token. ``scopes`` are the permissions they hold here."""

    person_id: str
    team_id: str
    name: str
    role: str
    scopes: frozenset[str]
    via: Literal["session", "token"]
    way_id: str = ""
    """Id of the session or token that was used."""
    address: str = ""

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
    found = select(table).where(columns.id == plain_id(object_id), condition)
    if lock:
        found = found.with_for_update().execution_options(populate_existing=True)
    row = session.scalar(found)
    if row is None:
        raise NotFound(columns.__tablename__)
    return row


def plain_id(object_id: str) -> str:
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


def make_link(
    session: Session,
    person_id: str,
    *,
    purpose: Purpose = "sign-in",
    hours: float | None = None,
    replaces: bool = True,
) -> str:
    """A one-time link's secret; the address is ``sign_in_url`` of it. An invitation or reset replaces earlier ones, if
    somebody asked for it who may."""
    secret = secrets.token_urlsafe(32)
    if purpose != "sign-in" and replaces:
        queries.void_links(session, person_id)
    until = _in(hours=HOURS_OF[purpose] if hours is None else hours)
    session.add(SignInLink(person_id=person_id, purpose=purpose, secret_hash=hashed(secret), expires_at=until))
    session.flush()
    return secret


def sign_in_url(settings: Settings, secret: str) -> str:
    """The address a person opens; a page with a button, so that a link preview does not burn it."""
    return f"{settings.base_url.rstrip('/')}/sign-in/{secret}"


def link_is_open(session: Session, secret: str) -> bool:
    """Whether a link can still be redeemed. Reading changes nothing."""
    return queries.open_link(session, hashed(secret)) is not None


def link_person(session: Session, secret: str) -> dict[str, Any] | None:
    """Whom a link is for and its purpose, while it can be redeemed. Reading changes nothing."""
    link = queries.open_link(session, hashed(secret))
    person = link and queries.active_person(session, link.person_id)
    if not link or not person:
        return None
    return {"id": person.id, "name": person.name, "role": person.role, "email": person.email, "purpose": link.purpose}


def redeem_link(
    session: Session, secret: str, origin: Origin | None = None, *, days: float = SESSION_DAYS, plain: bool = True
) -> str:
    """Uses a link up and returns the secret of a new browser session. ``plain``: only a link that asks for nothing else.

    Raises:
        NotSignedIn: unknown, used or expired.
    """
    link = queries.open_link(session, hashed(secret), lock=True)
    person = queries.active_person(session, link.person_id) if link else None
    if link is None or person is None or (plain and link.purpose != "sign-in"):
        raise NotSignedIn("This sign-in link cannot be used. It was used already or has expired. Ask for a fresh one.")
    link.used_at = datetime.now(UTC)
    return open_session(session, person, origin or Origin(), days=days, by=f"link, {link.purpose}")


def open_session(session: Session, person: Person, origin: Origin, *, days: float, by: str) -> str:
    """Signs a browser in: the secret for its cookie. A secret from before is never taken over."""
    secret = secrets.token_urlsafe(32)
    row = BrowserSession(
        person_id=person.id,
        secret_hash=hashed(secret),
        expires_at=_in(hours=24 * days),
        browser=origin.browser[:100],
        address=origin.address[:45],
    )
    session.add(row)
    session.flush()
    somebody = Somebody("session", origin.address, person.id, person.team_id)
    record(session, somebody, "sign-in.done", "session", row.id, by=by)
    return secret


def sign_out(session: Session, session_secret: str, origin: Origin | None = None) -> None:
    """Revokes a browser session on the server."""
    person = queries.person_of_session(session, hashed(session_secret))
    queries.revoke_session(session, hashed(session_secret))
    if person is not None:
        row, owner = person
        somebody = Somebody("session", (origin or Origin()).address, owner.id, owner.team_id)
        record(session, somebody, "sign-out.done", "session", row.id)


def sessions_of(session: Session, principal: Principal) -> list[dict[str, Any]]:
    """The browsers in which the principal is signed in now."""
    return [
        {
            "id": row.id,
            "browser": row.browser or "unknown browser",
            "address": row.address or "unknown",
            "created_at": row.created_at,
            "last_seen_at": row.last_seen_at or row.created_at,
            "expires_at": row.expires_at,
            "this": row.id == principal.way_id,
        }
        for row in queries.live_sessions(session, principal.person_id)
    ]


def end_session(session: Session, principal: Principal, session_id: str) -> None:
    """Ends one of the principal's own sessions, in whichever browser it is."""
    row = queries.live_session(session, principal.person_id, plain_id(session_id))
    if row is None:
        raise NotFound("session")
    row.revoked_at, row.ended_by = datetime.now(UTC), "elsewhere"
    record(session, principal, "sign-out.done", "session", row.id, elsewhere=True)


def end_all_sessions(session: Session, principal: Principal) -> int:
    """Signs the principal out everywhere, here too."""
    count = queries.revoke_sessions(session, principal.person_id, "everywhere")
    record(session, principal, "sign-out.everywhere", "person", principal.person_id, sessions=count)
    return count


def why_nobody(session: Session, session_secret: str) -> str:
    """Why a browser that holds this secret is not signed in, in words; empty if it was never known."""
    found = queries.any_session(session, hashed(session_secret))
    if found is None:
        return ""
    row, person = found
    if not person.active:
        return "This account was switched off. It was done by an admin. Ask them to switch it on again."
    if row.revoked_at is not None:
        when = row.revoked_at.astimezone(UTC)
        what = ENDED.get(row.ended_by or "", ENDED["here"])
        return f"{what} It was at {when:%H:%M} UTC on {when.day} {when:%b %Y}. Sign in again."
    return "This session has expired. It was open for as long as a session may be. Sign in again."


def make_token(
    session: Session,
    person_id: str,
    *,
    name: str,
    scopes: Sequence[str] = ("read", "run"),
    days: float = TOKEN_DAYS,
    by: Principal | None = None,
) -> str:
    """A bearer token's secret, shown once.

    Raises:
        InputProblem: an unknown scope, or a name or a life out of range.
    """
    if not scopes or not set(scopes) <= set(SCOPES):
        raise InputProblem.at("scopes", f"Scopes must be some of {', '.join(SCOPES)}.")
    if not 1 <= days <= 366:
        raise InputProblem.at("days", "A token lives between 1 and 366 days.")
    if not 0 < len(name) <= 200:
        raise InputProblem.at("name", "A token needs a name of at most 200 characters.")
    person = queries.active_person(session, person_id)
    if person is None:
        raise NotFound("person")
    secret = TOKEN_MARK + secrets.token_urlsafe(32)
    token = Token(
        team_id=person.team_id,
        person_id=person.id,
        name=name,
        secret_hash=hashed(secret),
        scopes=sorted(set(scopes)),
        expires_at=_in(hours=24 * days),
    )
    session.add(token)
    session.flush()
    maker = by or Somebody("command", person_id=person.id, team_id=person.team_id)
    record(session, maker, "token.made", "token", token.id, scopes=token.scopes, days=round(days))
    return secret


ENDED = {
    "here": "This browser was signed out.",
    "elsewhere": "This session was ended from another browser.",
    "everywhere": "You signed out everywhere, and so also here.",
    "password": "The password of this account was changed, which ended its other sessions.",
    "admin": "An admin ended this session.",
}


def list_tokens(session: Session, principal: Principal, person_id: str | None = None) -> list[dict[str, Any]]:
    """The principal's own tokens, or for an admin those of anybody; without their secrets."""
    if person_id is not None and person_id != principal.person_id:
        require(principal, "admin")
    return [token_view(token) for token in queries.tokens_of(session, plain_id(person_id or principal.person_id))]


def token_view(token: Token) -> dict[str, Any]:
    """A token as its owner sees it; the secret is not kept."""
    return {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "expires_at": token.expires_at,
        "expired": token.expires_at <= datetime.now(UTC),
        "last_used_at": token.last_used_at,
        "created_at": token.created_at,
    }


def revoke_token(session: Session, principal: Principal, token_id: str) -> None:
    """Ends one of the principal's own tokens; an admin ends anybody's."""
    owner = None if "admin" in principal.scopes else principal.person_id
    token = queries.live_token(session, plain_id(token_id), owner)
    if token is None:
        raise NotFound("token")
    token.revoked_at = datetime.now(UTC)
    record(session, principal, "token.revoked", "token", token.id)


def principal_of_session(session: Session, session_secret: str, origin: Origin | None = None) -> Principal | None:
    """Whoever a browser session belongs to, while it lives."""
    found = queries.person_of_session(session, hashed(session_secret))
    if found is None:
        return None
    row, person = found
    if _stale(row.last_seen_at):
        queries.touch(session, BrowserSession, row.id, BrowserSession.last_seen_at)
    return _principal(person, PERMISSIONS_OF_ROLE[person.role], "session", row.id, origin)


def principal_of_token(session: Session, secret: str, origin: Origin | None = None) -> Principal | None:
    """Whoever a token belongs to, with the permissions that role and scopes share."""
    found = queries.token_with_person(session, hashed(secret))
    if found is None:
        return None
    token, person = found
    if _stale(token.last_used_at):
        queries.touch(session, Token, token.id, Token.last_used_at)
    scopes = frozenset(token.scopes) | {COMES_WITH[scope] for scope in token.scopes if scope in COMES_WITH}
    return _principal(person, PERMISSIONS_OF_ROLE[person.role] & scopes, "token", token.id, origin)


def _stale(seen: datetime | None) -> bool:
    return seen is None or abs(datetime.now(UTC) - seen) > timedelta(minutes=1)


def _principal(
    person: Person, scopes: frozenset[str], via: Literal["session", "token"], way_id: str, origin: Origin | None
) -> Principal:
    address = (origin or Origin()).address
    return Principal(person.id, person.team_id, person.name, person.role, scopes, via, way_id, address)


def team_name(session: Session, principal: Principal) -> str:
    """The name of the principal's team."""
    return session.get_one(Team, principal.team_id).name


def names_of(session: Session, ids: Iterable[str]) -> dict[str, str]:
    """Names that people have now, by id; ids of other things are left out."""
    return queries.people_named(session, ids)


def hashed(secret: str) -> str:
    """The stored form of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _in(*, hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)
