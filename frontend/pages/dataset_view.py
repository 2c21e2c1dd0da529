"""What the dataset pages say, made from what the service gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.people.service import Principal
from frontend.pages import recipe_view, roles_form, words
from worker.engine.results import EVERYONE

Dataset = Mapping[str, Any]


def problem_of(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A stored problem as its three sentences."""
    if not stored:
        return None
    said = [str(stored[key]) for key in ("happened", "where", "next") if stored.get(key)]
    return {"message": " ".join(said) or str(stored.get("message", "")), "errors": []}


def line(dataset: Dataset) -> dict[str, Any]:
    """One dataset in the list."""
    return {**dataset, "columns": dataset.get("columns"), "state_words": state_words(dataset)}


def state_words(dataset: Dataset) -> str:
    """Where a dataset stands, in the reader's words."""
    if dataset["state"] == "profiled":
        recipe = {"read": "needs roles", "counting": "groups being counted", "ready": "ready", "refused": "needs roles"}
        return recipe.get(dataset.get("recipe_state") or "read", "read")
    return words.STATES.get(dataset["state"]) or str(dataset["state"])


def list_sentence(items: list[dict[str, Any]]) -> str:
    """What the list of datasets says at its top."""
    if not items:
        return "No dataset yet. Drop a file or choose a sample to begin."
    ready = sum(item["state_words"] == "ready" for item in items)
    wait = sum(item["state_words"] == "needs roles" for item in items)
    parts = [f"{words.plural(len(items), 'dataset')}: {ready} ready for an audit"]
    if wait:
        parts.append(f"{wait} waiting for the roles of {'its' if wait == 1 else 'their'} columns")
    return ", ".join(parts) + "."


def context(
    dataset: Dataset,
    group_table: Mapping[str, Any],
    principal: Principal,
    *,
    form: Any = None,
    errors: Mapping[str, str] | None = None,
    stray: list[str] | None = None,
    form_problem: Any = None,
    recipe: recipe_view.Posted | None = None,
) -> dict[str, Any]:
    """Everything that the page and its parts need."""
    shown = {**dataset, "state_words": state_words(dataset), "problem": problem_of(dataset.get("problem"))}
    profile = {"columns": dataset.get("columns") or []}
    ready = dataset["state"] == "profiled" and dataset.get("recipe_state") == "ready"
    groups = [_group(row) for row in group_table.get("rows", [])] if ready else []
    found: dict[str, Any] = {
        "dataset": shown,
        "sentence": sentence(dataset, groups),
        "notes": [{"column": None, "field": None, **note} for note in dataset.get("notes") or []],
        "groups": groups,
        "groups_sentence": groups_sentence(groups),
        "counting": dataset.get("recipe_state") == "counting",
        "ready": ready,
        "may_run": may_run(principal),
        "receipt": receipt(dataset.get("receipt")),
        "favourable": _favourable(dataset),
        "errors": dict(errors or {}),
        "stray": stray or [],
        "form_problem": form_problem,
        "roles_sentence": _roles_sentence(dataset),
    }
    if dataset["state"] in ("profiled", "refused"):
        found |= recipe_view.context(dataset, recipe)
    if profile["columns"]:
        found |= roles_form.fields(profile, dataset.get("roles"), dataset.get("suggested_roles"), form)
    return found


def receipt(stored: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What erasing left behind, in a fixed order."""
    found = dict(stored or {})
    order: list[str] = [key for key in ("erased_at", "erased_by", "dataset", "sha256") if key in found]
    order += sorted(key for key in found if key not in order)
    return [(key.replace("_", " "), _receipt_words(key, found[key])) for key in order]


def _receipt_words(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return words.moment(value) if key.endswith("_at") else str(value)


def may_run(principal: Principal) -> bool:
    """Whether the person may change things."""
    return "run" in principal.scopes


def sentence(dataset: Dataset, groups: list[dict[str, Any]]) -> str:
    """The answer to "what is this table?"."""
    state = dataset["state"]
    if state == "received":
        return "This table is being read."
    if state == "refused":
        return "This table could not be read."
    if state == "erased":
        return "This dataset was erased: its key is destroyed and nobody can read it again."
    rows = f"{dataset['rows']:,} rows and {len(dataset['columns'])} columns"
    if not groups:
        return f"A table of {rows}. What is each column for?"
    judged = [group for group in groups if group["estimable"] and not group["everyone"]]
    rates = [(group["base_rate"], group["label"]) for group in judged if group["base_rate"] is not None]
    count = words.plural(len(groups) - 1, "group")
    large = "all" if len(judged) == len(groups) - 1 else f"{len(judged)} of them"
    said = f"A table of {rows} with {count}, {large} large enough to be judged."
    if len(rates) > 1:
        low, high = min(rates), max(rates)
        said += f" The base rate runs from {words.percent(low[0])} ({low[1]}) to {words.percent(high[0])} ({high[1]})."
    return said


def groups_sentence(groups: list[dict[str, Any]]) -> str:
    """What can be judged, and what helps where it cannot."""
    small = [group["label"] for group in groups if not group["estimable"]]
    if not small:
        return "Every group has enough test rows to be judged."
    named = words.listed([words.shorten(label, 40) for label in small[:6]]) + (" and others" if len(small) > 6 else "")
    return (
        f"{words.plural(len(small), 'group')} cannot be judged: {named}. They stay in every table, with the reason. "
        "More rows help, or wider groups: merge spellings, or set fewer cut points."
    )


def _group(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "everyone": row["key"] == EVERYONE, "smallest": row.get("smallest_detectable_cost")}


def _favourable(dataset: Dataset) -> str:
    target = (dataset.get("roles") or {}).get("target") or {}
    if not target:
        return ""
    labels = (dataset.get("recipe") or {}).get("labels") or {}
    name = labels.get("columns", {}).get(target["column"], target["column"])
    if target.get("threshold") is not None:
        return f"{name} at or above {target['threshold']:g}"
    value = target.get("favourable") or target.get("one_vs_rest")
    shown = labels.get("values", {}).get(target["column"], {}).get(value, value)
    return f"{name} is {shown}" if value is not None else ""


def _roles_sentence(dataset: Dataset) -> str:
    if dataset.get("roles"):
        return "These roles are in force. Changing them makes a new version of the recipe; earlier audits keep theirs."
    return "The roles are guessed, each with its reason. Look them over and change what is wrong."
