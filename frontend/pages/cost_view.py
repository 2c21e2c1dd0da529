"""The tab Cost: its choices, its charts with their table twins, and what it says while there is nothing yet."""

from __future__ import annotations

from typing import Any

from frontend.charts.catalogue import CHARTS
from frontend.charts.cost_table import reference_table
from frontend.pages import mark_view
from frontend.pages.selection import ALL, INTERVAL_WORDS, VIEWS, Selection, titles
from worker.engine import catalogue
from worker.engine.facts.costs import BASELINE, INTERVALS
from worker.engine.results import AuditFacts

CHART = {chart.key: chart for chart in CHARTS}


def context(audit_id: str, state: str, audit: AuditFacts, chosen: Selection) -> dict[str, Any]:
    """Everything that the part needs."""
    has_rows = any(row.cost is not None for row in chosen.facts.rows)
    return {
        "selection": {
            "metric": chosen.asked.metric.key,
            "interval": chosen.asked.interval,
            "method": chosen.method,
            "group": chosen.group,
            "epsilon_text": "" if chosen.epsilon is None else f"{chosen.epsilon:g}",
            "by": chosen.by,
            "view": "value" if chosen.asked.absolute else "cost",
        },
        "choices": _choices(audit, chosen),
        "panels": [_panel(audit_id, chosen, method) for method in chosen.methods] if has_rows else [],
        "at_epsilon": _at_epsilon(audit_id, chosen) if has_rows else None,
        "references": _references(audit_id, chosen),
        "pages": _pages(audit_id, chosen),
        "nothing_yet": _nothing_yet(state),
        "marks": mark_view.context(audit),
    }


def _choices(audit: AuditFacts, chosen: Selection) -> dict[str, list[tuple[str, str]]]:
    named = titles()
    method = chosen.method or next(iter(chosen.facts.methods), None)
    grid = sorted({r.epsilon_asked for r in chosen.facts.rows if r.method == method and r.epsilon_asked is not None})
    return {
        "metric": [(metric.key, metric.title) for metric in catalogue.METRICS],
        "interval": [(key, INTERVAL_WORDS[key]) for key in INTERVALS],
        "method": [("", "all methods"), *((key, named.get(key, key)) for key in chosen.facts.methods)],
        "epsilon": [(f"{epsilon:g}", f"{epsilon:g}") for epsilon in grid],
        "by": [(key, "all attributes" if key == ALL else key) for key in chosen.sets],
        "group": [("", "none"), *((group.key, group.label) for group in audit.groups)],
        "view": list(VIEWS),
    }


def _panel(audit_id: str, chosen: Selection, method: str) -> dict[str, Any]:
    chart, view = CHART["group_costs"], chosen.view(method)
    noun = "Change" if chosen.asked.metric.better is None else "Privacy cost"
    if chosen.asked.absolute:
        noun = chosen.asked.metric.title
    return _shown(audit_id, chosen, chart, view, f"{noun} per group against epsilon spent", f"chart-{method}")


def _at_epsilon(audit_id: str, chosen: Selection) -> dict[str, Any] | None:
    method = next(iter(chosen.methods), None)
    if method is None or chosen.epsilon is None:
        return None
    noun = "change" if chosen.asked.metric.better is None else "cost"
    title = f"The {noun} of each group at epsilon {chosen.epsilon:g}"
    return _shown(audit_id, chosen, CHART["costs_at_epsilon"], chosen.view(method), title, "chart-at-epsilon")


def _shown(audit_id: str, chosen: Selection, chart: Any, view: Any, heading: str, element: str) -> dict[str, Any]:
    query = chosen.query(method=view.method)
    several = len(chosen.facts.methods) > 1
    return {
        "heading": f"{heading}, {chosen.facts.method_title(view.method)}" if several else heading,
        "source": f"/audits/{audit_id}/charts/{chart.key}.json?{query}",
        "csv": f"/api/v1/audits/{audit_id}/costs.csv?metric={chosen.asked.metric.key}&interval={chosen.asked.interval}",
        "caption": chart.caption(chosen.facts, view),
        "table": chart.table(chosen.facts, view),
        "id": element,
    }


def _references(audit_id: str, chosen: Selection) -> dict[str, Any] | None:
    """What the methods without a claim cost the groups in view; None where the audit has none."""
    free = (row for row in chosen.facts.rows if row.epsilon_asked is None and row.method != BASELINE)
    rows = tuple(row for row in free if row.group in chosen.groups)
    if not rows:
        return None
    title = f"{chosen.asked.metric.title} of runs that claim no privacy"
    return {
        "heading": "Without a claim of privacy",
        "table": reference_table(chosen.facts, rows, title),
        "csv": f"/api/v1/audits/{audit_id}/costs.csv?metric={chosen.asked.metric.key}&interval={chosen.asked.interval}",
    }


def _pages(audit_id: str, chosen: Selection) -> list[dict[str, Any]]:
    """Links to the other groups, where one panel does not hold them all."""
    found, first = [], 1
    for number, groups in enumerate(chosen.pages, 1):
        last = first + len(groups) - 1
        href = f"/audits/{audit_id}?{chosen.query(page=number, group=None)}"
        words = f"groups {first} to {last}" if last > first else f"group {first}"
        found.append({"here": number == chosen.page, "words": words, "href": href})
        first = last + 1
    return found


def _nothing_yet(state: str) -> str:
    if state == "planning":
        return "The noise for each epsilon is being found. The chart begins when the first stack has finished."
    if state in ("queued", "running"):
        return "No stack has finished yet. The chart begins with the first one and fills in by itself."
    if state in ("stopped", "failed"):
        return "No stack has finished, so there is no cost to show. Resume the audit to go on."
    return "There is no cost to show. The sentence at the top says why."
