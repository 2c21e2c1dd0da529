"""Figures as JSON: the browser draws what the charts made of the facts, and asks again when something changed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.audits import service
from backend.edge import Asker, settings_of, transaction
from backend.errors import NotFound
from frontend.charts.base import Figure
from frontend.charts.catalogue import CHARTS
from frontend.charts.gap_lines import Shown, gap_figure
from frontend.charts.theme import Tone
from frontend.charts.tradeoff_points import candidate_figure
from frontend.pages import gap_view
from frontend.pages.selection import Selection
from worker.engine.results import AuditFacts

router = APIRouter(include_in_schema=False)

CHART = {chart.key: chart for chart in CHARTS}
GAP_CHARTS: dict[str, Shown] = {"gap_gap": "gap", "gap_excess": "excess"}


@router.get("/audits/{audit_id}/charts/{key}.json")
def figure(
    request: Request, principal: Asker, audit_id: str, key: str, tone: str = "light", narrow: str = ""
) -> Response:
    """One chart of an audit, for the choice in the query."""
    if key not in (*CHART, *GAP_CHARTS, "tradeoff"):
        raise NotFound("chart")
    query = request.query_params
    with transaction(request) as session:
        wanted = [metric.key for metric in gap_view.metrics_of(query)]
        facts = service.audit_facts(session, settings_of(request), principal, audit_id, wanted)
    figure = _figure(key, facts, query, "dark" if tone == "dark" else "light", bool(narrow))
    return Response(json.dumps(figure, allow_nan=False), media_type="application/json")


def _figure(key: str, facts: AuditFacts, query: Mapping[str, str], tone: Tone, narrow: bool) -> Figure:
    if key in GAP_CHARTS:
        return gap_figure(gap_view.gap_facts(facts, query), GAP_CHARTS[key], tone, narrow=narrow)
    if key == "tradeoff":
        return candidate_figure(gap_view.found_tradeoff(facts, query)[1], tone, narrow=narrow)
    chosen = Selection.of(facts, query)
    view = chosen.view(next(iter(chosen.methods), ""), tone=tone, narrow=narrow)
    return CHART[key].figure(chosen.facts, view)
