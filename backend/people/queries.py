"""All SQL about people, sign-in links, sessions and tokens."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Select, func, select, text, update
from sqlalchemy.orm import Session

from backend.tables import BrowserSession, Person, SignInLink, Team, Token


def team_named(session: Session, name: str) -> Team | None:
    """The team of that name."""
    return session.scalar(select(Team).where(Team.name == name))


def active_person(session: Session, person_id: str) -> Person | None:
    """The person, unless deactivated."""
    return session.scalar(select(Person).where(Person.id == person_id, Person.active))


def person_of_role(session: Session, team_id: str, role: str) -> Person | None:
    """The first active person of a role in a team."""
    found = select(Person).where(Person.team_id == team_id, Person.role == role, Person.active)
    return session.scalar(found.order_by(Person.created_at, Person.id).limit(1))


def open_link(session: Session, secret_hash: str, *, lock: bool = False) -> SignInLink | None:
    """A link that was not used and has not expired, by the database's clock."""
    found = select(SignInLink).where(
        SignInLink.secret_hash == secret_hash, SignInLink.used_at.is_(None), SignInLink.expires_at > func.now()
    )
    return session.scalar(found.with_for_update() if lock else found)


def person_of_session(session: Session, secret_hash: str) -> Person | None:
    """Whose browser session this is, while it is neither revoked nor expired."""
    found = select(Person).join(BrowserSession, BrowserSession.person_id == Person.id)
    found = found.where(
        BrowserSession.secret_hash == secret_hash,
        BrowserSession.revoked_at.is_(None),
        BrowserSession.expires_at > func.now(),
        Person.active,
    )
    return session.scalar(found)


def revoke_session(session: Session, secret_hash: str) -> None:
    """Ends a browser session; ending it twice does no harm."""
    changed = update(BrowserSession).where(BrowserSession.secret_hash == secret_hash)
    session.execute(changed.where(BrowserSession.revoked_at.is_(None)).values(revoked_at=func.now()))


def token_with_person(session: Session, secret_hash: str) -> tuple[Token, Person] | None:
    """A token that is neither revoked nor expired, and whose it is."""
    found: Select[Token, Person] = select(Token, Person).join(Person, Token.person_id == Person.id)
    found = found.where(
        Token.secret_hash == secret_hash, Token.revoked_at.is_(None), Token.expires_at > func.now(), Person.active
    )
    row = session.execute(found).first()
    return None if row is None else (row[0], row[1])


def touch_token(session: Session, token_id: str, *, every: timedelta = timedelta(minutes=1)) -> None:
    """Notes that a token was used, at most once in ``every``; never waits for another request doing the same."""
    stale = select(Token.id).where(
        Token.id == token_id, (Token.last_used_at.is_(None)) | (Token.last_used_at < func.now() - every)
    )
    changed = update(Token).where(Token.id.in_(stale.with_for_update(skip_locked=True).scalar_subquery()))
    session.execute(changed.values(last_used_at=func.now()).execution_options(synchronize_session=False))


def tokens_of(session: Session, person_id: str) -> list[Token]:
    """The tokens of a person that were not revoked."""
    found = select(Token).where(Token.person_id == person_id, Token.revoked_at.is_(None))
    return list(session.scalars(found.order_by(Token.created_at, Token.id)))


def lock_people(session: Session) -> None:
    """One process at a time makes the first people; released when the transaction ends."""
    session.execute(text("SELECT pg_advisory_xact_lock(hashtext('counterpoise people'))"))
