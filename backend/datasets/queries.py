"""All SQL about datasets, recipes and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from backend.people.service import Principal, visible
from backend.tables import Dataset, Group, Recipe


@dataclass(frozen=True)
class RecipeLine:
    """What a list shows of the newest recipe."""

    version: int
    state: str
    rows: int | None


def datasets_of(principal: Principal, state: str | None, sample: str | None) -> Select[Dataset]:
    """All that one may see; erased ones only when asked for."""
    found = select(Dataset).where(visible(principal, Dataset))
    found = found.where(Dataset.state == state if state else Dataset.state != "erased")
    return found.where(Dataset.sample == sample) if sample else found


def newest_recipe(session: Session, dataset_id: str) -> Recipe | None:
    """The recipe with the highest version."""
    found = select(Recipe).where(Recipe.dataset_id == dataset_id).order_by(Recipe.version.desc())
    return session.scalar(found.limit(1).execution_options(populate_existing=True))


def newest_ready_recipe(session: Session, dataset_id: str) -> Recipe | None:
    """The newest recipe whose groups are counted, if no newer one is under way."""
    newest = newest_recipe(session, dataset_id)
    return newest if newest is not None and newest.state == "ready" else None


def recipe_lines(session: Session, dataset_ids: Sequence[str]) -> dict[str, RecipeLine]:
    """For each dataset the line of its newest recipe, in one query and without the profiles."""
    found = (
        select(Recipe.dataset_id, Recipe.version, Recipe.state, Recipe.profile["rows"].as_integer())
        .where(Recipe.dataset_id.in_(dataset_ids))
        .ext(distinct_on(Recipe.dataset_id))
        .order_by(Recipe.dataset_id, Recipe.version.desc())
    )
    return {row[0]: RecipeLine(row[1], row[2], row[3]) for row in session.execute(found)}


def recipe_state(session: Session, recipe_id: str) -> str | None:
    """The state alone, as it is now."""
    return session.scalar(select(Recipe.state).where(Recipe.id == recipe_id))


def recipes_of(session: Session, dataset_id: str) -> Sequence[Recipe]:
    """All versions."""
    return session.scalars(select(Recipe).where(Recipe.dataset_id == dataset_id).order_by(Recipe.version)).all()


def lock_recipes(session: Session, dataset_id: str) -> None:
    """Locks all versions. Whoever counts groups locks the recipe and then the dataset; so must whoever needs both."""
    session.execute(select(Recipe.id).where(Recipe.dataset_id == dataset_id).order_by(Recipe.id).with_for_update())


def groups_of(session: Session, recipe_id: str) -> Sequence[Group]:
    """Groups in the order of the screen, everyone first."""
    return session.scalars(select(Group).where(Group.recipe_id == recipe_id).order_by(Group.position)).all()


def expired(session: Session, at_once: int = 10) -> Sequence[str]:
    """Ids of datasets whose time is over by the database's clock, longest first."""
    over = select(Dataset.id).where(Dataset.state != "erased", Dataset.expires_at < func.now())
    return session.scalars(over.order_by(Dataset.expires_at).limit(at_once)).all()
