"""What the page of a dataset says about its recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frontend.pages import recipe_form, words

Dataset = Mapping[str, Any]

_FACTS = (
    ("format", "Format"),
    ("member", "File in the archive"),
    ("sheet", "Sheet"),
    ("encoding", "Encoding"),
    ("delimiter", "Between the columns"),
    ("quote", "Around cells"),
    ("decimal", "Before the decimals"),
    ("header_rows", "Header rows"),
    ("skip_rows", "Rows above the table"),
    ("footer_rows", "Rows below the table"),
    ("missing_codes", "Missing in every column"),
    ("test_file_ends", "Taken off in the test file"),
)
MOST_PREVIEWED = 30


@dataclass(frozen=True)
class Posted:
    """A form of the recipe that came back: as it was filled in, with what is wrong with it."""

    form: Any
    errors: Mapping[str, str]
    stray: list[str]
    problem: Any


def context(dataset: Dataset, posted: Posted | None = None) -> dict[str, Any]:
    """What the page says of the recipe: its decisions in words, the first rows, and the form that changes it."""
    said = {
        "recipe_errors": dict(posted.errors) if posted else {},
        "recipe_stray": posted.stray if posted else [],
        "recipe_problem": posted.problem if posted else None,
    }
    return _shown(dataset) | recipe_form.fields(dataset, posted.form if posted else None) | said


def _shown(dataset: Dataset) -> dict[str, Any]:
    recipe, asked = dataset.get("recipe") or {}, dataset.get("asked_recipe") or {}
    facts = [
        (name, _fact(key, recipe[key]), key in asked)
        for key, name in _FACTS
        if recipe.get(key) is not None and dataset["state"] == "profiled" and _worth(key, recipe[key])
    ]
    version = dataset.get("recipe_version")
    said = f"This is version {version} of the recipe. " if version and dataset["state"] == "profiled" else ""
    return {
        "recipe_facts": facts,
        "recipe_sentence": f"{said}The original stays as it was sent; a change reads it anew and keeps roles that still fit.",
        "preview": [row[:MOST_PREVIEWED] for row in dataset.get("preview") or []],
        "preview_columns": (dataset.get("columns") or [])[:MOST_PREVIEWED],
    }


def _worth(key: str, value: Any) -> bool:
    return bool(value) if key in ("skip_rows", "footer_rows", "test_file_ends") else True


def _fact(key: str, value: Any) -> str:
    if key == "missing_codes":
        return ", ".join(words.shown(str(code))[:40] for code in value) or "none"
    if key == "test_file_ends":
        return ", ".join(f"{end!r} of {name[:40]}" for name, end in value.items())
    named = {"delimiter": dict(recipe_form.DELIMITERS), "decimal": dict(recipe_form.DECIMALS), "quote": {"": "nothing"}}
    return str(named.get(key, {}).get(value, value))[:80]
