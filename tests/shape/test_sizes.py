"""Small on purpose: files of at most 400 lines, functions of at most 40. The exceptions only get fewer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("backend", "worker", "frontend")
FILE_LINES = 400
FUNCTION_LINES = 40

LONGER_FILES: set[str] = set()
LONGER_FUNCTIONS: set[str] = set()


def _sources() -> Iterator[Path]:
    for folder in CODE:
        for suffix in ("*.py", "*.js", "*.css", "*.html"):
            yield from sorted((ROOT / folder).rglob(suffix))


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documentation = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - documentation


def test_no_file_is_longer_than_the_ceiling() -> None:
    long = {
        str(path.relative_to(ROOT)) for path in _sources() if len(path.read_text("utf-8").splitlines()) > FILE_LINES
    }
    assert long == LONGER_FILES


def test_no_function_is_longer_than_the_ceiling() -> None:
    long = set()
    for path in _sources():
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _body_lines(node) > FUNCTION_LINES:
                long.add(f"{path.relative_to(ROOT)}:{node.name}")
    assert long == LONGER_FUNCTIONS
