"""All SQL about people, sign-in links, sessions and tokens."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, case, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.tables import BrowserSession, Person, SignInCount, SignInLink, Team, Token


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


def void_links(session: Session, person_id: str, purpose: str | None = None) -> None:
    """Every open link of a person, or those of one purpose, can no longer be used."""
    changed = update(SignInLink).where(SignInLink.person_id == person_id, SignInLink.used_at.is_(None))
    changed = changed if purpose is None else changed.where(SignInLink.purpose == purpose)
    session.execute(changed.values(used_at=func.now()))


def person_of_session(session: Session, secret_hash: str) -> tuple[BrowserSession, Person] | None:
    """A browser session that is neither revoked nor expired, and whose it is."""
    return any_session(session, secret_hash, *_lives(), Person.active.is_(True))


def any_session(
    session: Session, secret_hash: str, *conditions: ColumnElement[bool]
) -> tuple[BrowserSession, Person] | None:
    """A browser session in whatever state, and whose it is."""
    found: Select[BrowserSession, Person] = select(BrowserSession, Person)
    found = found.join(Person, BrowserSession.person_id == Person.id)
    row = session.execute(found.where(BrowserSession.secret_hash == secret_hash, *conditions)).first()
    return None if row is None else (row[0], row[1])


def _lives() -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return BrowserSession.revoked_at.is_(None), BrowserSession.expires_at > func.now()


def live_sessions(session: Session, person_id: str) -> list[BrowserSession]:
    """The browsers in which a person is signed in, newest first."""
    found = select(BrowserSession).where(BrowserSession.person_id == person_id, *_lives())
    return list(session.scalars(found.order_by(BrowserSession.created_at.desc(), BrowserSession.id)))


def live_session(session: Session, person_id: str, session_id: str) -> BrowserSession | None:
    """One of them."""
    found = select(BrowserSession).where(BrowserSession.person_id == person_id, BrowserSession.id == session_id)
    return session.scalar(found.where(*_lives()).with_for_update())


def revoke_session(session: Session, secret_hash: str) -> None:
    """Ends a browser session; ending it twice does no harm."""
    changed = update(BrowserSession).where(BrowserSession.secret_hash == secret_hash)
    changed = changed.where(BrowserSession.revoked_at.is_(None))
    session.execute(changed.values(revoked_at=func.now(), ended_by="here"))


def revoke_sessions(session: Session, person_id: str, ended_by: str, *, but: str = "") -> int:
    """Ends every session of a person except ``but``; returns how many."""
    changed = update(BrowserSession).where(BrowserSession.person_id == person_id, BrowserSession.id != but, *_lives())
    ended = changed.values(revoked_at=func.now(), ended_by=ended_by).returning(BrowserSession.id)
    return len(session.scalars(ended).all())


def token_with_person(session: Session, secret_hash: str) -> tuple[Token, Person] | None:
    """A token that is neither revoked nor expired, and whose it is."""
    found: Select[Token, Person] = select(Token, Person).join(Person, Token.person_id == Person.id)
    found = found.where(
        Token.secret_hash == secret_hash, Token.revoked_at.is_(None), Token.expires_at > func.now(), Person.active
    )
    row = session.execute(found).first()
    return None if row is None else (row[0], row[1])


def touch(
    session: Session,
    table: type[Token] | type[BrowserSession],
    row_id: str,
    column: InstrumentedAttribute[datetime | None],
    *,
    every: timedelta = timedelta(minutes=1),
) -> None:
    """Notes that something was used, at most once in ``every``; never waits for another request doing the same."""
    stale = select(table.id).where(table.id == row_id, (column.is_(None)) | (column < func.now() - every))
    changed = update(table).where(table.id.in_(stale.with_for_update(skip_locked=True).scalar_subquery()))
    session.execute(changed.values({column: func.now()}).execution_options(synchronize_session=False))


def tokens_of(session: Session, person_id: str) -> list[Token]:
    """The tokens of a person that were not revoked."""
    found = select(Token).where(Token.person_id == person_id, Token.revoked_at.is_(None))
    return list(session.scalars(found.order_by(Token.created_at, Token.id)))


def revoke_tokens(session: Session, person_id: str) -> None:
    """Ends every token of a person."""
    changed = update(Token).where(Token.person_id == person_id, Token.revoked_at.is_(None))
    session.execute(changed.values(revoked_at=func.now()))


def came_before(session: Session, person_id: str) -> bool:
    """Whether a person was ever signed in by a browser."""
    return session.scalar(select(BrowserSession.id).where(BrowserSession.person_id == person_id).limit(1)) is not None


def live_token(session: Session, token_id: str, owner: str | None) -> Token | None:
    """A token that was not revoked, of ``owner`` or of anybody; locked for a change."""
    found = select(Token).where(Token.id == token_id, Token.revoked_at.is_(None))
    found = found if owner is None else found.where(Token.person_id == owner)
    return session.scalar(found.with_for_update())


def lock_people(session: Session) -> None:
    """One process at a time makes the first people; released when the transaction ends."""
    session.execute(text("SELECT pg_advisory_xact_lock(hashtext('counterpoise people'))"))


def count_failure(session: Session, key: str, window: timedelta) -> tuple[int, datetime]:
    """One more failure of ``key``; counting begins anew once ``window`` has passed. Returns failures and since when."""
    over = SignInCount.since < func.now() - window
    added = insert(SignInCount).values(key=key, failures=1, since=func.now())
    added = added.on_conflict_do_update(
        index_elements=[SignInCount.key],
        set_={
            "failures": case((over, 1), else_=SignInCount.failures + 1),
            "since": case((over, func.now()), else_=SignInCount.since),
        },
    )
    row = session.execute(added.returning(SignInCount.failures, SignInCount.since)).one()
    return row[0], row[1]


def forget_failures(session: Session, account: str, address: str) -> None:
    """The account starts from nothing; the address has one failure less. What is a day old is forgotten as well."""
    rows = select(SignInCount.key).where(SignInCount.key.in_((account, address)))
    session.execute(rows.order_by(SignInCount.key).with_for_update())  # in the order in which tries are counted
    session.execute(delete(SignInCount).where(SignInCount.key == account))
    less = update(SignInCount).where(SignInCount.key == address, SignInCount.failures > 0)
    session.execute(less.values(failures=SignInCount.failures - 1))
    old = select(SignInCount.key).where(SignInCount.since < func.now() - timedelta(days=1)).limit(1000)
    session.execute(delete(SignInCount).where(SignInCount.key.in_(old.with_for_update(skip_locked=True))))


def person_with_email(session: Session, email: str) -> Person | None:
    """The person who signs in with this address, active or not."""
    return session.scalar(select(Person).where(Person.email == email.lower()))


def person_with_subject(session: Session, issuer: str, subject: str) -> Person | None:
    """The person whom an identity provider calls ``subject``, active or not."""
    return session.scalar(select(Person).where(Person.issuer == issuer, Person.subject == subject))


def person_locked(session: Session, person_id: str) -> Person | None:
    """A person, active or not, locked for a change."""
    return session.scalar(select(Person).where(Person.id == person_id).with_for_update())


def active_admins(session: Session) -> list[Person]:
    """All who can look after people, the eldest first."""
    found = select(Person).where(Person.role == "admin", Person.active).order_by(Person.created_at, Person.id)
    return list(session.scalars(found))


def people_named(session: Session, ids: Iterable[str]) -> dict[str, str]:
    """Names by id."""
    rows = session.execute(select(Person.id, Person.name).where(Person.id.in_(set(ids))))
    return {row[0]: row[1] for row in rows}


def all_names(session: Session) -> list[tuple[str, str]]:
    """Id and name of everybody."""
    return [(row[0], row[1]) for row in session.execute(select(Person.id, Person.name))]


def everybody(team_id: str | None) -> Select[Person]:
    """People of a team, or of all."""
    return select(Person) if team_id is None else select(Person).where(Person.team_id == team_id)


def teams(session: Session) -> list[Team]:
    """All teams by name."""
    return list(session.scalars(select(Team).order_by(Team.name, Team.id)))


def open_invitations(session: Session) -> set[str]:
    """Ids of people whose invitation can still be used."""
    found = select(SignInLink.person_id).where(
        SignInLink.purpose == "invitation", SignInLink.used_at.is_(None), SignInLink.expires_at > func.now()
    )
    return set(session.scalars(found))


def move_tokens(session: Session, person_id: str, team_id: str) -> None:
    """The tokens of a person go with them to another team."""
    session.execute(update(Token).where(Token.person_id == person_id).values(team_id=team_id))
