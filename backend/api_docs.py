"""The REST contract as a page of our own, made from the OpenAPI description.

The usual viewers load scripts from elsewhere and write inline ones; neither works offline nor under our policy.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment
from starlette.responses import HTMLResponse, JSONResponse, Response

from backend.errors import ProductError, problem_name

router = APIRouter(include_in_schema=False)

PAGE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}: REST</title><link rel="stylesheet" href="/api/docs.css"></head>
<body><main>
<h1>{{ title }}: REST</h1>
<p>{{ description }} The same as data: <a href="/api/openapi.json">/api/openapi.json</a>.</p>
<nav aria-label="Contents"><ul>
{% for operation in operations %}
<li><a href="#{{ operation.anchor }}"><code>{{ operation.method }} {{ operation.path }}</code></a>
{{ operation.summary }}</li>
{% endfor %}
<li><a href="#errors">Errors</a></li></ul></nav>
{% for operation in operations %}
<section id="{{ operation.anchor }}"><h2><code>{{ operation.method }} {{ operation.path }}</code></h2>
<p>{{ operation.description or operation.summary }}</p>
{% if operation.parameters %}
<table><caption>Parameters</caption><thead><tr><th scope="col">name</th><th scope="col">in</th><th scope="col">form</th>
<th scope="col">meaning</th></tr></thead><tbody>
{% for parameter in operation.parameters %}
<tr><th scope="row"><code>{{ parameter.name }}</code>{{ " (required)" if parameter.required }}</th>
<td>{{ parameter.where }}</td>
<td><code>{{ parameter.form }}</code></td><td>{{ parameter.description }}</td></tr>
{% endfor %}
</tbody></table>
{% endif %}
{% for kind, schema in operation.bodies %}
<h3>Body: <code>{{ kind }}</code></h3><pre tabindex="0">{{ schema }}</pre>
{% endfor %}
<h3>Answers</h3><ul>
{% for status, text in operation.answers %}<li><code>{{ status }}</code> {{ text }}</li>{% endfor %}
</ul></section>
{% endfor %}
<section id="errors"><h2>Errors</h2>
<p>Every error is <code>application/problem+json</code>: type, title, status, detail and, for input, errors with
field (or row and column) and message.</p>
<dl>{% for problem in problems %}
<dt id="{{ problem.anchor }}"><code>{{ problem.status }}</code> {{ problem.title }}</dt>
<dd>{{ problem.help }}</dd>{% endfor %}</dl></section>
</main></body></html>
""")

STYLE = """\
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; color: #1b1b1b; background: #fff; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .92em; }
pre { background: #f3f3f3; padding: .75rem; overflow: auto; max-height: 24rem; }
section { border-top: 1px solid #999; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: 600; }
th, td { border: 1px solid #bbb; padding: .25rem .5rem; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
"""


@router.get("/api/openapi.json")
def openapi(request: Request) -> Response:
    """The description as data."""
    return JSONResponse(request.app.openapi())


@router.get("/api/docs")
def docs(request: Request) -> Response:
    """The description as a page."""
    described = request.app.openapi()
    info = described["info"]
    page = PAGE.render(
        title=info["title"],
        description=info.get("description", ""),
        operations=list(_operations(described)),
        problems=[_problem(kind) for kind in ProductError.__subclasses__()],
    )
    return HTMLResponse(page)


@router.get("/api/docs.css")
def style() -> Response:
    """The look of the page."""
    return Response(STYLE, media_type="text/css")


def _operations(described: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _operation(path, method, found, described)
        for path, methods in described["paths"].items()
        for method, found in methods.items()
    ]


def _operation(path: str, method: str, found: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    content = found.get("requestBody", {}).get("content", {})
    return {
        "anchor": f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        "method": method.upper(),
        "path": path,
        "summary": found.get("summary", ""),
        "description": found.get("description", ""),
        "parameters": [_parameter(parameter) for parameter in found.get("parameters", [])],
        "bodies": [(kind, _schema(body.get("schema", {}), described)) for kind, body in content.items()],
        "answers": [(status, answer.get("description", "")) for status, answer in found["responses"].items()],
    }


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in parameter.get("schema", {}).items() if key not in ("title", "description")}
    return {
        "name": parameter["name"],
        "where": parameter["in"],
        "required": parameter.get("required", False),
        "form": json.dumps(schema),
        "description": parameter.get("description", ""),
    }


def _schema(schema: dict[str, Any], described: dict[str, Any]) -> str:
    reference = schema.get("$ref")
    if reference:
        schema = described["components"]["schemas"][reference.rpartition("/")[2]]
    return json.dumps(schema, indent=1)


def _problem(kind: type[ProductError]) -> dict[str, Any]:
    return {
        "anchor": problem_name(kind.status),
        "status": kind.status,
        "title": kind.title,
        "help": (kind.__doc__ or "").strip().splitlines()[0],
    }
