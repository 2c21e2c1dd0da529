"""A small audit of random networks through the real engine: logits, statistics, measurements, values and floors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.builders import make_data, make_group
from worker.engine.audits.execute import run_results
from worker.engine.audits.floors import floors
from worker.engine.audits.measure import measure, run_values
from worker.engine.catalogue import METRICS
from worker.engine.facts.grid import attribute_set
from worker.engine.results import AuditFacts, EncodedData, RunFacts

Harm = Callable[[EncodedData, float], np.ndarray]
"""From the data and an epsilon to how much is taken from the right logit of each row."""


@dataclass
class Made:
    """The facts of an audit and what they were made from."""

    facts: AuditFacts
    data: EncodedData


def make_audit(
    data: EncodedData | None = None,
    *,
    seeds: int = 4,
    epsilons: tuple[float, ...] = (1.0, 8.0),
    methods: tuple[str, ...] = ("dp-sgd",),
    harm: Harm | None = None,
    seed: int = 0,
    with_floors: bool = True,
) -> Made:
    """Networks that know the label with noise; private ones lose ``harm`` of it and gain noise of their own."""
    data = data or make_data(2000)
    draw, held_out = np.random.default_rng(seed), data.parts != 0
    points: list[tuple[str, float | None]] = [("non-private", None), *((m, e) for m in methods for e in epsilons)]
    sign = np.where(data.labels == 1, 1.0, -1.0)
    runs, tables, known = [], {}, {}
    for index in range(seeds):
        common = 1.0 * sign + draw.normal(size=len(sign))
        logits = np.stack([common, *(common + 0.3 * draw.normal(size=len(sign)) for _ in points[1:])])
        if harm is not None:
            for at, (_, epsilon) in enumerate(points[1:], 1):
                logits[at] -= sign * harm(data, epsilon or 1.0)
        names = [f"{method} {epsilon} {index}" for method, epsilon in points]
        spec: Any = SimpleNamespace(runs=[SimpleNamespace(run=name) for name in names])
        logits32 = logits[..., None].astype(np.float32)
        for result, (method, epsilon) in zip(
            run_results(spec, data, (None,) * len(points), logits32), points, strict=True
        ):
            runs.append(RunFacts(result.run, method, index, epsilon, epsilon, "finished", result.statistics))
            known[result.run] = (method, epsilon, index)
        chosen = {name: logits32[at, held_out] for at, name in enumerate(names)}
        tables[index] = SimpleNamespace(row_ids=data.row_ids[held_out], logits=chosen)
    return Made(_facts(data, runs, tables, known, seeds, with_floors), data)


def _facts(
    data: EncodedData, runs: list[RunFacts], tables: Any, known: Any, seeds: int, with_floors: bool
) -> AuditFacts:
    test = data.parts == 2
    groups = tuple(
        make_group(group.key, int((group.member & test).sum()), attributes=_attributes(group.key))
        for group in data.groups
    )
    families: dict[str, list[str]] = {}
    for group in groups:
        if group.attributes and group.estimable:
            families.setdefault(attribute_set(group.attributes), []).append(group.key)
    at_run, at_group = {run.run: at for at, run in enumerate(runs)}, {group.key: at for at, group in enumerate(groups)}
    values = {m.key: np.full((len(runs), len(groups)), np.nan) for m in METRICS if m.counted is None}
    for row in run_values(tables, known, data, METRICS):
        if row.value is not None:
            values[row.metric][at_run[row.run], at_group[row.group]] = row.value
    found = floors(tables, known, data, METRICS, families, fewest_with_label=5) if with_floors else []
    rows = tuple(measure(tables, known, data, METRICS))
    return AuditFacts(groups, tuple(runs), rows, seeds_planned=seeds, values=values, floors=tuple(found))


def _attributes(key: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in key.split("&") if "=" in pair)
