"""Pages of audits: the list, a new one, one of them with its costs and runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from backend.assets import PLOTLY_PATH, PLOTLY_STYLE_PATH, plotly_style_ids
from backend.audits import service
from backend.datasets import service as datasets
from backend.edge import Asker, settings_of, transaction
from backend.errors import Conflict, InputProblem, NotFound
from backend.people.service import Principal, require
from backend.progress.service import newest_id
from frontend.pages import audit_form, audit_list, audit_view, cost_view, gap_view, words
from frontend.pages.dataset_view import may_run
from frontend.pages.datasets import sample_lines
from frontend.pages.rendering import page, part, stream_of
from frontend.pages.selection import Selection
from worker.engine.audits.question import default_delta
from worker.engine.results import AuditFacts

router = APIRouter(include_in_schema=False)

MOST_FIELDS = 300
TABS = ("cost", "gaps", "tradeoff", "runs")


@router.get("/")
def audits(request: Request, principal: Asker) -> Response:
    """What is running, what waits for me."""
    found = audit_list.found(request, principal)
    return page(
        request,
        "audits",
        principal,
        "audits",
        stream={"id": "", "source": "/api/v1/events"},
        may_run=may_run(principal),
        samples=sample_lines(),
        **found,
    )


@router.get("/parts/audits")
def audits_part(request: Request, principal: Asker) -> Response:
    """The table of the list."""
    return part("audits", **audit_list.found(request, principal))


@router.get("/audits")
def audits_too(request: Request) -> Response:
    """The list has one address."""
    return RedirectResponse("/" + (f"?{request.url.query}" if request.url.query else ""), 307)


@router.get("/audits/new")
def new(request: Request, principal: Asker, dataset: str | None = None) -> Response:
    """What do I want to know, what will it take?"""
    require(principal, "run")
    return _new_page(request, principal, dataset, audit_form.start_values())


def _new_page(
    request: Request,
    principal: Principal,
    dataset_id: str | None,
    values: dict[str, Any],
    problem: InputProblem | Conflict | None = None,
    forecast: dict[str, Any] | None = None,
) -> Response:
    with transaction(request) as session:
        listed = datasets.list_datasets(session, principal, limit=200)["items"]
        chosen = datasets.get_dataset(session, principal, dataset_id) if dataset_id else None
    ready = [item for item in listed if item["state"] == "profiled" and item["recipe_state"] == "ready"]
    if chosen and (chosen["state"] != "profiled" or chosen["recipe_state"] != "ready"):
        return RedirectResponse(f"/datasets/{chosen['id']}#columns", 303)
    errors, stray = audit_form.field_errors(problem.errors) if problem else ({}, [])
    delta = default_delta(int(chosen["summary"]["units"])) if chosen and chosen["summary"] else None
    return page(
        request,
        "audit_new",
        principal,
        "audits",
        status=problem.status if problem else 200,
        dataset=chosen,
        datasets=ready,
        values=values,
        errors=errors,
        stray=stray,
        problem=problem,
        forecast=forecast,
        expert_open=any(name.startswith(("training.", "parameters.", "delta", "other", "name")) for name in errors),
        delta_default="" if delta is None else words.small(f"{delta:g}"),
        delta_hint=audit_form.DELTA.format("" if delta is None else words.small(f"{delta:g}, ")),
        **audit_form.catalogue_fields(),
    )


@router.post("/audits/new")
async def start(request: Request, principal: Asker) -> Response:
    """Starts the audit, or says at each field why it cannot be started."""
    require(principal, "run")
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return await run_in_threadpool(_start, request, principal, form)


def _start(request: Request, principal: Principal, form: FormData) -> Response:
    values = audit_form.posted_values(form)
    dataset_id = str(form.get("dataset") or "")
    body = audit_form.body_of(values) | {"dataset": dataset_id}
    try:
        with transaction(request) as session:
            if form.get("only") == "forecast":
                found = service.forecast(session, settings_of(request), principal, body)
            else:
                made = service.start(session, settings_of(request), principal, body)
                return RedirectResponse(f"/audits/{made['id']}", 303)
    except (InputProblem, Conflict) as problem:
        return _new_page(request, principal, dataset_id, values, problem)
    return _new_page(request, principal, dataset_id, values, forecast=_forecast(request, principal, dataset_id, found))


@router.post("/audits/new/forecast")
async def forecast(request: Request, principal: Asker) -> Response:
    """The forecast of the form as it stands; with errors, each goes to its field."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return await run_in_threadpool(_forecast_part, request, principal, form)


def _forecast_part(request: Request, principal: Principal, form: FormData) -> Response:
    dataset_id = str(form.get("dataset") or "")
    body = audit_form.body_of(audit_form.posted_values(form)) | {"dataset": dataset_id}
    try:
        with transaction(request) as session:
            found = service.forecast(session, settings_of(request), principal, body)
    except (InputProblem, Conflict) as problem:
        errors, stray = audit_form.field_errors(problem.errors)
        return part("forecast", forecast=None, errors=errors | {each["field"]: each["message"] for each in stray})
    return part("forecast", forecast=_forecast(request, principal, dataset_id, found), errors={})


