"""What a first start fills in: a team with three people, tokens for internal tools, the bundled samples, ways in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.celery_queue import CeleryQueue
from backend.database import Database, make_engine
from backend.embedded.checks import write_private
from backend.people import service as people
from backend.settings import Settings
from backend.tables import Dataset

TOKEN_FILES = {"analyst": ("token", ("read", "run")), "dpo": ("token-dpo", ("read", "decide"))}
TITLES = {"analyst": "fairness analyst", "dpo": "data-protection officer", "admin": "admin"}


def prepare(settings: Settings, var: Path) -> Sequence[str]:
    """Make what is missing, and give back the lines that let people in."""
    queue = CeleryQueue(settings.redis_url)
    engine = make_engine(settings.database_url, pool_size=2)
    database = Database(engine, queue)
    try:
        with database.transaction() as session:
            persons = people.ensure_demo_people(session, settings)
            links = [_link(session, settings, role, persons[role]) for role in TITLES]
            tokens = {file: _token(session, var / file, persons[role], scopes) for role, (file, scopes) in TOKENS}
        for file, secret in tokens.items():
            if secret is not None:
                write_private(var / file, secret + "\n")
        _register_samples(database, settings, (var / "token").read_text("utf-8").strip())
    finally:
        engine.dispose()
        queue.close()
    return [
        "One-time ways in, each for 24 hours (`.venv/bin/counterpoise link analyst` prints a fresh one):",
        *links,
        f"Tokens for REST: {var / 'token'} (analyst), {var / 'token-dpo'} (DPO). Logs: {var / 'log'}.",
    ]


TOKENS = tuple(TOKEN_FILES.items())


def _link(session: Session, settings: Settings, role: str, person_id: str) -> str:
    return f"  {TITLES[role]:<24}{people.sign_in_url(settings, people.make_link(session, person_id))}"


def _token(session: Session, file: Path, person_id: str, scopes: Sequence[str]) -> str | None:
    """A new token's secret, or None if the one in ``file`` still opens the door."""
    try:
        kept = file.read_text("utf-8").strip()
    except OSError:
        kept = ""
    if kept and people.principal_of_token(session, kept) is not None:
        return None
    return people.make_token(session, person_id, name=f"var/{file.name}", scopes=scopes)


def _register_samples(database: Database, settings: Settings, token: str) -> None:
    """Each bundled table becomes a dataset of the first team, once: one that was erased stays erased."""
    from backend.datasets import samples, service
    from backend.storage import Storage

    storage = Storage(settings)
    with database.transaction() as session:
        analyst = people.principal_of_token(session, token)
        if analyst is None:
            return
        known = set(session.scalars(select(Dataset.sample).where(Dataset.team_id == analyst.team_id)))
        for sample in samples.offered():
            if sample.key not in known:
                service.receive_sample(session, storage, settings, analyst, sample.key)
