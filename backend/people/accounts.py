"""Accounts and teams: invite, accept, sign in by password, reset, change, switch off. Hashing is done by the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.chain import COMMAND, Somebody, record
from backend.errors import Conflict, InputProblem, NotAllowed, NotFound, NotSignedIn
from backend.paging import page
from backend.people import limits, queries, service
from backend.people.oidc import Claims
from backend.people.service import Origin, Principal, Purpose
from backend.people.teams import add_team
from backend.plain import clean_name, refuse_strange
from backend.settings import Settings
from backend.tables import ROLES, Person, Team
from worker.engine.results import FieldError

EMAIL = re.compile(r"[^\s@<>\"(),:;\\]+@[^\s@<>\"(),:;\\]+\.[^\s@<>\"(),:;\\]+")
LONGEST_EMAIL = 254
NOBODY_IN = "Nobody was signed in. Ask an admin to invite you."
FIRST_NAME = "First administrator"
CHANGEABLE = ("name", "email", "role", "team", "active")


@dataclass(frozen=True)
class Try:
    """A counted sign-in before its password was looked at; without an account nothing fits."""

    counted: limits.Counted
    person_id: str | None
    stored: str | None


def begin_sign_in(session: Session, settings: Settings, email: str, origin: Origin) -> Try:
    """Counts the try and finds the stored password.

    Raises:
        TooMany: the account or the address is locked for a while.
    """
    tidy = email.strip().lower()[:LONGEST_EMAIL].replace("\0", "")
    counted = limits.count_try(session, settings, tidy, origin.address)
    person = queries.person_with_email(session, tidy)
    if person is None:
        return Try(counted, None, None)
    return Try(counted, person.id, person.password_hash if person.active else None)


def finish_sign_in(
    session: Session, settings: Settings, tried: Try, right: bool, fresh: str | None, origin: Origin
) -> str | None:
    """The secret of a new browser session, or None where e-mail or password were wrong; either is written down."""
    person = queries.active_person(session, tried.person_id) if right and tried.person_id else None
    if person is None or person.password_hash != tried.stored:
        visitor = Somebody("visitor", origin.address)
        subject = ("person", tried.person_id) if tried.person_id else (None, None)
        record(session, visitor, "sign-in.locked" if tried.counted.last else "sign-in.failed", *subject)
        return None
    if fresh is not None:
        person.password_hash = fresh
    limits.forget_tries(session, tried.counted)
    return service.open_session(session, person, origin, days=settings.session_days, by="password")


def enter_by_provider(session: Session, settings: Settings, claims: Claims, origin: Origin) -> str:
    """Signs in whoever the identity provider vouches for: known by subject, else invited under that verified e-mail.

    Raises:
        NotAllowed: switched off, or nobody has invited them and newcomers are not taken in.
    """
    queries.lock_people(session)
    person = queries.person_with_subject(session, claims.issuer, claims.subject)
    if person is None and claims.email:
        person = queries.person_with_email(session, claims.email)
        if person is not None and person.subject is not None:
            raise NotAllowed(f"The account with this e-mail belongs to another sign-in there. {NOBODY_IN}")
    if person is None and settings.oidc_newcomers:
        team = queries.team_named(session, settings.team_name) or add_team(session, settings.team_name)
        name = clean_name(claims.name, otherwise="Newcomer")
        person = _add_person(session, team.id, name, settings.oidc_newcomers, claims.email)
        record(session, Somebody("provider", origin.address), "person.came", "person", person.id, role=person.role)
    if person is None:
        raise NotAllowed(f"Nobody has invited this account, or its e-mail address is not verified there. {NOBODY_IN}")
    if not person.active:
        raise NotAllowed(f"This account was switched off. {NOBODY_IN}")
    if person.subject is None:
        person.issuer, person.subject = claims.issuer, claims.subject
        queries.void_links(session, person.id)
        record(
            session,
            Somebody("provider", origin.address, person.id, person.team_id),
            "provider.linked",
            "person",
            person.id,
        )
    return service.open_session(session, person, origin, days=settings.session_days, by="provider")


def first_admin(session: Session, settings: Settings) -> Person:
    """The eldest admin; where there is none, a new one whose link asks for name, e-mail and password."""
    queries.lock_people(session)
    admins = queries.active_admins(session)
    if admins:
        return admins[0]
    team = queries.team_named(session, settings.team_name) or add_team(session, settings.team_name)
    return _add_person(session, team.id, FIRST_NAME, "admin", None)


def way_in(session: Session, person: Person) -> str:
    """A link for the command line: an invitation where the account was never finished, else a sign-in."""
    finished = person.password_hash or person.subject or person.name != FIRST_NAME
    purpose: Purpose = "sign-in" if finished else "invitation"
    record(session, COMMAND, "link.made", "person", person.id, purpose=purpose)
    return service.make_link(session, person.id, purpose=purpose)


def find_person(session: Session, settings: Settings, who: str) -> Person | None:
    """By e-mail, or the first active one of a role in the first team."""
    if "@" in who:
        person = queries.person_with_email(session, who)
        return person if person and person.active else None
    team = queries.team_named(session, settings.team_name)
    return queries.person_of_role(session, team.id, who) if team else None


def invite(session: Session, principal: Principal, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """A new person and the secret of their invitation.

    Raises:
        InputProblem: at each field that is missing or cannot be used.
    """
    given = _checked(session, body, needed=("name", "email", "role"))
    team_id = given.get("team") or principal.team_id
    person = _add_person(session, team_id, given["name"], given["role"], given["email"])
    record(session, principal, "person.invited", "person", person.id, role=person.role)
    return person_view(person, {person.id}), service.make_link(session, person.id, purpose="invitation")


def accept(
    session: Session, settings: Settings, secret: str, form: Mapping[str, str], stored: str, origin: Origin
) -> str:
    """Uses an invitation or reset up: keeps the new password, ends other sessions, signs this browser in.

    Raises:
        NotSignedIn: the link was used or has expired meanwhile.
        InputProblem: a name or e-mail that cannot be used.
    """
    found = service.link_person(session, secret)
    person = queries.person_locked(session, found["id"]) if found else None
    if found is None or person is None:
        raise NotSignedIn("This link cannot be used. It was used already or has expired. Ask for a fresh one.")
    if found["purpose"] == "invitation":
        wanted = {"name": form.get("name", "")} | ({} if person.email else {"email": form.get("email", "")})
        given = _checked(session, wanted, needed=tuple(wanted))
        person.name, person.email = given["name"], person.email or given["email"]
        _unique(session)
    cookie = service.redeem_link(session, secret, origin, days=settings.session_days, plain=False)
    _keep_password(session, person, stored, keep=service.hashed(cookie))
    somebody = Somebody("link", origin.address, person.id, person.team_id)
    record(session, somebody, f"{found['purpose']}.accepted", "person", person.id)
    return cookie


def set_password(session: Session, principal: Principal, stored: str, counted: Try | None = None) -> None:
    """A new password for oneself; every other session ends. ``counted``: the try that the present one was asked for in."""
    person = queries.person_locked(session, principal.person_id)
    if person is None:
        raise NotFound("person")
    person.password_hash = stored
    if counted is not None:
        limits.forget_tries(session, counted.counted)
    queries.void_links(session, person.id)
    ended = queries.revoke_sessions(session, person.id, "password", but=principal.way_id)
    record(session, principal, "password.changed", "person", person.id, sessions=ended)


def note_wrong_password(session: Session, principal: Principal, counted: Try) -> None:
    """Somebody who is signed in gave a wrong present password."""
    record(
        session,
        principal,
        "sign-in.locked" if counted.counted.last else "sign-in.failed",
        "person",
        principal.person_id,
    )


def _keep_password(session: Session, person: Person, stored: str, *, keep: str) -> None:
    person.password_hash = stored
    limits.forget_account(session, person.email or "")
    queries.void_links(session, person.id)
    kept = queries.any_session(session, keep)
    queries.revoke_sessions(session, person.id, "password", but=kept[0].id if kept else "")


def stored_password(session: Session, principal: Principal) -> tuple[str | None, str | None]:
    """E-mail and stored password of oneself."""
    person = queries.active_person(session, principal.person_id)
    return (person.email, person.password_hash) if person else (None, None)


def rename_oneself(session: Session, principal: Principal, name: str) -> None:
    """Another name for oneself; what the log says of the past follows, since it keeps ids."""
    person = queries.person_locked(session, principal.person_id)
    if person is None:
        raise NotFound("person")
    person.name = _checked(session, {"name": name}, needed=("name",))["name"]
    record(session, principal, "person.changed", "person", person.id, fields=["name"])


def change_person(session: Session, principal: Principal, person_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Changes what is given of name, email, role, team and active.

    Raises:
        NotFound: there is no such person.
        InputProblem: at each field that cannot be used.
        Conflict: nobody would be left to look after people.
    """
    queries.lock_people(session)
    person = _person(session, person_id)
    given = _checked(session, body, needed=())
    before = {name: getattr(person, "team_id" if name == "team" else name) for name in given}
    for field, column in (
        ("name", "name"),
        ("email", "email"),
        ("role", "role"),
        ("team", "team_id"),
        ("active", "active"),
    ):
        if field in given:
            setattr(person, column, given[field])
    _unique(session)
    if before != given and not any(_can_come(session, admin, principal) for admin in queries.active_admins(session)):
        raise Conflict(
            "This is the last active admin who can sign in. Nobody would be left to look after people, so nothing was "
            "changed. Make somebody else an admin first."
        )
    if "team" in given:
        queries.move_tokens(session, person.id, person.team_id)
    changed = sorted(name for name, value in given.items() if value != before[name])
    if "email" in changed:
        queries.void_links(session, person.id)
    if given.get("active") is False:
        queries.void_links(session, person.id)
        queries.revoke_sessions(session, person.id, "admin")
        queries.revoke_tokens(session, person.id)
    if changed:
        told = {key: given[key] for key in ("role", "active") if key in changed}
        record(session, principal, "person.changed", "person", person.id, fields=changed, **told)
    return person_view(person, queries.open_invitations(session))


