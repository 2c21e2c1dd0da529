"""The tabs Gaps and Trade-off: their choices, charts with their tables, and what they say while there is nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from backend.audits import numbers
from frontend.charts.base import Cell, Table, signed
from frontend.charts.gap_lines import GapFacts, Shown, gap_caption, gap_table
from frontend.charts.tradeoff_points import CAPTION, CandidateFacts, candidate_table
from frontend.pages.selection import titles
from worker.engine import catalogue
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.disparities import BEST, disparity_rows
from worker.engine.facts.gaps import ODDS
from worker.engine.facts.grid import attribute_set, points_of
from worker.engine.facts.tradeoff import Tradeoff, tradeoff
from worker.engine.metrics.base import Metric
from worker.engine.results import EVERYONE, AuditFacts

Query = Mapping[str, str]
GROUP_MIN, MAX_COST = 200, 3.0
SHOWN: tuple[Shown, ...] = ("excess", "gap")
HEADINGS = {"gap": "{} against epsilon spent", "excess": "What privacy added: {} less that without DP"}


def metric_key(query: Query) -> str:
    """The metric in the query, equalized odds among them; the first where there is none."""
    key = query.get("metric", "")
    known = [metric.key for metric in catalogue.METRICS]
    return key if key in (*known, ODDS) else known[0]


def metrics_of(query: Query) -> tuple[Metric, ...]:
    """The metrics that a page with this query reads."""
    return numbers.gap_metrics(metric_key(query))


def sets_of(facts: AuditFacts) -> list[str]:
    """The sets of attributes that make groups."""
    return list(dict.fromkeys(attribute_set(group.attributes) for group in facts.groups if group.key != EVERYONE))


def gap_facts(facts: AuditFacts, query: Query) -> GapFacts:
    """The gaps of the metric and set of attributes in the query."""
    chosen, sets = metrics_of(query), sets_of(facts)
    by = query.get("by", "") if query.get("by", "") in sets else next(iter(sets), "")
    return GapFacts(
        rows=tuple(row for row in numbers.gaps_of(facts, chosen) if row.by == by),
        title=numbers.gap_title(chosen),
        by=by,
        percent=chosen[0].unit == "points",
        labels={group.key: group.label for group in facts.groups},
        method_titles=titles(),
    )


def gaps(audit_id: str, facts: AuditFacts, query: Query) -> dict[str, Any]:
    """Everything that the part Gaps needs."""
    found = gap_facts(facts, query)
    key = metric_key(query)
    address = {"metric": key, "by": found.by}
    has = any(row.gap is not None for row in found.rows)
    table = gap_table(found)
    charts = [
        {
            "key": f"gap_{shown}",
            "heading": HEADINGS[shown].format(found.title.lower() if shown == "excess" else found.title),
            "source": f"/audits/{audit_id}/charts/gap_{shown}.json?{urlencode(address)}",
            "csv": f"/api/v1/audits/{audit_id}/gaps.csv?{urlencode({'metric': key})}",
            "caption": gap_caption(found, shown),
            "table": table,
            "id": f"chart-gap-{shown}",
        }
        for shown in SHOWN
    ]
    return {
        "gap_choices": _gap_choices(facts, query, found.by),
        "gap_charts": charts if has else [],
        "gap_reason": next((row.reason for row in found.rows if row.reason), "There is no gap to show yet."),
        "disparities": _disparities(audit_id, facts, query) if has else None,
    }


def _gap_choices(facts: AuditFacts, query: Query, by: str) -> list[tuple[str, str, list[tuple[str, str]], str]]:
    named = [(metric.key, metric.gap_title) for metric in catalogue.METRICS] + [(ODDS, "Equalized odds difference")]
    points = [(f"{m}|{e:g}", f"{titles().get(m, m)}, {e:g}") for m, e in points_of(facts) if e is not None]
    groups = [(BEST, "the best group"), *((group.key, group.label) for group in facts.groups)]
    return [
        ("metric", "Gap", named, metric_key(query)),
        ("by", "Groups by", [(key, key) for key in sets_of(facts)], by),
        ("reference", "Groups against", groups, query.get("reference", BEST)),
        ("point", "Method and epsilon", points, query.get("point") or (points[0][0] if points else "")),
    ]


def _disparities(audit_id: str, facts: AuditFacts, query: Query) -> list[dict[str, Any]]:
    """Each group against the reference, at one method and epsilon; for equalized odds of both rates."""
    reference = query.get("reference", BEST)
    reference = reference if reference in {group.key for group in facts.groups} else BEST
    listed = [(m, e) for m, e in points_of(facts) if e is not None]
    point = next((p for p in listed if f"{p[0]}|{p[1]:g}" == query.get("point")), next(iter(listed), None))
    return [_disparity_table(audit_id, facts, metric, reference, point) for metric in metrics_of(query)]


def _disparity_table(
    audit_id: str, facts: AuditFacts, metric: Metric, reference: str, point: tuple[str, float | None] | None
) -> dict[str, Any]:
    rows = disparity_rows(cost_rows(facts, metric), metric, reference)
    own = [row for row in rows if (row.method, row.epsilon_asked) == point]
    scale, digits = (100.0, 1) if metric.unit == "points" else (1.0, 3)

    def level(value: float | None) -> str:
        return "—" if value is None else f"{value * scale:.{digits}f}" + (" %" if scale > 1 else "")

    cells = tuple(
        (
            Cell(f"{row.n:,}", row.n, number=True),
            Cell(row.group_label, row.group),
            Cell(level(row.value), row.value, number=True),
            Cell(
                signed(None if row.difference is None else row.difference * scale, digits), row.difference, number=True
            ),
            Cell("—" if row.ratio is None else f"{row.ratio:.3f}", row.ratio, number=True),
            Cell(row.reason or ("the reference" if row.group == row.reference else "")),
        )
        for row in own
    )
    where = "" if point is None else f", {titles().get(point[0], point[0])} at epsilon {point[1]:g}"
    named = {group.key: group.label for group in facts.groups}
    against = next((named.get(row.reference or "", "") for row in own if row.reference), "no group")
    caption = f"{metric.title} of each group against {against}{where}"
    columns = ("n", "Group", metric.title, "Difference", "Ratio", "Note")
    query = urlencode({"metric": metric.key, "reference": reference})
    return {
        "table": Table(caption, columns, cells, tuple(row.group for row in own)),
        "csv": f"/api/v1/audits/{audit_id}/disparities.csv?{query}",
        "id": f"disparities-{metric.key}",
    }


def limits(query: Query) -> tuple[int, float]:
    """Smallest group and largest cost of the question, as asked or as usual."""
    most = numbers.LARGEST_COST[metrics_of(query)[0].unit]
    try:
        group_min = int(query.get("group_min", ""))
    except ValueError:
        group_min = GROUP_MIN
    try:
        max_cost = float(query.get("max_cost", ""))
    except ValueError:
        max_cost = MAX_COST
    return max(1, min(group_min, 10**9)), max_cost if abs(max_cost) <= most else MAX_COST


def found_tradeoff(facts: AuditFacts, query: Query) -> tuple[Tradeoff, CandidateFacts]:
    """The trade-off of the query, and what its chart shows."""
    metric = metrics_of(query)[0]
    group_min, max_cost = limits(query)
    scale = 100.0 if metric.unit == "points" else 1.0
    found = tradeoff(facts, metric, titles(), group_min=group_min, max_cost=max_cost / scale)
    labels = {group.key: group.label for group in facts.groups}
    shown = CandidateFacts(
        found.rows, metric.title, metric.better == "higher", metric.unit == "points", max_cost, labels, titles()
    )
    return found, shown


def tradeoffs(audit_id: str, facts: AuditFacts, query: Query) -> dict[str, Any]:
    """Everything that the part Trade-off needs."""
    found, shown = found_tradeoff(facts, query)
    metric = metrics_of(query)[0]
    group_min, max_cost = limits(query)
    address = urlencode({"metric": metric.key, "group_min": group_min, "max_cost": f"{max_cost:g}"})
    chart = {
        "key": "tradeoff",
        "heading": f"{metric.title} of everyone against the cost of the worst-off group",
        "source": f"/audits/{audit_id}/charts/tradeoff.json?{address}",
        "csv": f"/api/v1/audits/{audit_id}/tradeoff.csv?{address}",
        "caption": CAPTION,
        "table": candidate_table(shown),
        "id": "chart-tradeoff",
    }
    return {
        "answer": found.answer,
        "tradeoff_chart": chart if any(row.overall is not None for row in found.rows) else None,
        "tradeoff_metric": ([(each.key, each.title) for each in catalogue.METRICS], metric.key),
        "group_min": group_min,
        "max_cost": f"{max_cost:g}",
        "cost_unit": shown.unit,
    }
