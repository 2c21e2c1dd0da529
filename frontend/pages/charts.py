"""Figures as JSON: the browser draws what the charts made of the facts, and asks again when something changed."""

from __future__ import annotations

import json

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.audits import service
from backend.edge import Asker, settings_of, transaction
from backend.errors import NotFound
from frontend.charts.catalogue import CHARTS
from frontend.pages.selection import Selection

router = APIRouter(include_in_schema=False)

CHART = {chart.key: chart for chart in CHARTS}


@router.get("/audits/{audit_id}/charts/{key}.json")
def figure(
    request: Request, principal: Asker, audit_id: str, key: str, tone: str = "light", narrow: str = ""
) -> Response:
    """One chart of an audit, for the choice in the query."""
    if key not in CHART:
        raise NotFound("chart")
    with transaction(request) as session:
        facts = service.audit_facts(session, settings_of(request), principal, audit_id)
    chosen = Selection.of(facts, request.query_params)
    method = next(iter(chosen.methods), "")
    view = chosen.view(method, tone="dark" if tone == "dark" else "light", narrow=bool(narrow))
    body = json.dumps(CHART[key].figure(chosen.facts, view), allow_nan=False)
    return Response(body, media_type="application/json")