def _can_come(session: Session, admin: Person, principal: Principal) -> bool:
    """Whether an admin has a way in: whoever asks has one; an invited person who never came has none yet."""
    has_way = admin.password_hash is not None or admin.subject is not None or admin.id == principal.person_id
    return has_way or queries.came_before(session, admin.id)


def reset(session: Session, principal: Principal, person_id: str) -> tuple[dict[str, Any], str, Purpose]:
    """A person and the secret of a link by which they set a new password, or finish an invitation; and which of both."""
    person = _person(session, person_id)
    if not person.active:
        raise Conflict("This account is switched off. No link was made. Switch it on first.")
    unfinished = person.password_hash is None and person.subject is None
    purpose: Purpose = "invitation" if unfinished or person.email is None else "reset"
    secret = service.make_link(session, person.id, purpose=purpose)
    record(session, principal, "link.made", "person", person.id, purpose=purpose)
    return person_view(person, queries.open_invitations(session)), secret, purpose


def forgotten(session: Session, settings: Settings, email: str, origin: Origin) -> tuple[str, str, str] | None:
    """Name, e-mail and a link's secret for whoever forgot a password; None if nobody has that address. Counted."""
    tidy = email.strip().lower()[:LONGEST_EMAIL].replace("\0", "")
    limits.count_try(session, settings, f"forgot {tidy}", origin.address)
    person = queries.person_with_email(session, tidy)
    if person is None or person.email is None or not person.active:
        return None
    if person.subject is not None and person.password_hash is None:
        return None  # they sign in by the identity provider alone
    purpose: Purpose = "reset" if person.password_hash is not None else "invitation"
    if purpose == "reset":
        queries.void_links(session, person.id, "reset")
    secret = service.make_link(session, person.id, purpose=purpose, replaces=False)
    record(session, Somebody("visitor", origin.address), "link.asked", "person", person.id, purpose=purpose)
    return person.name, person.email, secret


