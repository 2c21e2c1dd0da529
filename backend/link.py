"""``counterpoise link``: a fresh way in. On a server it makes the first administrator; later it helps one who is locked out."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from backend.celery_queue import CeleryQueue
from backend.database import Database, make_engine
from backend.embedded import DemoProblem
from backend.people import accounts, service
from backend.settings import Settings
from backend.tables import ROLES, Person


def fresh_link(settings: Settings, who: str | None) -> str:
    """A new one-time link. ``who``: a role or an e-mail address; by default the demo's analyst, or a server's admin.

    Raises:
        DemoProblem: there is nobody like that, or the database does not answer; in three sentences.
    """
    engine, queue = make_engine(settings.database_url, pool_size=1), CeleryQueue(settings.redis_url)
    try:
        with Database(engine, queue).transaction() as session:
            person = _person(session, settings, who or ("analyst" if settings.mode == "demo" else "admin"))
            return service.sign_in_url(settings, accounts.way_in(session, person))
    except DBAPIError as problem:
        raise DemoProblem(
            f"The database did not answer as it should ({type(problem.orig).__name__}). No link was made. "
            "Run `counterpoise doctor`, and `counterpoise migrate` if its schema is old."
        ) from None
    finally:
        engine.dispose()
        queue.close()


def _person(session: Session, settings: Settings, who: str) -> Person:
    if settings.mode == "demo":
        service.ensure_demo_people(session, settings)
    elif who == "admin":
        return accounts.first_admin(session, settings)
    if "@" not in who and who not in ROLES:
        raise DemoProblem(
            f"{who} is neither a role nor an e-mail address. Roles are {', '.join(ROLES)}. Name one of them."
        )
    person = accounts.find_person(session, settings, who)
    if person is None:
        raise DemoProblem(
            f"There is nobody active with {who} here. No link was made. An admin invites people on the page Team; "
            "`counterpoise link admin` lets an admin in."
        )
    return person
