"""REST for the numbers of an audit beside its costs. Every table is JSON, and CSV under ``.csv``: same rows and digits."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from backend.audits import numbers
from backend.audits.rows import (
    CANDIDATE_COLUMNS,
    DISPARITY_COLUMNS,
    GAP_COLUMNS,
    MARK_COLUMNS,
    MEASUREMENT_COLUMNS,
    VALUE_COLUMNS,
)
from backend.audits.schemas import (
    CandidateTable,
    DisparityTable,
    GapTable,
    MarkTable,
    StatisticTable,
)
from backend.csv_export import csv_response
from backend.edge import Asker, settings_of, transaction

router = APIRouter(prefix="/api/v1", tags=["audits"])

MetricKey = Annotated[str, Query(description="Key of a metric of the catalogue.")]
GapKey = Annotated[str, Query(description="Key of a metric of the catalogue, or equalized_odds.")]
Reference = Annotated[str, Query(description="Key of a group, or best.")]
GroupMin = Annotated[int, Query(description="Groups with fewer test rows are not part of the question.")]
MaxCost = Annotated[float, Query(description="Largest tolerated cost of any such group: points, or nats for the loss.")]


def _found(made: Any, request: Request, principal: Any, audit_id: str, **options: Any) -> dict[str, Any]:
    with transaction(request) as session:
        return dict(made(session, settings_of(request), principal, audit_id, **options))


@router.get("/audits/{audit_id}/gaps", summary="Gaps over groups", responses={200: {"model": GapTable}})
def gaps(request: Request, principal: Asker, audit_id: str, metric: GapKey = "accuracy") -> Response:
    """The spread of a metric over groups, what privacy added to it, and what chance alone would show; audit-only."""
    return JSONResponse(_found(numbers.gaps, request, principal, audit_id, metric=metric))


@router.get("/audits/{audit_id}/gaps.csv", summary="Gaps over groups, as CSV", response_class=Response)
def gaps_csv(request: Request, principal: Asker, audit_id: str, metric: GapKey = "accuracy") -> Response:
    """The same rows and digits."""
    found = _found(numbers.gaps, request, principal, audit_id, metric=metric)
    return csv_response(f"gaps-{audit_id}", GAP_COLUMNS, found["rows"])


@router.get(
    "/audits/{audit_id}/disparities", summary="Groups against a reference", responses={200: {"model": DisparityTable}}
)
def disparities(
    request: Request, principal: Asker, audit_id: str, metric: MetricKey = "accuracy", reference: Reference = "best"
) -> Response:
    """Difference and ratio of each group to a reference group, or to the best; audit-only."""
    options = {"metric": metric, "reference": reference}
    return JSONResponse(_found(numbers.disparities, request, principal, audit_id, **options))


@router.get("/audits/{audit_id}/disparities.csv", summary="Groups against a reference, as CSV", response_class=Response)
def disparities_csv(
    request: Request, principal: Asker, audit_id: str, metric: MetricKey = "accuracy", reference: Reference = "best"
) -> Response:
    """The same rows and digits."""
    found = _found(numbers.disparities, request, principal, audit_id, metric=metric, reference=reference)
    return csv_response(f"disparities-{audit_id}", DISPARITY_COLUMNS, found["rows"])


@router.get("/audits/{audit_id}/marks", summary="Who pays more than the rest", responses={200: {"model": MarkTable}})
def marks(request: Request, principal: Asker, audit_id: str) -> Response:
    """Each group against all other rows, averaged over epsilons, adjusted by Holm over the planned family; audit-only."""
    return JSONResponse(_found(numbers.marks, request, principal, audit_id))


@router.get("/audits/{audit_id}/marks.csv", summary="Who pays more than the rest, as CSV", response_class=Response)
def marks_csv(request: Request, principal: Asker, audit_id: str) -> Response:
    """The same rows and digits."""
    return csv_response(f"marks-{audit_id}", MARK_COLUMNS, _found(numbers.marks, request, principal, audit_id)["rows"])


@router.get("/audits/{audit_id}/tradeoff", summary="The trade-off", responses={200: {"model": CandidateTable}})
def tradeoff(
    request: Request,
    principal: Asker,
    audit_id: str,
    metric: MetricKey = "accuracy",
    group_min: GroupMin = 200,
    max_cost: MaxCost = 3.0,
) -> Response:
    """Candidates, those that no other beats, and the strongest epsilon that the limit allows; audit-only."""
    options = {"metric": metric, "group_min": group_min, "max_cost": max_cost}
    return JSONResponse(_found(numbers.tradeoffs, request, principal, audit_id, **options))


@router.get("/audits/{audit_id}/tradeoff.csv", summary="The trade-off, as CSV", response_class=Response)
def tradeoff_csv(
    request: Request,
    principal: Asker,
    audit_id: str,
    metric: MetricKey = "accuracy",
    group_min: GroupMin = 200,
    max_cost: MaxCost = 3.0,
) -> Response:
    """The candidates with the same digits."""
    options = {"metric": metric, "group_min": group_min, "max_cost": max_cost}
    found = _found(numbers.tradeoffs, request, principal, audit_id, **options)
    return csv_response(f"tradeoff-{audit_id}", CANDIDATE_COLUMNS, found["rows"])


@router.get("/audits/{audit_id}/measurements", summary="Measurements", responses={200: {"model": StatisticTable}})
def measurements(request: Request, principal: Asker, audit_id: str) -> Response:
    """Sums over rows or persons, from which the intervals can be recomputed; audit-only."""
    return JSONResponse(_found(numbers.measurements, request, principal, audit_id))


@router.get("/audits/{audit_id}/measurements.csv", summary="Measurements, as CSV", response_class=Response)
def measurements_csv(request: Request, principal: Asker, audit_id: str) -> Response:
    """The same rows and digits."""
    found = _found(numbers.measurements, request, principal, audit_id)
    return csv_response(f"measurements-{audit_id}", MEASUREMENT_COLUMNS, found["rows"])


@router.get("/audits/{audit_id}/values", summary="Values of runs", responses={200: {"model": StatisticTable}})
def values(request: Request, principal: Asker, audit_id: str) -> Response:
    """AUC and calibration error of every run and group, made from the logits; audit-only."""
    return JSONResponse(_found(numbers.values, request, principal, audit_id))


@router.get("/audits/{audit_id}/values.csv", summary="Values of runs, as CSV", response_class=Response)
def values_csv(request: Request, principal: Asker, audit_id: str) -> Response:
    """The same rows and digits."""
    found = _found(numbers.values, request, principal, audit_id)
    return csv_response(f"values-{audit_id}", VALUE_COLUMNS, found["rows"])
