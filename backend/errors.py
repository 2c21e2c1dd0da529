"""Errors of the product, and the one handler that turns them into answers.

ProductError
├── InputProblem     422  a field of the request is wrong; names every field at fault
├── Malformed        400  the request cannot be read at all
├── NotSignedIn      401
├── NotAllowed       403  the role, or the scope of the token, does not include this
├── NotFound         404  no such object, or it belongs to another team
├── NotThisMethod    405
├── Conflict         409  right request, wrong moment
├── TooLarge         413
├── WrongType        415
├── TooMany          429  too often; Retry-After says when again
└── NotReady         503  something this needs is away

Errors of the engine know no HTTP status; ``STATUS_OF_ENGINE_ERROR`` gives it. Nothing that a person uploaded is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from worker.engine.errors import AccountingProblem, EngineError, QuestionProblem, TableProblem
from worker.engine.results import FieldError

log = logging.getLogger("counterpoise.web")

STATUS_OF_ENGINE_ERROR: Mapping[type[EngineError], int] = {
    QuestionProblem: 422,
    TableProblem: 422,
    AccountingProblem: 422,
    EngineError: 500,
}


class ProductError(Exception):
    """Root of the tree. ``detail`` is three sentences: what happened, where, what to do next."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong on our side"

    def __init__(self, detail: str, errors: Sequence[Mapping[str, Any]] = (), headers: Mapping[str, str] | None = None):
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(dict(error) for error in errors)
        self.headers = dict(headers or {})


class InputProblem(ProductError):
    """One or more fields are wrong; ``errors`` holds ``{field | row, column, message}``."""

    status = 422
    title = "The input cannot be used"

    @classmethod
    def of(cls, errors: Sequence[FieldError]) -> InputProblem:
        """From the engine's field errors."""
        return cls(_in_words(len(errors)), [{"field": error.field, "message": error.message} for error in errors])

    @classmethod
    def at(cls, field: str, message: str) -> InputProblem:
        """One wrong field."""
        return cls(_in_words(1), [{"field": field, "message": message}])


class Malformed(ProductError):
    """The request is not what it says it is."""

    status = 400
    title = "The request cannot be read"


class NotSignedIn(ProductError):
    """Nobody is signed in, or the token is unknown, expired or revoked."""

    status = 401
    title = "Not signed in"

    def __init__(self, detail: str = "") -> None:
        self.reason = detail
        super().__init__(
            detail or "Nobody is signed in. Sign in with the browser, or send a bearer token.",
            headers={"WWW-Authenticate": "Bearer"},
        )


class NotAllowed(ProductError):
    """Known, but not permitted."""

    status = 403
    title = "Not allowed"


