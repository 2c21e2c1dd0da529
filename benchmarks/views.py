"""Seconds to make the numbers of one view: 60 groups x 8 methods x 8 epsilons x 10 seeds in a real database.

Run: ``python benchmarks/views.py [--json]``. Starts a PostgreSQL of its own under a temporary folder. Figures only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from backend import migrate
from backend.audits import rows
from backend.database import make_engine
from backend.embedded.services import start_services
from backend.settings import Settings
from backend.tables import Audit, Dataset, Group, Person, Recipe, Run, Stack, Team
from worker.engine.catalogue import METHODS, METRICS
from worker.engine.facts.gaps import gap_rows
from worker.engine.facts.marks import mark_rows
from worker.engine.facts.tradeoff import tradeoff

GROUPS, METHOD_KEYS, EPSILONS, SEEDS = 60, [f"method-{at}" for at in range(8)], [2.0**at for at in range(-3, 5)], 10
REPEATS = 5
STATISTICS = """INSERT INTO statistic (team_id, audit_id, run_id, group_id, label, part, n, predicted, loss, loss_squared,
    squared_error, score)
SELECT r.team_id, r.audit_id, r.id, g.id, l, p, 100, ARRAY[50 + (random() * 40)::int, 10 + (random() * 40)::int], 30, 20, 15, 50
FROM run r, "group" g, generate_series(0, 1) l, unnest(ARRAY['train', 'validation', 'test']) p"""
MEASUREMENTS = """INSERT INTO measurement (team_id, audit_id, method, epsilon_asked, group_id, part, quantity, seeds, units, rows,
    total, total_squared, "cross", rows_squared, total_each_squared)
SELECT r.team_id, r.audit_id, r.method, r.epsilon_asked, g.id, 'test', q, :seeds, 200, 200,
    random() * 10, 20 + random(), 5, 200, 60
FROM (SELECT DISTINCT team_id, audit_id, method, epsilon_asked FROM run) r, "group" g, unnest(CAST(:quantities AS text[])) q"""
POOLED = """INSERT INTO measurement (team_id, audit_id, method, epsilon_asked, group_id, part, quantity, seeds, units, rows,
    total, total_squared, "cross", rows_squared, total_each_squared)
SELECT r.team_id, r.audit_id, r.method, NULL, g.id, 'test', 'rest:accuracy', :seeds, 200, 200,
    random() * 10, 20 + random(), 5, 200, 60
FROM (SELECT DISTINCT team_id, audit_id, method FROM run WHERE method <> 'non-private') r, "group" g"""


def add_audit(session: Session) -> str:
    """An audit of that size with random numbers; its id."""
    session.add(Team(id="t", name="team"))
    session.flush()
    session.add(Person(id="p", team_id="t", name="person", role="analyst"))
    session.flush()
    dataset = {"id": "d", "team_id": "t", "created_by": "p", "name": "d", "state": "profiled", "sha256": "0" * 64}
    session.execute(_insert(Dataset, dataset))
    recipe = {
        "id": "r",
        "team_id": "t",
        "dataset_id": "d",
        "created_by": "p",
        "version": 1,
        "state": "ready",
        "summary": {"classes": 2},
    }
    session.execute(_insert(Recipe, recipe))
    question = {"seeds": SEEDS}
    session.add(
        Audit(id="a", team_id="t", dataset_id="d", recipe_id="r", created_by="p", name="a", state="finished",
              question=question, delta=1e-5, forecast={})
    )  # fmt: skip
    session.flush()
    for at in range(GROUPS + 1):
        attributes = {} if at == 0 else {f"set {at % 3}": f"value {at}"}
        session.add(
            Group(team_id="t", recipe_id="r", position=at, key=f"g={at}" if at else "everyone", attributes=attributes,
                  train=600, validation=200, test=200 if at else 12000, label_counts={}, base_rate=0.5, estimable=True)
        )  # fmt: skip
    for seed in range(SEEDS):
        session.add(Stack(id=f"s{seed}", team_id="t", audit_id="a", number=seed, seed=seed, kernel="eager-cpu",
                          threads=1, steps=1, state="finished"))  # fmt: skip
        session.flush()
        points: list[tuple[str, float | None]] = [("non-private", None)]
        points += [(method, epsilon) for method in METHOD_KEYS for epsilon in EPSILONS]
        for position, (method, epsilon) in enumerate(points):
            session.add(Run(id=f"{position:016d}{seed:016d}", team_id="t", audit_id="a", stack_id=f"s{seed}",
                            position=position, method=method, seed=seed, epsilon_asked=epsilon, epsilon_spent=epsilon,
                            parameters={}, state="finished"))  # fmt: skip
    session.flush()
    session.execute(text(STATISTICS))
    quantities = [f"{before}{m.key}" for m in METRICS for before in ("", "level:")] + ["rest:accuracy"]
    session.execute(text(MEASUREMENTS), {"seeds": list(range(SEEDS)), "quantities": quantities})
    session.execute(text("DELETE FROM measurement WHERE quantity = 'rest:accuracy' AND method = 'non-private'"))
    session.execute(text(POOLED), {"seeds": list(range(SEEDS))})
    return "a"


def _insert(table: Any, values: dict[str, Any]) -> Any:
    """Fills what a row must have and this benchmark does not look at."""
    from sqlalchemy import insert

    now = datetime.now(UTC)
    for column in table.__table__.columns:
        if (
            column.name not in values
            and not column.nullable
            and column.default is None
            and column.server_default is None
        ):
            kinds: dict[type, Any] = {str: "x", int: 0, float: 0.0, bool: False, dict: {}, bytes: b"", datetime: now}
            values[column.name] = kinds.get(column.type.python_type, {})
    return insert(table).values(**values)


def views(session: Session, settings: Settings, audit_id: str) -> dict[str, Callable[[], object]]:
    """What each view computes, from the database to its rows."""
    audit = session.get_one(Audit, audit_id)
    recipe = session.get_one(Recipe, audit.recipe_id)
    metric, titles = METRICS[0], {method.key: method.title for method in METHODS}

    def facts() -> Any:
        return rows.facts(session, settings, audit, recipe, (metric.key,))

    return {
        "facts alone": facts,
        "costs": lambda: rows.cost_table(facts(), metric, "both", titles),
        "gaps": lambda: gap_rows(facts(), metric),
        "marks": lambda: mark_rows(facts()),
        "trade-off": lambda: tradeoff(facts(), metric, titles, group_min=100, max_cost=0.03),
    }


def main() -> None:
    """Print the median of each view in milliseconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = {}
    with start_services() as services:
        services.postgres.ensure_database()
        migrate.upgrade(services.postgres.url())
        settings = Settings(mode="demo", database_url=services.postgres.url(), redis_url=services.valkey.url(),
                            secret_key="a benchmark's own secret, longer than thirty-two characters")  # fmt: skip
        engine = make_engine(services.postgres.url())
        with Session(engine) as session:
            audit_id = add_audit(session)
            session.commit()
            session.execute(text("ANALYZE"))
            for name, make in views(session, settings, audit_id).items():
                times = []
                for _ in range(REPEATS):
                    started = time.perf_counter()
                    make()
                    times.append(1000 * (time.perf_counter() - started))
                found[name] = round(statistics.median(times), 1)
                print(f"{name:12} {found[name]:8.1f} ms (largest {max(times):.1f})")
        engine.dispose()
    if asked.json:
        print(json.dumps({"milliseconds": found}))


if __name__ == "__main__":
    main()