def end_sessions_of(session: Session, principal: Principal, person_id: str) -> int:
    """Signs somebody out of every browser."""
    person = _person(session, person_id)
    count = queries.revoke_sessions(session, person.id, "admin")
    record(session, principal, "sign-out.everywhere", "person", person.id, sessions=count)
    return count


def list_people(
    session: Session, principal: Principal, *, limit: int = 50, cursor: str | None = None, team: str | None = None
) -> dict[str, Any]:
    """A page of people, newest first: an admin sees all or those of ``team``, everybody else those of their own."""
    admin = "admin" in principal.scopes
    invited = queries.open_invitations(session) if admin else set()
    found = queries.everybody(team if admin else principal.team_id)
    return page(session, found, Person, limit, cursor, lambda rows: [person_view(row, invited) for row in rows])


def get_person(session: Session, person_id: str) -> dict[str, Any]:
    """One account, for an admin."""
    return person_view(_person(session, person_id), queries.open_invitations(session))


def names(session: Session) -> list[tuple[str, str]]:
    """Id and name of everybody, by name; for filters."""
    return sorted(queries.all_names(session), key=lambda pair: pair[1].lower())


def person_view(person: Person, invited: set[str]) -> dict[str, Any]:
    """A person as REST and pages show them."""
    state = "active" if person.active else "off"
    if person.active and person.id in invited and person.password_hash is None and person.subject is None:
        state = "invited"
    same = {name: getattr(person, name) for name in ("id", "name", "email", "role", "created_at")}
    return same | {"team": person.team_id, "state": state}


