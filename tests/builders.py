"""Tables, data and facts with defaults, for every test that needs some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from worker.engine.datasets.encode import encode, make_encoding
from worker.engine.datasets.groups import group_members
from worker.engine.datasets.role_set import Roles, Target
from worker.engine.datasets.split import assign_parts
from worker.engine.datasets.table import Column, Table
from worker.engine.results import AuditFacts, EncodedData, GroupFacts, MeasurementRow, RunFacts, StatisticRow

DATASET = "d" * 32


def category(name: str, values: Sequence[str | None]) -> Column:
    """A category column from its cells, None where missing."""
    categories = tuple(sorted({value for value in values if value is not None}))
    codes = [-1 if value is None else categories.index(value) for value in values]
    return Column(name, "category", codes=np.array(codes, dtype=np.int32), categories=categories)


def number(name: str, values: Sequence[float | None]) -> Column:
    """A number column from its cells, None where missing."""
    numbers = [np.nan if value is None else value for value in values]
    return Column(name, "number", numbers=np.array(numbers, dtype=np.float64))


def table_of(*columns: Column, row_ids: Sequence[int] | None = None, test_rows: int = 0) -> Table:
    """A table of these columns; the last ``test_rows`` rows come from a test file."""
    rows = len(columns[0].missing())
    ids = np.arange(rows) if row_ids is None else np.array(row_ids)
    return Table(ids.astype(np.int64), columns, np.arange(rows) >= rows - test_rows)


def make_table(rows: int = 600, seed: int = 0) -> Table:
    """People with age (some missing), hours, sex, race, job, and an income that depends on all but race."""
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 80, rows).astype(float)
    hours = draw.integers(10, 60, rows).astype(float)
    sex = draw.choice(["Female", "Male"], rows, p=[0.4, 0.6])
    race = draw.choice(["Black", "Other", "White"], rows, p=[0.15, 0.05, 0.8])
    job = draw.choice(["clerk", "driver", "nurse"], rows)
    lean = (age - 45) / 15 + (hours - 35) / 12 + (sex == "Male") + (job == "nurse") - 1.5
    income = np.where(lean + draw.logistic(size=rows) > 0, ">50K", "<=50K")
    age_cells = [None if place % 97 == 0 else value for place, value in enumerate(age.tolist())]
    return table_of(
        number("age", age_cells),
        number("hours", hours.tolist()),
        category("sex", sex.tolist()),
        category("race", race.tolist()),
        category("job", job.tolist()),
        category("income", income.tolist()),
    )


def make_roles(**changes: Any) -> Roles:
    """Income above 50K is favourable; sex and race are protected and combined; the rest are features."""
    given: dict[str, Any] = {
        "target": Target("income", favourable=">50K"),
        "protected": ("sex", "race"),
        "features": ("age", "hours", "job"),
        "intersections": (("sex", "race"),),
    }
    return Roles(**(given | changes))


def make_data(rows: int = 600, seed: int = 0, **changes: Any) -> EncodedData:
    """The table of ``make_table``, split and encoded by ``make_roles``."""
    table, roles = make_table(rows, seed), make_roles(**changes)
    parts = assign_parts(table, roles, DATASET)
    keys = [group.key for group in group_members(table, roles)]
    return encode(table, roles, parts, make_encoding(table, roles, parts), keys)


def statistic(
    group: str, label: int, right: Sequence[int], base: Sequence[int] | None = None, **changes: Any
) -> StatisticRow:
    """Two-class statistics of one label from who was right (0 or 1 a row), and who was in the baseline."""
    hits, n = sum(right), len(right)
    predicted = (n - hits, hits) if label == 1 else (hits, n - hits)
    given: dict[str, Any] = {
        "group": group,
        "label": label,
        "part": "test",
        "n": n,
        "predicted": predicted,
        "loss": 0.1 * hits + 1.0 * (n - hits),
        "loss_squared": 0.0,
        "squared_error": 0.0,
        "score": 0.0,
    }
    if base is not None:
        pairs = list(zip(base, right, strict=True))
        given |= {
            "both_right": pairs.count((1, 1)),
            "baseline_only_right": pairs.count((1, 0)),
            "run_only_right": pairs.count((0, 1)),
            "both_wrong": pairs.count((0, 0)),
            "loss_difference": 0.9 * (sum(right) - sum(base)),
            "loss_difference_squared": 0.0,
        }
    return StatisticRow(**(given | changes))


def make_group(key: str = "sex=Female", n: int = 200, **changes: Any) -> GroupFacts:
    """A group that can be judged."""
    attributes = dict(pair.split("=") for pair in key.split("&") if "=" in pair)
    label = ", ".join(f"{name}: {value}" for name, value in attributes.items()) or key
    given: dict[str, Any] = {"label": label, "attributes": attributes, "estimable": n >= 30, "reason": None}
    return GroupFacts(key=key, n=n, **(given | changes))


def make_facts(
    seeds: int = 5,
    epsilons: Sequence[float] = (1.0, 8.0),
    groups: Sequence[tuple[str, int]] = (("sex=Female", 200), ("sex=Male", 300)),
    shares: Mapping[str, float] | None = None,
    seed: int = 0,
    measured: bool = True,
    **changes: Any,
) -> AuditFacts:
    """An audit of DP-SGD whose runs are right at random: the baseline with 0.85, private runs with ``shares`` by group.

    Rows are drawn once a run; ``everyone`` is the sum of the groups, which must not overlap.
    """
    draw = np.random.default_rng(seed)
    right = _draw_right(draw, seeds, epsilons, groups, shares or {})
    everyone = sum(n for _, n in groups)
    keys = [("everyone", everyone), *groups]
    labels = {key: np.arange(n) % 2 for key, n in groups}
    labels["everyone"] = np.concatenate([labels[key] for key, _ in groups])
    runs, measurements = [], []
    for epsilon in (None, *epsilons):
        for index in range(seeds):
            rows = [
                statistic(key, label, right[epsilon][index][key][labels[key] == label].tolist())
                for key, _ in keys
                for label in (0, 1)
            ]
            method = "non-private" if epsilon is None else "dp-sgd"
            name = f"{method}-{epsilon}-{index}"
            runs.append(RunFacts(name, method, index, epsilon, epsilon, "finished", tuple(rows)))
        if epsilon is not None and measured:
            for key, _ in keys:
                measurements.append(_measured(epsilon, key, right, labels[key], seeds, None))
    given: dict[str, Any] = {"seeds_planned": seeds}
    shown = tuple(make_group(key, n) for key, n in keys)
    return AuditFacts(shown, tuple(runs), tuple(measurements), **(given | changes))


def _draw_right(
    draw: np.random.Generator,
    seeds: int,
    epsilons: Sequence[float],
    groups: Sequence[tuple[str, int]],
    shares: Mapping[str, float],
) -> dict[float | None, list[dict[str, Any]]]:
    right: dict[float | None, list[dict[str, Any]]] = {}
    for epsilon in (None, *epsilons):
        right[epsilon] = []
        for _ in range(seeds):
            one = {
                key: (draw.random(n) < (0.85 if epsilon is None else shares.get(key, 0.8))).astype(int)
                for key, n in groups
            }
            right[epsilon].append({"everyone": np.concatenate(list(one.values())), **one})
    return right


def _measured(epsilon: float, key: str, right: Any, labels: Any, seeds: int, label: int | None) -> MeasurementRow:
    chosen = slice(None) if label is None else labels == label
    each = np.array([(right[None][i][key] - right[epsilon][i][key])[chosen] for i in range(seeds)], dtype=float)
    mean, n = each.mean(axis=0), each.shape[1]
    return MeasurementRow(
        method="dp-sgd",
        epsilon=epsilon,
        group=key,
        label=label,
        part="test",
        quantity="accuracy",
        seeds=tuple(range(seeds)),
        units=n,
        rows=n,
        total=float(mean.sum()),
        total_squared=float((mean**2).sum()),
        cross=float(mean.sum()),
        rows_squared=float(n),
        total_each_squared=float((each**2).sum(axis=1).mean()),
    )
