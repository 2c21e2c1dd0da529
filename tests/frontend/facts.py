"""Facts for charts and pages: groups with hostile names, small groups, no seeds, many methods."""

from __future__ import annotations

from dataclasses import replace

from frontend.charts.base import CostFacts, View
from worker.engine.results import EVERYONE, CostRow

HOSTILE = '"><script>alert(1)</script> <b>%{x}</b> & =cmd|'


def row(method: str, epsilon: float | None, group: str, n: int, cost: float | None, half: float = 0.02) -> CostRow:
    return CostRow(
        method=method,
        epsilon_asked=epsilon,
        epsilon_spent=None if epsilon is None else epsilon * 0.9987,
        group=group,
        group_label=group.replace("=", ": "),
        n=n,
        value=None if cost is None else 0.85 - cost,
        baseline=None if cost is None else 0.85,
        cost=None if epsilon is None else cost,
        low=None if cost is None or epsilon is None else cost - half,
        high=None if cost is None or epsilon is None else cost + half,
        interval="both",
        seeds=5,
        reason=None if cost is not None else "withheld: fewer than 10 test rows",
    )


def make_facts(groups: int = 6, epsilons: tuple[float, ...] = (0.1, 1.0, 8.0), metric: str = "accuracy") -> CostFacts:
    """Two methods; the last group is withheld, the one before cannot be judged, one has a hostile name."""
    keys = [EVERYONE, f"sex={HOSTILE}", *(f"race=group {number}" for number in range(groups))]
    rows = []
    for method in ("non-private", "dp-sgd", "pate-soft"):
        for epsilon in (None,) if method == "non-private" else epsilons:
            for at, key in enumerate(keys):
                n = 5000 // (at + 1) ** 2
                cost = None if at == len(keys) - 1 else 0.03 * at / (epsilon or 1.0) ** 0.5 - 0.01
                made = row(method, epsilon, key, 7 if cost is None else n, cost, half=0.01 + 0.2 * (at == 3))
                if at == len(keys) - 2:
                    made = replace(made, reason=f"n = {n}: not enough to judge")
                rows.append(made)
    titles = {"dp-sgd": "DP-SGD", "pate-soft": "PATE", "non-private": "No privacy"}
    loss = metric == "loss"
    return CostFacts(
        rows=tuple(rows),
        metric=metric,
        metric_title="Loss" if loss else "Accuracy",
        direction="lower" if loss else "higher",
        percent=not loss,
        interval="both",
        method_titles=titles,
        seeds_planned=5,
    )


def make_view(facts: CostFacts, **changes: object) -> View:
    groups = tuple(dict.fromkeys(r.group for r in facts.rows))
    return replace(View(method="dp-sgd", groups=groups, epsilon=1.0), **changes)  # type: ignore[arg-type] # names of fields
