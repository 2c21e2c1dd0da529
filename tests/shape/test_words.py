"""Speak carefully: words that no page, message or report may use, and nothing that belongs to one machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORBIDDEN_ON_SCREEN = re.compile(r"\b(anonymous|anonymised|anonymized|unbiased|certified fair|perfectly safe)\b", re.I)
MACHINE = re.compile(r"(?<![\w.])/(?:work|farm|root)/")


def _tracked(*suffixes: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in suffixes and path.exists()]


def test_templates_never_promise_too_much() -> None:
    said = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in _tracked(".html", ".js")
        for match in FORBIDDEN_ON_SCREEN.finditer(path.read_text("utf-8"))
        if "glossary" not in path.name
    ]
    assert said == []


def test_no_path_of_one_machine_is_in_the_tree() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in _tracked(".py", ".md", ".html", ".js", ".css", ".toml", ".yml", ".txt")
        if path != Path(__file__) and MACHINE.search(path.read_text("utf-8"))
    ]
    assert found == []
