"""Errors as pages: the same sentences that REST says, set for a reader."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from backend.edge import known_principal
from backend.errors import ProductError
from backend.people.service import Principal
from frontend.pages.rendering import ENVIRONMENT, page
from frontend.pages.sign_in import next_of, sign_in_page


def page_error(request: Request, problem: ProductError) -> Response:
    """An error as a whole page, or as a fragment where only a part was asked for."""
    if "/parts/" in request.url.path:
        template = ENVIRONMENT.from_string(
            '{% from "parts/macros.html" import problem as show %}{{ show(p.title, p.detail, p.errors) }}'
        )
        return Response(template.render(p=problem), problem.status, problem.headers, "text/html")
    if problem.status == 401:
        reason = getattr(problem, "reason", "") or "This page is for those who are signed in."
        return sign_in_page(request, reason=reason, next_path=next_of(request), status=401)
    if problem.status == 429 and request.url.path == "/sign-in":
        return sign_in_page(request, problem=problem.detail, status=429)
    answer = page(request, "error", _person(request, problem.status), status=problem.status, problem=problem)
    answer.headers.update({key: value for key, value in problem.headers.items() if key.lower() != "www-authenticate"})
    return answer


def _person(request: Request, status: int) -> Principal | None:
    """Whoever is signed in; an error page stands also when that cannot be found out."""
    if status == 429:  # whoever asks too often shall not cost a look into the database
        return None
    try:
        return known_principal(request)
    except Exception:  # the database may be what went wrong; the page is shown all the same
        return None
