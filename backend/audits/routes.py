"""REST for audits, their numbers, and the queue."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import JSONResponse, Response

from backend.audits import service
from backend.audits.rows import COST_COLUMNS, RUN_COLUMNS, STATISTIC_COLUMNS
from backend.audits.schemas import (
    AuditAsked,
    AuditList,
    AuditReceipt,
    AuditView,
    CostTable,
    ForecastView,
    QueueTable,
    RunTable,
    StatisticTable,
)
from backend.csv_export import csv_response
from backend.edge import Asker, Body, body_schema, settings_of, storage_of, transaction

router = APIRouter(prefix="/api/v1", tags=["audits"])

MetricKey = Annotated[str, Query(description="Key of a metric of the catalogue.")]
IntervalKind = Annotated[str, Query(description="both, sampling or seeds")]


@router.post("/audits/forecast", summary="Forecast", response_model=ForecastView, openapi_extra=body_schema(AuditAsked))
def forecast(request: Request, principal: Asker, body: Body) -> dict[str, Any]:
    """What an audit would take; nothing is stored."""
    with transaction(request) as session:
        return service.forecast(session, settings_of(request), principal, body)


@router.post(
    "/audits",
    status_code=201,
    summary="Start an audit",
    response_model=AuditView,
    openapi_extra=body_schema(AuditAsked),
)
def start(
    request: Request,
    principal: Asker,
    body: Body,
    idempotency_key: Annotated[
        str | None, Header(description="The same key and body again start nothing twice.")
    ] = None,
) -> dict[str, Any]:
    """Stores the question with its runs and begins to plan it."""
    with transaction(request) as session:
        return service.start(session, settings_of(request), principal, body, idempotency_key=idempotency_key)


@router.get("/audits", summary="Audits, newest first", response_model=AuditList)
def audits(
    request: Request,
    principal: Asker,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
    state: str | None = None,
    dataset: Annotated[str | None, Query(description="Audits of this dataset alone.")] = None,
) -> dict[str, Any]:
    """All that one may see, in pages."""
    with transaction(request) as session:
        return service.list_audits(session, principal, limit=limit, cursor=cursor, state=state, dataset=dataset)


@router.get("/audits/{audit_id}", summary="One audit", response_model=AuditView)
def audit(request: Request, principal: Asker, audit_id: str) -> dict[str, Any]:
    """State, runs, forecast and claim."""
    with transaction(request) as session:
        return service.get_audit(session, principal, audit_id)


@router.post("/audits/{audit_id}/stop", summary="Stop an audit", response_model=AuditView)
def stop(request: Request, principal: Asker, audit_id: str) -> dict[str, Any]:
    """What has finished stays; what trains stops within seconds."""
    with transaction(request) as session:
        return service.stop(session, principal, audit_id)


@router.post("/audits/{audit_id}/resume", summary="Resume an audit", response_model=AuditView)
def resume(request: Request, principal: Asker, audit_id: str) -> dict[str, Any]:
    """Stopped and failed stacks train from the start, with the same numbers as if they had never stopped."""
    with transaction(request) as session:
        return service.resume(session, principal, audit_id)


@router.delete("/audits/{audit_id}", summary="Erase an audit", response_model=AuditReceipt)
def erase(request: Request, principal: Asker, audit_id: str) -> dict[str, Any]:
    """Removes its numbers and logits; answers with the receipt."""
    with transaction(request) as session:
        return service.erase(session, storage_of(request), principal, audit_id)


def _costs(request: Request, principal: Any, audit_id: str, metric: str, interval: str) -> dict[str, Any]:
    with transaction(request) as session:
        return service.costs(session, settings_of(request), principal, audit_id, metric=metric, interval=interval)


@router.get("/audits/{audit_id}/costs", summary="Privacy cost per group", responses={200: {"model": CostTable}})
def costs(
    request: Request,
    principal: Asker,
    audit_id: str,
    metric: MetricKey = "accuracy",
    interval: IntervalKind = "both",
) -> Response:
    """Baseline minus private value, paired by seed, with its interval; audit-only."""
    return JSONResponse(_costs(request, principal, audit_id, metric, interval))


@router.get("/audits/{audit_id}/costs.csv", summary="Privacy cost per group, as CSV", response_class=Response)
def costs_csv(
    request: Request,
    principal: Asker,
    audit_id: str,
    metric: MetricKey = "accuracy",
    interval: IntervalKind = "both",
) -> Response:
    """The same rows and digits."""
    rows = _costs(request, principal, audit_id, metric, interval)["rows"]
    return csv_response(f"costs-{audit_id}", COST_COLUMNS, rows)


@router.get("/audits/{audit_id}/runs", summary="Runs", responses={200: {"model": RunTable}})
def runs(request: Request, principal: Asker, audit_id: str) -> Response:
    """Every run with the epsilon asked and spent, and what the accountant was handed."""
    with transaction(request) as session:
        return JSONResponse(service.runs(session, principal, audit_id))


@router.get("/audits/{audit_id}/runs.csv", summary="Runs, as CSV", response_class=Response)
def runs_csv(request: Request, principal: Asker, audit_id: str) -> Response:
    """The same rows and digits."""
    with transaction(request) as session:
        rows = service.runs(session, principal, audit_id)["rows"]
    return csv_response(f"runs-{audit_id}", RUN_COLUMNS, rows)


@router.get("/audits/{audit_id}/statistics", summary="Statistics", responses={200: {"model": StatisticTable}})
def statistics(request: Request, principal: Asker, audit_id: str) -> Response:
    """Counts and sums per run, group, true label and part, from which the metrics can be recomputed; audit-only."""
    with transaction(request) as session:
        return JSONResponse(service.statistics(session, settings_of(request), principal, audit_id))


@router.get("/audits/{audit_id}/statistics.csv", summary="Statistics, as CSV", response_class=Response)
def statistics_csv(request: Request, principal: Asker, audit_id: str) -> Response:
    """The same rows and digits."""
    with transaction(request) as session:
        rows = service.statistics(session, settings_of(request), principal, audit_id)["rows"]
    return csv_response(f"statistics-{audit_id}", STATISTIC_COLUMNS, rows)


@router.get("/queue", summary="What waits, how long", response_model=QueueTable)
def queue(request: Request, principal: Asker) -> dict[str, Any]:
    """Jobs by name, of all teams together."""
    with transaction(request) as session:
        return service.queue_state(session, principal)