class NotFound(ProductError):
    """No such object, or one of another team: the two are not told apart."""

    status = 404
    title = "Not found"

    def __init__(self, what: str = "page", errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(f"There is no such {what} here. Check the address, or choose one from the list.", errors)


class NotThisMethod(ProductError):
    """The address exists, the verb does not."""

    status = 405
    title = "Not this method"


class Conflict(ProductError):
    """The object is not in a state in which this can be done."""

    status = 409
    title = "Not now"


class TooLarge(ProductError):
    """The body is larger than this address accepts."""

    status = 413
    title = "Too large"


class WrongType(ProductError):
    """The body has a content type that this address does not read."""

    status = 415
    title = "Wrong content type"


class TooMany(ProductError):
    """Asked for too often; ``Retry-After`` says in how many seconds it may be tried again."""

    status = 429
    title = "Too many attempts"

    def __init__(self, detail: str, seconds: float = 60) -> None:
        super().__init__(detail, headers={"Retry-After": str(max(1, round(seconds)))})


class NotReady(ProductError):
    """A part that this needs is away."""

    status = 503
    title = "Not ready"


_VALIDATION: Mapping[str, str] = {
    "missing": "This is needed.",
    "int_parsing": "This must be a whole number.",
    "int_from_float": "This must be a whole number.",
    "float_parsing": "This must be a number.",
    "bool_parsing": "This must be true or false.",
    "greater_than_equal": "This must be at least {ge}.",
    "less_than_equal": "This must be at most {le}.",
}

PageError = Callable[[Request, ProductError], Response]
"""How the pages render an error as HTML; ``app.state.page_error`` once the front end is installed."""


def _in_words(count: int) -> str:
    fields = "One field" if count == 1 else f"{count} fields"
    return f"{fields} cannot be used. Nothing was stored. Correct what is listed under errors and send it again."


def from_engine(error: EngineError) -> ProductError:
    """The product's error for one of the engine's."""
    status = next(code for kind, code in STATUS_OF_ENGINE_ERROR.items() if isinstance(error, kind))
    if isinstance(error, QuestionProblem):
        return InputProblem.of(error.errors)
    if isinstance(error, TableProblem):
        place = {"row": error.row, "column": error.column, "message": error.happened}
        return InputProblem(str(error), [{key: value for key, value in place.items() if value is not None}])
    return InputProblem(str(error)) if status == 422 else internal()


def internal() -> ProductError:
    """What people are told of a fault of ours: that it happened, and nothing of its inside."""
    return ProductError("Something went wrong on our side. The log has the place. Try again, or tell the operator.")


def from_http(error: HTTPException) -> ProductError:
    """The framework's own refusals, in our words."""
    if error.status_code == 404:
        return NotFound()
    if error.status_code == 405:
        return _with(NotThisMethod("This address does not take this method. See /api/docs for those it takes."), error)
    if error.status_code == 413:
        return TooLarge("The body is larger than this address accepts. Nothing was stored. Send less.")
    if error.status_code < 500:
        return Malformed("The request cannot be read. Nothing was stored. Check its form against /api/docs.")
    return internal()


def _with(problem: ProductError, error: HTTPException) -> ProductError:
    problem.headers.update(error.headers or {})
    return problem


def from_database(error: Exception) -> ProductError:
    """A database that is away, restarting or busy is not a fault of the request; anything else is a fault of ours."""
    if isinstance(error, PoolTimeout | OperationalError | InterfaceError):
        log.warning("The database did not answer (%s).", type(getattr(error, "orig", error)).__name__)
        return NotReady("The database did not answer. Nothing was changed. Wait a moment and try again.")
    log_fault(error)
    return internal()


def from_validation(error: RequestValidationError) -> ProductError:
    """Query and path parameters that the framework refused; the value itself is not repeated."""
    return InputProblem.of([FieldError(_field_of(found), _message_of(found)) for found in error.errors()])


def _field_of(found: Mapping[str, Any]) -> str:
    return ".".join(str(part) for part in found["loc"][1:])


def _message_of(found: Mapping[str, Any]) -> str:
    """In our words: the framework's own are for programmers."""
    known = _VALIDATION.get(found["type"], "This value cannot be used. See /api/docs for those that can.")
    return known.format_map(found.get("ctx", {}))


def problem_json(problem: ProductError) -> dict[str, Any]:
    """The body of an ``application/problem+json`` answer."""
    body: dict[str, Any] = {
        "type": f"/api/docs#{problem_name(problem.status)}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    return body | ({"errors": list(problem.errors)} if problem.errors else {})


def problem_name(status: int) -> str:
    """The anchor of a kind of problem on the page of the API."""
    return HTTPStatus(status).phrase.lower().replace(" ", "-")


def answer(request: Request, problem: ProductError) -> Response:
    """JSON for the API, a page for people."""
    page_error: PageError | None = getattr(request.app.state, "page_error", None)
    if _wants_json(request):
        return JSONResponse(problem_json(problem), problem.status, problem.headers, "application/problem+json")
    if page_error is not None:
        return page_error(request, problem)
    return HTMLResponse(f"<!doctype html><title>{problem.title}</title>", problem.status, problem.headers)


def _wants_json(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/health", "/ready")) or request.url.path == "/api"


def log_fault(error: BaseException) -> None:
    """The kind of fault and the places it went through; never its message, which may hold what people uploaded."""
    places, frame = [], error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        places.append(f"{code.co_filename}:{frame.tb_lineno} {code.co_name}")
        frame = frame.tb_next
    log.error("fault %s at %s", type(error).__name__, " < ".join(reversed(places[-8:])))


def install(app: FastAPI) -> None:
    """Registers the one handler for everything that goes wrong in a request."""

    async def product(request: Request, error: Exception) -> Response:
        return answer(request, error if isinstance(error, ProductError) else internal())

    async def engine(request: Request, error: Exception) -> Response:
        return answer(request, from_engine(error) if isinstance(error, EngineError) else internal())

    async def http(request: Request, error: Exception) -> Response:
        return answer(request, from_http(error) if isinstance(error, HTTPException) else internal())

    async def database(request: Request, error: Exception) -> Response:
        return answer(request, from_database(error))

    async def validation(request: Request, error: Exception) -> Response:
        return answer(request, from_validation(error) if isinstance(error, RequestValidationError) else internal())

    app.add_exception_handler(ProductError, product)
    app.add_exception_handler(EngineError, engine)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(DBAPIError, database)
    app.add_exception_handler(PoolTimeout, database)
    app.add_exception_handler(RequestValidationError, validation)
