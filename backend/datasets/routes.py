"""REST for datasets. Uploads are read only after the sender is known."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from backend.csv_export import csv_response
from backend.datasets import service
from backend.datasets.schemas import (
    DatasetList,
    DatasetView,
    GroupRow,
    GroupTable,
    Receipt,
    RecipeAsked,
    RolesAsked,
    SampleAsked,
    SampleList,
)
from backend.edge import (
    Asker,
    Body,
    body_schema,
    database_of,
    json_object,
    parse_object,
    settings_of,
    storage_of,
    transaction,
)
from backend.errors import InputProblem, Malformed
from backend.people.service import Principal, require
from backend.plain import refuse_strange

router = APIRouter(prefix="/api/v1/datasets", tags=["datasets"])

MOST_FILES = 2
MOST_FIELDS = 10

IdempotencyKey = Annotated[str | None, Header(description="The same key and body again create nothing twice.")]

_FILE = {"type": "string", "format": "binary"}
_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": _FILE | {"description": "The table."},
        "test_file": _FILE | {"description": "Its rows are the test part."},
        "name": {"type": "string"},
        "recipe": {"type": "string", "description": "JSON, any subset of the fields of PUT recipe."},
    },
}
UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": _FORM},
            "application/json": {"schema": SampleAsked.model_json_schema()},
        },
    }
}


@router.post("", status_code=201, summary="Upload a table", response_model=DatasetView, openapi_extra=UPLOAD)
async def upload(request: Request, principal: Asker, idempotency_key: IdempotencyKey = None) -> dict[str, Any]:
    """A file as multipart, or a bundled sample as JSON. It is read afterwards, in a process of its own."""
    require(principal, "run")
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        async with request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS) as form:
            return await run_in_threadpool(_receive, request, principal, form, idempotency_key)
    body = await json_object(request, principal)
    return await run_in_threadpool(_receive_sample, request, principal, body, idempotency_key)


def _receive(request: Request, principal: Principal, form: FormData, key: str | None) -> dict[str, Any]:
    file = _file(form, "file")
    if file is None:
        raise InputProblem.at("file", "A file is needed. Send it as the part named file.")
    with transaction(request) as session:
        return service.receive(
            session,
            storage_of(request),
            settings_of(request),
            principal,
            file,
            test_file=_file(form, "test_file"),
            name=_text(form, "name"),
            recipe=_recipe(form),
            idempotency_key=key,
        )


def _receive_sample(request: Request, principal: Principal, body: dict[str, Any], key: str | None) -> dict[str, Any]:
    refuse_strange(body)
    name, recipe = body.get("name"), body.get("recipe")
    if name is not None and not isinstance(name, str):
        raise InputProblem.at("name", "A name is text.")
    if recipe is not None and not isinstance(recipe, dict):
        raise InputProblem.at("recipe", "A recipe is an object.")
    with transaction(request) as session:
        return service.receive_sample(
            session,
            storage_of(request),
            settings_of(request),
            principal,
            body.get("sample"),
            name=name,
            recipe=recipe,
            idempotency_key=key,
        )


def _file(form: FormData, field: str) -> service.Upload | None:
    part = form.get(field)
    if part is None:
        return None
    if not isinstance(part, UploadFile):
        raise InputProblem.at(field, "This must be a file, with a file name.")
    return service.Upload(part.filename or "", part.file)


def _text(form: FormData, field: str) -> str | None:
    part = form.get(field)
    if part is None:
        return None
    if not isinstance(part, str):
        raise InputProblem.at(field, "This must be text.")
    refuse_strange({field: part})
    return part


def _recipe(form: FormData) -> dict[str, Any] | None:
    text = _text(form, "recipe")
    if not text:
        return None
    try:
        return parse_object(text)
    except Malformed:
        raise InputProblem.at("recipe", "This must be a JSON object.") from None


@router.get("", summary="Datasets, newest first", response_model=DatasetList)
def datasets(
    request: Request,
    principal: Asker,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: str | None = None,
    state: Annotated[str | None, Query(description="received, profiled, refused, erased")] = None,
    sample: str | None = None,
) -> dict[str, Any]:
    """All that one may see, in pages."""
    with transaction(request) as session:
        return service.list_datasets(session, principal, limit=limit, cursor=cursor, state=state, sample=sample)


@router.get("/samples", summary="Bundled sample tables", response_model=SampleList)
def samples(principal: Asker) -> dict[str, Any]:
    """Tables that lie inside installed packages, with good roles for them."""
    require(principal, "read")
    return {"items": service.list_samples(), "next": None}


@router.get("/{dataset_id}", summary="One dataset", response_model=DatasetView)
def dataset(request: Request, principal: Asker, dataset_id: str) -> dict[str, Any]:
    """Columns, types, missing values, roles, and what is wrong with it, if anything."""
    with transaction(request) as session:
        return service.get_dataset(session, principal, dataset_id)


@router.put(
    "/{dataset_id}/recipe", summary="Read it anew", response_model=DatasetView, openapi_extra=body_schema(RecipeAsked)
)
def recipe(request: Request, principal: Asker, dataset_id: str, body: Body) -> dict[str, Any]:
    """Reads the stored original again, as asked; roles have to be given again."""
    with transaction(request) as session:
        return service.put_recipe(session, principal, dataset_id, body)


@router.put(
    "/{dataset_id}/roles",
    summary="Give columns roles",
    response_model=DatasetView,
    openapi_extra=body_schema(RolesAsked),
)
def roles(request: Request, principal: Asker, dataset_id: str, body: Body) -> dict[str, Any]:
    """Waits up to five seconds for the groups to be counted; `recipe_state` says whether they are."""
    return service.give_roles(database_of(request), principal, dataset_id, body)


@router.get("/{dataset_id}/groups", summary="Groups and their rows per part", response_model=GroupTable)
def groups(request: Request, principal: Asker, dataset_id: str) -> dict[str, Any]:
    """Everyone first. A group that cannot be judged has a reason."""
    with transaction(request) as session:
        return service.groups(session, principal, dataset_id)


@router.get("/{dataset_id}/groups.csv", summary="Groups, as CSV", response_class=Response)
def groups_csv(request: Request, principal: Asker, dataset_id: str) -> Response:
    """The same rows and digits."""
    with transaction(request) as session:
        rows = service.groups(session, principal, dataset_id)["rows"]
    return csv_response(f"groups-{dataset_id}", list(GroupRow.model_fields), rows)


@router.delete("/{dataset_id}", summary="Erase a dataset", response_model=Receipt)
def erase(request: Request, principal: Asker, dataset_id: str) -> dict[str, Any]:
    """Destroys its key and files, and every number about fewer rows than are withheld; answers with the receipt."""
    with transaction(request) as session:
        return service.erase(session, storage_of(request), settings_of(request), principal, dataset_id)
