"""Uploaded tables, how they were read, and the groups found in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.tables.base import Base, Claimable, Identified


class Dataset(Identified, Claimable, Base):
    """One uploaded table, immutable. The file lies in storage, encrypted with ``file_key``.

    ``file_key`` is itself wrapped by the master key of the installation; erasing a dataset destroys it.
    ``sha256`` is of the original bytes as uploaded: an attribute, not the address.
    """

    __tablename__ = "dataset"
    __table_args__ = (CheckConstraint("state IN ('received', 'profiled', 'refused', 'erased')", name="state"),)
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    created_by: Mapped[str] = mapped_column(ForeignKey("person.id"))
    name: Mapped[str] = mapped_column(String(200))
    state: Mapped[str] = mapped_column(String(20), default="received")
    problem: Mapped[dict[str, Any] | None]
    sample: Mapped[str | None] = mapped_column(String(50))
    file_name: Mapped[str] = mapped_column(String(300))
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int]
    storage_key: Mapped[str | None] = mapped_column(String(300))
    test_file_name: Mapped[str | None] = mapped_column(String(300))
    test_sha256: Mapped[str | None] = mapped_column(String(64))
    test_storage_key: Mapped[str | None] = mapped_column(String(300))
    file_key: Mapped[bytes | None] = mapped_column(LargeBinary)
    asked_recipe: Mapped[dict[str, Any] | None]
    expires_at: Mapped[datetime]
    erased_at: Mapped[datetime | None]
    receipt: Mapped[dict[str, Any] | None]


class Recipe(Identified, Claimable, Base):
    """How the stored original was read, version by version: reading, profile, roles, encoding schema.

    States: ``read`` (no roles yet), ``counting`` (roles given, groups being counted), ``ready``, ``refused``.
    ``table_key`` is the parsed table in storage, encrypted with the dataset's key.
    """

    __tablename__ = "recipe"
    __table_args__ = (
        UniqueConstraint("dataset_id", "version"),
        CheckConstraint("state IN ('read', 'counting', 'ready', 'refused')", name="state"),
    )
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("dataset.id"), index=True)
    created_by: Mapped[str] = mapped_column(ForeignKey("person.id"))
    version: Mapped[int]
    state: Mapped[str] = mapped_column(String(20))
    reading: Mapped[dict[str, Any]]
    profile: Mapped[dict[str, Any]]
    roles: Mapped[dict[str, Any] | None]
    encoding: Mapped[dict[str, Any] | None]
    summary: Mapped[dict[str, Any] | None]
    table_key: Mapped[str | None] = mapped_column(String(300))
    problem: Mapped[dict[str, Any] | None]


class Group(Identified, Base):
    """The rows that share a value of a protected attribute, or a combination of values.

    ``key`` is stable across recipes (``everyone``, ``sex=Female``, ``sex=Female&race=Black``). ``test_units`` counts the
    persons of the test part where rows belong to persons, else its rows; null for groups counted before it existed.
    """

    __tablename__ = "group"
    __table_args__ = (UniqueConstraint("recipe_id", "key"), UniqueConstraint("recipe_id", "position"))
    team_id: Mapped[str] = mapped_column(ForeignKey("team.id"), index=True)
    recipe_id: Mapped[str] = mapped_column(ForeignKey("recipe.id"), index=True)
    position: Mapped[int]
    key: Mapped[str] = mapped_column(String(2000))
    attributes: Mapped[dict[str, Any]]
    train: Mapped[int]
    validation: Mapped[int]
    test: Mapped[int]
    test_units: Mapped[int | None]
    label_counts: Mapped[dict[str, Any]]
    base_rate: Mapped[float | None]
    estimable: Mapped[bool]
    reason: Mapped[str | None] = mapped_column(String(500))
