"""``docs/recompute.py`` knows nothing of the product and finds its numbers in the exported CSV, digit for digit."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from backend.audits import rows
from backend.csv_export import csv_lines
from tests.engine.audits.test_measure import persons_data
from tests.engine.facts.audits import make_audit
from worker.engine.catalogue import METRICS
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.gaps import gap_rows

SCRIPT = Path(__file__).parents[2] / "docs" / "recompute.py"
COUNTED = [metric for metric in METRICS if metric.counted is not None]


def export(folder: Path, facts, metric) -> list[str]:
    """Four files as REST gives them."""
    statistics = [
        {name: getattr(row, name) for name in (*rows.NUMBER_COLUMNS, "group", "part", "label")}
        | {"run": run.run, "method": run.method, "seed": run.seed, "epsilon_asked": run.epsilon_asked}
        | {"predicted": list(row.predicted), "tag": "audit-only", "reason": None}
        for run in facts.runs
        for row in run.statistics
    ]
    measurements = [
        {name: getattr(row, name, None) for name in rows.MEASUREMENT_COLUMNS}
        | {"epsilon_asked": row.epsilon, "seeds": list(row.seeds), "tag": "audit-only"}
        for row in facts.measurements
    ]
    tables = {
        "statistics": (rows.STATISTIC_COLUMNS, statistics),
        "measurements": (rows.MEASUREMENT_COLUMNS, measurements),
        "costs": (rows.COST_COLUMNS, [vars(row) for row in cost_rows(facts, metric)]),
        "gaps": (rows.GAP_COLUMNS, [vars(row) for row in gap_rows(facts, metric)]),
    }
    for name, (columns, lines) in tables.items():
        (folder / f"{name}.csv").write_text("".join(csv_lines(columns, lines)), "utf-8")
    return [str(folder / f"{name}.csv") for name in tables]


@pytest.fixture(scope="module")
def audits():
    return {"rows": make_audit(with_floors=False).facts, "persons": make_audit(persons_data(), with_floors=False).facts}


@pytest.mark.parametrize("metric", COUNTED, ids=lambda metric: metric.key)
@pytest.mark.parametrize("unit", ["rows", "persons"])
def test_every_count_metric_is_recomputed(audits, unit, metric, tmp_path):
    statistics, measurements, costs, gaps = export(tmp_path, audits[unit], metric)
    loaded = importlib.util.spec_from_file_location("recompute", SCRIPT)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    intervals = sum(row.low is not None for row in cost_rows(audits[unit], metric))
    assert module.main(statistics, measurements, metric.key, costs, gaps) >= 20 + 2 * intervals
    assert intervals >= 4


def test_a_wrong_digit_is_found(audits, tmp_path):
    files = export(tmp_path, audits["rows"], METRICS[0])
    costs = Path(files[2])
    text = costs.read_text("utf-8")
    row = next(row for row in cost_rows(audits["rows"], METRICS[0]) if row.low is not None)
    costs.write_text(text.replace(str(row.low), str(row.low + 1e-9), 1), "utf-8")
    loaded = importlib.util.spec_from_file_location("recompute", SCRIPT)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    with pytest.raises(AssertionError):
        module.main(files[0], files[1], "accuracy", files[2], files[3])


def test_it_is_short_and_rests_on_numpy_alone():
    text = SCRIPT.read_text("utf-8")
    assert len(text.splitlines()) < 120
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported == {"csv", "math", "sys", "urllib", "numpy"}
