"""Pages of datasets: the list, a new one, one of them with its roles and groups."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from backend.datasets import service
from backend.edge import Asker, database_of, settings_of, storage_of, transaction
from backend.errors import Conflict, InputProblem, TooLarge
from backend.people.service import Principal, require
from backend.progress.service import newest_id
from frontend.pages import dataset_view, recipe_form, recipe_view, roles_form, words
from frontend.pages.rendering import page, part, stream_of
from worker.engine.catalogue import FORMATS

router = APIRouter(include_in_schema=False)

ACCEPTED = ".csv,.tsv,.tab,.txt,.data,.dat,.gz,.zip,.xlsx,.parquet,.arrow,.feather,text/csv"
"""What a browser offers first; any other file is taken all the same and known by its content."""
SAMPLE_SECONDS = 10.0
MOST_FIELDS = 5000
"""Fields of the form of roles: two a column, and the combinations."""


def sample_lines() -> list[dict[str, Any]]:
    """The samples with the words that stand beside their buttons."""
    return [{"key": s["key"], "title": s["title"], "help": s["description"]} for s in service.list_samples()]


@router.get("/datasets")
def datasets(request: Request, principal: Asker, cursor: str | None = None) -> Response:
    """All datasets one may see."""
    found = _list(request, principal, cursor)
    return page(
        request,
        "datasets",
        principal,
        "datasets",
        stream={"id": "", "source": "/api/v1/events"},
        sentence=dataset_view.list_sentence(found["datasets"]),
        may_run=dataset_view.may_run(principal),
        **found,
    )


@router.get("/parts/datasets")
def datasets_part(request: Request, principal: Asker, cursor: str | None = None) -> Response:
    """The table of the list."""
    return part("datasets", **_list(request, principal, cursor))


def _list(request: Request, principal: Principal, cursor: str | None) -> dict[str, Any]:
    with transaction(request) as session:
        found = service.list_datasets(session, principal, cursor=cursor)
    more = f"/datasets?cursor={found['next']}" if found["next"] else None
    return {"datasets": [dataset_view.line(item) for item in found["items"]], "more": more}


@router.get("/datasets/new")
def new(request: Request, principal: Asker) -> Response:
    """Drop a file, or choose a sample."""
    require(principal, "run")
    return _new_page(request, principal)


def _new_page(request: Request, principal: Principal, problem: Any = None, name: str = "") -> Response:
    errors = {error["field"]: error["message"] for error in problem.errors if "field" in error} if problem else {}
    settings = settings_of(request)
    return page(
        request,
        "dataset_new",
        principal,
        "datasets",
        status=problem.status if problem else 200,
        samples=sample_lines(),
        limit=settings.upload_limit_bytes,
        kinds=words.listed([kind.title for kind in (*FORMATS[-1:], *FORMATS[:-1])], "or"),
        accepted=ACCEPTED,
        days=settings.upload_days,
        values={"name": name},
        errors=errors,
        problem=problem,
    )


@router.post("/datasets/new")
async def receive(request: Request, principal: Asker) -> Response:
    """Takes an upload in and goes to its page at once; it is read in the background."""
    require(principal, "run")
    async with request.form(max_files=2, max_fields=10) as form:
        return await run_in_threadpool(_receive, request, principal, form)


def _receive(request: Request, principal: Principal, form: FormData) -> Response:
    name = str(form.get("name") or "")
    try:
        file = _upload(form.get("file"))
        if file is None:
            raise InputProblem.at("file", "Choose a file first.")
        with transaction(request) as session:
            made = service.receive(
                session,
                storage_of(request),
                settings_of(request),
                principal,
                file,
                test_file=_upload(form.get("test_file")),
                name=name or None,
            )
    except (InputProblem, TooLarge) as problem:
        return _new_page(request, principal, problem, name)
    return RedirectResponse(f"/datasets/{made['id']}", 303)


def _upload(given: Any) -> service.Upload | None:
    """A chosen file; browsers send a nameless empty one where none was chosen."""
    if not isinstance(given, UploadFile) or not given.filename:
        return None
    return service.Upload(given.filename, given.file)


@router.post("/datasets/sample")
async def sample(request: Request, principal: Asker) -> Response:
    """Takes a bundled table in, or goes to the one that is here already."""
    require(principal, "run")
    async with request.form(max_files=0, max_fields=2) as form:
        return await run_in_threadpool(_sample, request, principal, str(form.get("sample") or ""))


def _sample(request: Request, principal: Principal, key: str) -> Response:
    """Goes on to the question if the groups can be counted in a moment, else to the page that fills in by itself."""
    with transaction(request) as session:
        known = service.list_datasets(session, principal, sample=key, limit=10)["items"]
        usable = next((item for item in known if item["state"] in ("received", "profiled")), None)
        found = usable or service.receive_sample(session, storage_of(request), settings_of(request), principal, key)
    found = _once_read(request, principal, found["id"])
    if found["state"] == "profiled" and found["recipe_state"] == "read":
        found = service.give_roles(database_of(request), principal, found["id"], found["suggested_roles"])
    ready = found["recipe_state"] == "ready"
    return RedirectResponse(f"/audits/new?dataset={found['id']}" if ready else f"/datasets/{found['id']}", 303)


def _once_read(request: Request, principal: Principal, dataset_id: str) -> dict[str, Any]:
    """The dataset when it has been read, or after a few seconds; no connection is held while waiting."""
    until = time.monotonic() + SAMPLE_SECONDS
    while True:
        with transaction(request) as session:
            found = service.get_dataset(session, principal, dataset_id)
        if found["state"] != "received" or time.monotonic() >= until:
            return found
        time.sleep(0.2)


def _context(request: Request, principal: Principal, dataset_id: str, **more: Any) -> dict[str, Any]:
    with transaction(request) as session:
        newest = newest_id(session, dataset_id)
        found = service.get_dataset(session, principal, dataset_id)
        groups = service.groups(session, principal, dataset_id)
    return dataset_view.context(found, groups, principal, **more) | {"newest": newest}


@router.get("/datasets/{dataset_id}")
def dataset(request: Request, principal: Asker, dataset_id: str) -> Response:
    """One dataset: what is in it, what its columns are for, which groups it has."""
    return _dataset_page(request, principal, _context(request, principal, dataset_id))


def _dataset_page(request: Request, principal: Principal, found: dict[str, Any], status: int = 200) -> Response:
    dataset_id = found["dataset"]["id"]
    stream = stream_of("dataset", dataset_id, found["newest"])
    live = None if found["dataset"]["state"] == "erased" else stream
    return page(request, "dataset", principal, "datasets", stream=live, status=status, **found)


@router.get("/datasets/{dataset_id}/parts/{name}")
def dataset_part(request: Request, principal: Asker, dataset_id: str, name: str) -> Response:
    """The opening or the body of the page."""
    template = "dataset_opening" if name == "opening" else "dataset_body"
    return part(template, **_context(request, principal, dataset_id))


@router.post("/datasets/{dataset_id}/parts/role-details")
async def role_details(request: Request, principal: Asker, dataset_id: str) -> Response:
    """The questions that follow from the roles as they stand in the form."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        found = await run_in_threadpool(_context, request, principal, dataset_id, form=form)
    return part("role_details", **found)


