"""The list of audits: its filters, its order, and the worst cost of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import Request

from backend.audits import service
from backend.datasets import service as datasets
from backend.edge import settings_of, transaction
from backend.people.service import Principal
from backend.settings import Settings
from frontend.charts.base import epsilon_text
from frontend.pages import audit_view
from worker.engine import catalogue
from worker.engine.facts.costs import cost_rows
from worker.engine.results import EVERYONE, AuditFacts, CostRow

STATES = [
    ("", "all"),
    ("planning", "finding the noise"),
    ("queued", "waiting"),
    ("running", "training"),
    ("finished", "finished"),
    ("stopped", "stopped"),
    ("failed", "failed"),
]
SORTS = [("newest", "newest first"), ("oldest", "oldest first"), ("name", "by name"), ("worst", "worst cost first")]
AT_ONCE = 50
MOST_REMEMBERED = 2000

_worst: dict[tuple[str, str, int], tuple[float | None, str]] = {}
"""Worst cost by (audit, state, finished runs): numbers of the same runs never change."""


def found(request: Request, principal: Principal) -> dict[str, Any]:
    """Everything that the list needs, for the filters in the URL."""
    query = request.query_params
    filters = {
        "q": query.get("q", "").strip()[:200],
        "state": query.get("state", "") if query.get("state") in dict(STATES) else "",
        "sort": query.get("sort", "") if query.get("sort") in dict(SORTS) else SORTS[0][0],
    }
    filtered = bool(filters["q"] or filters["state"])
    with transaction(request) as session:
        listed = service.list_audits(
            session, principal, state=filters["state"] or None, cursor=query.get("cursor"), limit=AT_ONCE
        )
        names = _dataset_names(session, principal)
        lines = [_line(session, settings_of(request), principal, item, names) for item in listed["items"]]
    shown = _sorted([line for line in lines if _matches(line, filters["q"])], filters["sort"])
    first_visit = not lines and not filtered and not query.get("cursor")
    more = f"/?{urlencode({**filters, 'cursor': listed['next']})}" if listed["next"] else None
    return {
        "audits": shown,
        "more": more,
        "filters": filters,
        "states": STATES,
        "sorts": SORTS,
        "first_visit": first_visit,
        "sentence": FIRST if first_visit else audit_view.list_sentence(shown, filtered),
    }


FIRST = (
    "No audit yet. An audit measures what differential privacy costs each group of a table, and shows it as a chart."
)


def _dataset_names(session: Any, principal: Principal) -> dict[str, str]:
    listed = datasets.list_datasets(session, principal, limit=200)["items"]
    return {item["id"]: item["name"] for item in listed}


def _line(
    session: Any, settings: Settings, principal: Principal, item: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, Any]:
    line = audit_view.shown(item)
    known = item["dataset"] in names
    line |= {
        "dataset_id": item["dataset"] if known else None,
        "dataset_name": names.get(item["dataset"], "earlier dataset"),
    }
    line["worst_cost"], line["worst"] = _worst_of(session, settings, principal, item)
    return line


def _worst_of(
    session: Any, settings: Settings, principal: Principal, item: Mapping[str, Any]
) -> tuple[float | None, str]:
    done = item["runs"]["finished"]
    if not done or item["state"] == "erased":
        return None, "—"
    key = (item["id"], item["state"], done)
    if key not in _worst:
        if len(_worst) >= MOST_REMEMBERED:
            _worst.clear()
        _worst[key] = worst(service.audit_facts(session, settings, principal, item["id"]))
    return _worst[key]


def worst(facts: AuditFacts) -> tuple[float | None, str]:
    """The largest cost in accuracy that any group which can be judged pays anywhere on the grid."""
    rows = cost_rows(facts, catalogue.METRICS[0])
    judged = [
        row for row in rows if row.cost is not None and row.group != EVERYONE and "to judge" not in (row.reason or "")
    ]
    if not judged:
        return None, "not enough to judge"
    row = max(judged, key=lambda each: each.cost or 0.0)
    return row.cost, _words(row)


def _words(row: CostRow) -> str:
    span = f" ({100 * row.low:.1f} to {100 * row.high:.1f})" if row.low is not None and row.high is not None else ""
    text = f"{100 * (row.cost or 0.0):.1f} points{span}, {row.group_label} at epsilon {epsilon_text(row.epsilon_spent)}"
    return text.replace("-", "\u2212") if (row.low or 0.0) < 0 and "-" not in row.group_label else text


def _matches(line: Mapping[str, Any], text: str) -> bool:
    everything = " ".join([line["name"], line["dataset_name"], line["state_words"], *line["methods"]]).lower()
    return all(piece in everything for piece in text.lower().split())


def _sorted(lines: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    if order == "oldest":
        return lines[::-1]
    if order == "name":
        return sorted(lines, key=lambda line: line["name"].lower())
    if order == "worst":
        return sorted(lines, key=lambda line: -(line["worst_cost"] if line["worst_cost"] is not None else -9.0))
    return lines
