"""Help from the catalogue's own words, and the glossary from its file."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.edge import known_principal
from frontend.pages.rendering import FOLDER, page
from worker.engine import catalogue
from worker.engine.methods.base import OPTIMIZERS
from worker.engine.params import ACTIVATIONS

router = APIRouter(include_in_schema=False)

GLOSSARY = FOLDER.parent / "docs" / "glossary.md"


@router.get("/help")
def help_page(request: Request) -> Response:
    """How to read an audit; what can be chosen, as the catalogue describes it."""
    shelves = [
        ("Methods", [_entry(item) for item in catalogue.METHODS]),
        ("Metrics", [_entry(item) for item in catalogue.METRICS]),
        ("Networks", [_entry(item) for item in catalogue.NETWORKS]),
        ("Activations", [_entry(item) for item in ACTIVATIONS]),
        ("Optimizers", [_entry(item) for item in OPTIMIZERS]),
        ("Formats of files", [_entry(item) for item in catalogue.FORMATS]),
    ]
    return page(request, "help", known_principal(request), "help", shelves=shelves)


def _entry(item: Any) -> dict[str, Any]:
    """Key, title, the short help, then the paragraphs of the docstring that says what voids it."""
    own = type(item).__doc__ if hasattr(item, "private") else ""
    told = [piece for piece in (item.help, inspect.cleandoc(own or "")) if piece]
    paragraphs = [_flat(block) for text in told for block in re.split(r"\n\s*\n|\n(?=Void if)", text)]
    return {
        "key": item.key,
        "title": item.title,
        "paragraphs": list(dict.fromkeys(paragraphs)),
        "params": list(getattr(item, "params", ())),
    }


def _flat(text: str) -> str:
    return re.sub(r"\s*\(METHODS\.md [\d.]+[a-z]?\)", "", " ".join(text.split()))


@router.get("/glossary")
def glossary(request: Request) -> Response:
    """The words of the product and what they mean."""
    words, avoided = read_glossary()
    return page(request, "glossary", known_principal(request), "help", words=words, avoided=avoided)


@cache
def read_glossary() -> tuple[list[tuple[str, str]], list[str]]:
    """The two lists of ``docs/glossary.md``."""
    used, _, unused = GLOSSARY.read_text("utf-8").partition("## Words we do not use")
    words = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", used, re.MULTILINE)
    return words, re.findall(r"^- (.+)$", unused, re.MULTILINE)