@router.post("/datasets/{dataset_id}/roles")
async def roles(request: Request, principal: Asker, dataset_id: str) -> Response:
    """Gives the columns their roles; what cannot be used comes back at its field."""
    require(principal, "run")
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return await run_in_threadpool(_roles, request, principal, dataset_id, form)


def _roles(request: Request, principal: Principal, dataset_id: str, form: FormData) -> Response:
    with transaction(request) as session:
        profile = {"columns": service.get_dataset(session, principal, dataset_id)["columns"]}
    body = roles_form.body_of(form, profile)
    twice = roles_form.many_of_one(form, profile)
    try:
        if twice:
            raise InputProblem("Some roles cannot be used. Nothing was stored. Correct the fields that are marked.")
        service.give_roles(database_of(request), principal, dataset_id, body)
    except (InputProblem, Conflict) as problem:
        errors, stray = roles_form.field_errors(problem.errors, body, profile)
        more = {"form": form, "errors": twice | errors, "stray": stray, "form_problem": problem}
        return _dataset_page(request, principal, _context(request, principal, dataset_id, **more), problem.status)
    return RedirectResponse(f"/datasets/{dataset_id}#groups", 303)


@router.post("/datasets/{dataset_id}/recipe")
async def recipe(request: Request, principal: Asker, dataset_id: str) -> Response:
    """Reads the original anew, as the form asks; what cannot be used comes back at its field."""
    require(principal, "run")
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return await run_in_threadpool(_recipe, request, principal, dataset_id, form)


def _recipe(request: Request, principal: Principal, dataset_id: str, form: FormData) -> Response:
    with transaction(request) as session:
        found = service.get_dataset(session, principal, dataset_id)
    try:
        with transaction(request) as session:
            service.put_recipe(session, principal, dataset_id, recipe_form.body_of(form, found))
    except (InputProblem, Conflict) as problem:
        errors, stray = recipe_form.field_errors(problem.errors, found)
        posted = recipe_view.Posted(form, errors, stray, problem)
        return _dataset_page(
            request, principal, _context(request, principal, dataset_id, recipe=posted), problem.status
        )
    return RedirectResponse(f"/datasets/{dataset_id}", 303)


@router.post("/datasets/{dataset_id}/erase")
def erase(request: Request, principal: Asker, dataset_id: str) -> Response:
    """Destroys the dataset's key and shows the receipt."""
    with transaction(request) as session:
        service.erase(session, storage_of(request), settings_of(request), principal, dataset_id)
    return RedirectResponse(f"/datasets/{dataset_id}", 303)
