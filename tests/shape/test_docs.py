"""The documents are true: commands, settings, links and words exist where a page says so."""

from __future__ import annotations

import re
from pathlib import Path

from backend.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_make_command_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = {word for path in DOCUMENTS for word in re.findall(r"`make ([a-z-]+)", path.read_text("utf-8"))}
    assert named <= targets


def test_every_link_inside_the_documents_leads_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)} -> {link}"
        for path in DOCUMENTS
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
        if not (path.parent / link).exists()
    ]
    assert broken == []


def test_every_setting_has_a_help_line() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
