"""A new clipping method is one file and one line: with the toy's line in the catalogue, every law, the form, REST, charts
and tables have it, and a toy whose count is not charged is found out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHERE = [
    "tests/laws/test_every_method.py",
    "tests/laws/test_every_method_on_screen.py",
    "tests/privacy/test_sensitivity.py",
    "tests/engine/methods/test_methods.py",
]


def laws(where: list[str], *changes: str) -> tuple[int, str]:
    """Run laws on the toy, after these lines of Python."""
    script = "\n".join(
        [
            "import sys, pytest",
            "from worker.engine import catalogue",
            "import tests.laws.toy as toy",
            *changes,
            f"sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', '-k', 'toy', *{where!r}]))",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_one_file_and_one_line_are_enough() -> None:
    code, told = laws(WHERE)
    assert code == 0, told
    passed = re.search(r"(\d+) passed", told)
    assert passed, told
    assert int(passed[1]) > 40, "too few laws ran on it"


@pytest.mark.parametrize(
    ("what", "where", "change"),
    [
        (
            "a clip that is not kept",
            2,
            "toy._Halving.scale = lambda self, batch, released: batch.norms.new_ones(batch.norms.shape)",
        ),
        (
            "a count of rows twice",
            2,
            "old = toy._Halving.measure; toy._Halving.measure = lambda self, batch: 2 * old(self, batch)",
        ),
        ("a limit that is none", 0, "object.__setattr__(toy.TOY, 'limit', {'clip': 0.01})"),
    ],
)
def test_the_laws_find_out_a_method_with(what: str, where: int, change: str) -> None:
    code, told = laws(WHERE[where : where + 1], change)
    assert code == 1, f"{what}: {told}"
    assert "failed" in told