def _forecast(request: Request, principal: Principal, dataset_id: str, found: dict[str, Any]) -> dict[str, Any]:
    with transaction(request) as session:
        labels = {row["key"]: row["label"] for row in datasets.groups(session, principal, dataset_id)["rows"]}
    rows = [
        r | {"label": labels.get(r["group"], r["group"]), "value": r["smallest_detectable_cost"]}
        for r in found["detectable"]
    ]
    return {**found, "detectable": rows}


def _load(request: Request, principal: Principal, audit_id: str) -> tuple[dict[str, Any], AuditFacts | None]:
    with transaction(request) as session:
        audit = service.get_audit(session, principal, audit_id)
        erased = audit["state"] == "erased"
        wanted = [metric.key for metric in gap_view.metrics_of(request.query_params)]
        facts = None if erased else service.audit_facts(session, settings_of(request), principal, audit_id, wanted)
    return audit, facts


def _opening(request: Request, audit: dict[str, Any], facts: AuditFacts | None) -> dict[str, Any]:
    chosen = Selection.of(facts, request.query_params) if facts else None
    sentence = chosen.facts.sentence if chosen else ""
    return {"audit": audit_view.shown(audit), "sentence": audit_view.opening(audit, sentence), "chosen": chosen}


def _progress(principal: Principal, audit: dict[str, Any]) -> dict[str, Any]:
    left = audit_view.time_left(audit, datetime.now(UTC))
    return {
        "audit": audit_view.shown(audit),
        "progress": audit_view.progress(audit, left),
        "may_run": may_run(principal),
    }


@router.get("/audits/{audit_id}")
def audit(request: Request, principal: Asker, audit_id: str, tab: str = "cost") -> Response:
    """Who pays, how much?"""
    with transaction(request) as session:
        newest = newest_id(session, audit_id)
    audit, facts = _load(request, principal, audit_id)
    found = _opening(request, audit, facts)
    chosen = found.pop("chosen")
    with transaction(request) as session:
        runs = audit_view.runs(service.runs(session, principal, audit_id)["rows"]) if tab == "runs" else []
        dataset = _dataset(session, principal, audit["dataset"])
    return page(
        request,
        "audit",
        principal,
        "audits",
        stream=stream_of("audit", audit["id"], newest) if facts else None,
        plotly={"script": PLOTLY_PATH, "style": PLOTLY_STYLE_PATH, "style_ids": plotly_style_ids()},
        tab=tab if tab in TABS else "cost",
        dataset=dataset,
        claim=audit_view.claim(audit["claim"]),
        runs=runs,
        runs_sentence=audit_view.runs_sentence(runs),
        **(found | _progress(principal, audit) | _numbers(request, audit, facts, chosen, tab)),
    )


def _dataset(session: Any, principal: Principal, dataset_id: str) -> dict[str, Any] | None:
    try:
        return datasets.get_dataset(session, principal, dataset_id)
    except NotFound:
        return None


def _costs(audit: dict[str, Any], facts: AuditFacts | None, chosen: Selection | None) -> dict[str, Any]:
    if facts is None or chosen is None:
        return {
            "panels": [],
            "at_epsilon": None,
            "choices": None,
            "selection": {},
            "references": None,
            "pages": [],
            "nothing_yet": "",
            "marks": None,
        }
    return cost_view.context(audit["id"], audit["state"], facts, chosen)


def _numbers(
    request: Request, audit: dict[str, Any], facts: AuditFacts | None, chosen: Selection | None, tab: str
) -> dict[str, Any]:
    """What one tab shows."""
    if facts is not None and tab == "gaps":
        return gap_view.gaps(audit["id"], facts, request.query_params)
    if facts is not None and tab == "tradeoff":
        return gap_view.tradeoffs(audit["id"], facts, request.query_params)
    return _costs(audit, facts, chosen)


@router.get("/audits/{audit_id}/parts/{name}")
def audit_part(request: Request, principal: Asker, audit_id: str, name: str) -> Response:
    """One part of the page, as it is now."""
    if name == "runs":
        with transaction(request) as session:
            audit = service.get_audit(session, principal, audit_id)
            runs = audit_view.runs(service.runs(session, principal, audit_id)["rows"])
        return part("audit_runs", audit=audit, runs=runs, runs_sentence=audit_view.runs_sentence(runs))
    if name in ("progress", "claim"):
        with transaction(request) as session:
            audit = service.get_audit(session, principal, audit_id)
        if name == "claim":
            return part("claim", claim=audit_view.claim(audit["claim"]))
        return part("audit_progress", **_progress(principal, audit))
    if name not in ("opening", "cost", "gaps", "tradeoff"):
        raise NotFound("part of this page")
    audit, facts = _load(request, principal, audit_id)
    found = _opening(request, audit, facts)
    chosen = found.pop("chosen")
    if name == "opening":
        return part("audit_opening", **found)
    return part(f"audit_{name}", **(found | _numbers(request, audit, facts, chosen, name)))


@router.post("/audits/{audit_id}/stop")
def stop(request: Request, principal: Asker, audit_id: str) -> Response:
    """Asks the audit to stop; what has finished stays."""
    with transaction(request) as session:
        service.stop(session, principal, audit_id)
    return RedirectResponse(f"/audits/{audit_id}", 303)


@router.post("/audits/{audit_id}/resume")
def resume(request: Request, principal: Asker, audit_id: str) -> Response:
    """Lets a stopped or failed audit go on."""
    with transaction(request) as session:
        service.resume(session, principal, audit_id)
    return RedirectResponse(f"/audits/{audit_id}", 303)
