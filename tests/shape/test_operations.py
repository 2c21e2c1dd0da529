"""The operations page lists every setting with its own words, and the installer's pins are the project's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from backend.settings import Settings

ROOT = Path(__file__).parents[2]


def pins(lines: list[str]) -> dict[str, str]:
    found = (re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[[a-z]+\])?==(\S+)", line) for line in lines)
    return {one.group(1).lower().replace("_", "-"): one.group(2) for one in found if one}


def test_the_page_lists_every_setting_with_its_own_words():
    rows = re.findall(r"^\| `([A-Z_]+)` \| .* \| (.*) \|$", (ROOT / "docs" / "operations.md").read_text("utf-8"), re.M)
    assert dict(rows) == {name.upper(): field.description for name, field in Settings.model_fields.items()}


def test_constraints_hold_every_pin_and_nothing_of_one_machine():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    constraints = pins(lines)
    assert len(constraints) == len(lines), "every line is name==version"
    assert pins(wanted).items() <= constraints.items()
    assert not [
        name for name, version in constraints.items() if "+" in version or name.startswith(("nvidia", "triton"))
    ]


def test_the_image_and_the_installer_take_the_same_samples():
    script = re.search(r'SAMPLES="([^"]+)"', (ROOT / "scripts" / "environment.sh").read_text("utf-8"))
    assert script is not None
    assert f"--no-deps {script.group(1)}" in (ROOT / "Dockerfile").read_text("utf-8")
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert set(script.group(1).split()) <= set(constraints)
