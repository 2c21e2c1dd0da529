"""The stored table of a recipe as numbers; the last one is kept for the stacks that follow."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.tables import Dataset, Group, Recipe
from worker.tasks.context import Context

if TYPE_CHECKING:
    from worker.engine.results import EncodedData

_lock = threading.Lock()
_last: tuple[tuple[object, ...], EncodedData] | None = None


class SourceErased(Exception):
    """The dataset was erased; its key is gone, and so is the data."""


def load_data(context: Context, recipe_id: str) -> EncodedData:
    """Encoded data of a recipe that is ready, groups in the order of their positions.

    Raises:
        SourceErased: the dataset was erased.
    """
    global _last
    with context.database.transaction() as session:
        recipe = session.get_one(Recipe, recipe_id)
        dataset = session.get_one(Dataset, recipe.dataset_id)
        keys = group_keys(session, recipe_id)
    if dataset.file_key is None or recipe.table_key is None:
        raise SourceErased(dataset.id)
    name = (recipe.id, recipe.table_key, repr(recipe.roles), repr(recipe.encoding), keys)
    with _lock:
        if _last is None or _last[0] != name:
            _last = None  # let go of the old one before the new one is made
            _last = (name, _load(context, dataset, recipe, keys))
        return _last[1]


def forget_data() -> None:
    """Let go of the last data."""
    global _last
    with _lock:
        _last = None


def group_keys(session: Session, recipe_id: str) -> tuple[str, ...]:
    """Keys of the groups of a recipe, ``everyone`` first."""
    return tuple(session.scalars(select(Group.key).where(Group.recipe_id == recipe_id).order_by(Group.position)))


def _load(context: Context, dataset: Dataset, recipe: Recipe, keys: tuple[str, ...]) -> EncodedData:
    from worker.engine.datasets import encode, split, table
    from worker.engine.datasets.roles import Roles

    if recipe.table_key is None or recipe.roles is None or recipe.encoding is None:
        raise ValueError("a recipe that is not ready")
    rows = table.from_bytes(context.storage.read(recipe.table_key, dataset.file_key))
    roles = Roles.from_json(recipe.roles)
    parts = split.assign_parts(rows, roles, dataset.id)
    return encode.encode(rows, roles, parts, recipe.encoding, keys)
