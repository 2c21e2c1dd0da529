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
    missing_codes: list[dict[str, Any]] = Field(description="Texts that were taken as missing, with their counts.")
    suspects: list[dict[str, Any]] = Field(description="Values that may stand for a missing cell; nothing was done.")
    merges: list[dict[str, Any]] = Field(
        description="Spellings that look alike, {into, count, spellings}; nothing was done."
    )
    offending: list[dict[str, Any]] = Field(description="Cells that keep it from being a number, {row, value}.")
    as_number: str | None = Field(description="What reading it as a number would strip, if it could be one.")


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
    notes: list[dict[str, Any]] = Field(
        description="{message}, with the column and the field of the recipe it is about."
    )
    preview: list[list[str | None]] = Field(description="The first rows as they were understood; null where missing.")
    repeats: int | None = Field(description="Rows that are equal to an earlier one, but for row numbers.")
    encoding: list[dict[str, Any]] = Field(
        description="How each feature is encoded: bounds or list, source, clamped, in_other."
    )
    problem: dict[str, Any] | None
    recipe: dict[str, Any] | None
    asked_recipe: dict[str, Any] | None = Field(
        description="The part of the recipe that people asked for; the rest was found."
    )
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
    """How to read the original; any subset. Each given field replaces what was asked for it before, null takes it back."""

    encoding: str | None = Field(None, description="utf-8, cp1252, utf-16 …")
    delimiter: str | None = None
    quote: str | None = Field(None, description="Empty where nothing encloses cells.")
    decimal: str | None = Field(None, description=". or ,")
    header: bool | None = None
    header_rows: int | None = Field(None, ge=0, le=2)
    skip_rows: int | None = Field(None, ge=0, description="Rows above the header that are no part of the table.")
    footer_rows: int | None = Field(None, ge=0, description="Rows at the end that are no part of it.")
    ragged_rows: str | None = Field(None, description="refuse, or leave out (counted)")
    sheet: str | None = Field(None, description="Of a workbook.")
    member: str | None = Field(None, description="Of a zip archive.")
    trim_spaces: bool | None = Field(None, description="null: outer spaces go where that merges no two values")
    missing_codes: list[str] | None = Field(None, description="Texts that are missing in every column.")
    missing: dict[str, list[str]] | None = Field(None, description="Texts that are missing too, by column name.")
    types: dict[str, str] | None = Field(None, description="number or category, by column name")
    merges: dict[str, dict[str, str]] | None = Field(None, description="by column name: spelling to its replacement")
    test_file_ends: dict[str, str] | None = Field(
        None, description="by column name: an end to take off in the test file"
    )
    labels: dict[str, Any] | None = Field(None, description="{columns: {name: label}, values: {name: {value: label}}}")
    schema_: dict[str, Any] | None = Field(
        None,
        alias="schema",
        description="by column name: {low, high} or {categories, other}, and source: public or read from the data",
    )


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
