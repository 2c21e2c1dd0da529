"""The web process and the catalogue stay light: a fresh interpreter is asked what was loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from backend import queue

HEAVY = ("torch", "opacus", "dp_accounting", "scipy", "duckdb", "pyarrow", "celery.app.base")


def _loaded_by(statement: str, names: tuple[str, ...]) -> str:
    ask = f"import sys\n{statement}\nprint(' '.join(name for name in {names!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "statement",
    [
        "import worker.engine.catalogue",
        "import worker.engine.audits.plan",
        "import worker.engine.facts.costs",
        "import worker.engine.datasets.roles",
    ],
)
def test_the_light_parts_of_the_engine_load_nothing_heavy(statement: str) -> None:
    assert _loaded_by(statement, HEAVY) == ""


def test_the_web_process_never_loads_torch() -> None:
    assert _loaded_by("import backend.app", ("torch", "opacus", "worker.tasks", "worker.engine.training")) == ""


def test_every_job_name_has_a_task_and_every_task_a_name() -> None:
    names = {value for key, value in vars(queue).items() if key.isupper() and isinstance(value, str) and "." in value}
    ask = (
        "import os\n"
        "os.environ.update(MODE='demo', DATABASE_URL='postgresql+psycopg:///none', REDIS_URL='redis://localhost/0')\n"
        "from worker.celery_app import app\n"
        "app.loader.import_default_modules()\n"
        "print('\\n'.join(name for name in app.tasks if not name.startswith('celery.')))"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=120)
    assert set(done.stdout.split()) == names
    assert set(queue.QUEUE_OF) == names