def _add_person(session: Session, team_id: str, name: str, role: str, email: str | None) -> Person:
    person = Person(team_id=team_id, name=name, role=role, email=email)
    session.add(person)
    _unique(session)
    session.refresh(person)
    return person


def _person(session: Session, person_id: str) -> Person:
    person = queries.person_locked(session, service.plain_id(person_id))
    if person is None:
        raise NotFound("person")
    return person


def _unique(session: Session) -> None:
    try:
        session.flush()
    except IntegrityError:
        raise InputProblem.at("email", "Somebody else has this e-mail address.") from None


def _checked(session: Session, body: Mapping[str, Any], *, needed: tuple[str, ...]) -> dict[str, Any]:
    """What was given, tidied; every field at fault is named."""
    refuse_strange(body)
    errors = [
        FieldError(name, f"There is no such field. There are: {', '.join(CHANGEABLE)}.")
        for name in body
        if name not in CHANGEABLE
    ]
    given: dict[str, Any] = {}
    for name in CHANGEABLE:
        if body.get(name) is None:
            if name in needed:
                errors.append(FieldError(name, "This is needed."))
            continue
        value, problem = _field(session, name, body[name])
        if problem:
            errors.append(FieldError(name, problem))
        given[name] = value
    if errors:
        raise InputProblem.of(errors)
    return given


def _field(session: Session, name: str, value: Any) -> tuple[Any, str]:
    if name == "active":
        return value, "" if isinstance(value, bool) else "This must be true or false."
    if not isinstance(value, str):
        return value, "This must be text."
    if name == "name":
        tidy = clean_name(value, otherwise="")
        return tidy, "" if tidy else "A name is needed."
    if name == "email":
        tidy = value.strip().lower()
        fits = EMAIL.fullmatch(tidy) and len(tidy) <= LONGEST_EMAIL and tidy.isprintable()
        return tidy, "" if fits else "This is not an e-mail address."
    if name == "role":
        return value, "" if value in ROLES else f"There is no such role. There are: {', '.join(ROLES)}."
    team = session.get(Team, service.plain_id(value))
    return value, "" if team else "There is no such team."
