"""Rows with defaults, for the worker's tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from backend.tables import Audit, Dataset, Person, Recipe, Run, Stack, Team


def make_person(session: Session) -> Person:
    team = Team(name="Fairness")
    session.add(team)
    session.flush()
    person = Person(team_id=team.id, name="Ada", role="analyst")
    session.add(person)
    session.flush()
    return person


def make_dataset(session: Session, person: Person, **values: Any) -> Dataset:
    defaults: dict[str, Any] = {
        "name": "people",
        "file_name": "people.csv",
        "sha256": "0" * 64,
        "size_bytes": 1,
        "storage_key": "datasets/x/original",
        "file_key": b"key",
        "expires_at": datetime.now(UTC) + timedelta(days=90),
    }
    row = Dataset(team_id=person.team_id, created_by=person.id, **(defaults | values))
    session.add(row)
    session.flush()
    return row


def make_recipe(session: Session, dataset: Dataset, **values: Any) -> Recipe:
    defaults: dict[str, Any] = {"version": 1, "state": "ready", "reading": {}, "profile": {}}
    row = Recipe(team_id=dataset.team_id, dataset_id=dataset.id, created_by=dataset.created_by, **(defaults | values))
    session.add(row)
    session.flush()
    return row


def make_audit(session: Session, recipe: Recipe, **values: Any) -> Audit:
    defaults: dict[str, Any] = {"name": "an audit", "question": {}, "delta": 1e-5, "forecast": {}, "state": "queued"}
    row = Audit(
        team_id=recipe.team_id,
        dataset_id=recipe.dataset_id,
        recipe_id=recipe.id,
        created_by=recipe.created_by,
        **(defaults | values),
    )
    session.add(row)
    session.flush()
    return row


def make_stack(session: Session, audit: Audit, number: int = 0, **values: Any) -> Stack:
    """A stack with its baseline as its only run."""
    defaults: dict[str, Any] = {"kernel": "eager-cpu", "threads": 1, "steps": 10, "state": "waiting"}
    row = Stack(team_id=audit.team_id, audit_id=audit.id, number=number, seed=number, **(defaults | values))
    session.add(row)
    session.flush()
    session.add(
        Run(
            team_id=audit.team_id,
            audit_id=audit.id,
            stack_id=row.id,
            position=0,
            method="non-private",
            seed=number,
            parameters={},
        )
    )
    session.flush()
    return row


def make_whole_audit(session: Session, stacks: int = 1, **values: Any) -> tuple[Audit, list[Stack]]:
    """Team, person, dataset, recipe, audit and stacks."""
    recipe = make_recipe(session, make_dataset(session, make_person(session), state="profiled"))
    audit = make_audit(session, recipe, **values)
    return audit, [make_stack(session, audit, number) for number in range(stacks)]
