"""Datasets as REST shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class Column(BaseModel):
    """One column: what is in it and what it is for."""

    name: str
    label: str
    type: str = Field(description="number or category")
    missing: int
    distinct: int
    role: str | None
    reason: str | None = Field(description="Why this role was guessed; null once roles are given.")
    values: list[dict[str, Any]] = Field(description="The most frequent values with their counts.")
    low: float | None
    high: float | None


class DatasetLine(BaseModel):
    """A dataset in a list."""

    id: str
    name: str
    state: str = Field(description="received, profiled, refused or erased")
    sha256: str
    file_name: str
    size_bytes: int
    sample: str | None
    rows: int | None
    recipe_version: int | None
    recipe_state: str | None = Field(description="read, counting, ready or refused")
    created_at: datetime
    expires_at: datetime


class DatasetView(DatasetLine):
    """A dataset in full. ``recipe`` has the fields that ``PUT recipe`` takes, ``roles`` those of ``PUT roles``."""

    test_file_name: str | None
    test_sha256: str | None
    columns: list[Column]
    notes: list[dict[str, Any]]
    problem: dict[str, Any] | None
    recipe: dict[str, Any] | None
    roles: dict[str, Any] | None
    suggested_roles: dict[str, Any] | None
    summary: dict[str, Any] | None
    receipt: dict[str, Any] | None


class DatasetList(BaseModel):
    """A page of datasets, newest first."""

    items: list[DatasetLine]
    next: str | None


class GroupRow(BaseModel):
    """A group with its rows per part."""

    id: str
    key: str
    label: str
    attributes: dict[str, str]
    train: int
    validation: int
    test: int
    base_rate: float | None
    estimable: bool
    reason: str | None
    smallest_detectable_cost: float | None


class GroupTable(BaseModel):
    """All groups of the newest recipe, everyone first."""

    rows: list[GroupRow]
    recipe_version: int | None
    recipe_state: str | None


class SampleView(BaseModel):
    """A table that lies inside an installed package."""

    key: str
    title: str
    description: str
    roles: dict[str, Any]


class SampleList(BaseModel):
    """The samples that can be chosen here."""

    items: list[SampleView]
    next: None = None


class Receipt(BaseModel):
    """What was erased, when, and what remains."""

    erased_at: str
    erased_by: str
    dataset: str
    sha256: str
    key_destroyed: bool
    files_deleted: int
    groups_removed: int
    statistics_removed: int
    audits: int


class SampleAsked(BaseModel):
    """A dataset from a sample."""

    sample: str
    name: str | None = None
    recipe: dict[str, Any] | None = None


class RecipeAsked(BaseModel):
    """How to read the original; any subset, each given field replaces what was asked for it before."""

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    trim_spaces: bool | None = None
    missing_codes: list[str] | None = None
    types: dict[str, str] | None = Field(None, description="number or category, by column name")
    merges: dict[str, dict[str, str]] | None = Field(None, description="by column name: spelling to its replacement")
    labels: dict[str, Any] | None = Field(None, description="{columns: {name: label}, values: {name: {value: label}}}")


class TargetAsked(BaseModel):
    """The target column, and one of the three."""

    column: str
    favourable: str | None = None
    one_vs_rest: str | None = None
    threshold: float | None = None


class RolesAsked(BaseModel):
    """Roles of the columns; a column in protected and features is both; without features all others are."""

    target: TargetAsked
    protected: list[str]
    features: list[str] | None = None
    ignored: list[str] | None = None
    person_id: str | None = None
    weight: str | None = None
    cuts: dict[str, list[float]] | None = None
    intersections: list[list[str]] | None = None
