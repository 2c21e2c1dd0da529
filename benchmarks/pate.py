"""How fast PATE trains its teachers, beside the same teachers one after another in ordinary torch. Figures, never pass or
fail.

python -m benchmarks.pate [--json] [--teachers 250] [--threads 2] [--kind mlp]

The bundled Adult sample: 250 teachers on the rows that are neither public nor evaluated, then two kinds of labels x 6
epsilons x 10 seeds of students from their votes. The ordinary loop trains every tenth teacher, and its time is
multiplied. ``--json`` prints one last line of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from backend.datasets import samples
from worker.engine.catalogue import FORMATS
from worker.engine.datasets.encode import encode, make_encoding
from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.groups import group_key, group_members
from worker.engine.datasets.pool import PUBLIC_PART, with_pool
from worker.engine.datasets.profile import profile_table
from worker.engine.datasets.read import read_table
from worker.engine.datasets.roles import check_roles
from worker.engine.datasets.split import assign_parts
from worker.engine.ensemble import Ensemble
from worker.engine.mechanisms import votes
from worker.engine.methods.pate import PATE, PATE_SOFT, RATE, TEACHER_PENALTY, Lessons, asked_rows, teacher_lessons
from worker.engine.results import EncodedData, NetworkSpec, RunSpec

ROLES = {"target": {"column": "income", "favourable": ">50K"}, "protected": ["gender", "race"]}
NOISES = (140.0, 73.0, 39.0, 21.0, 11.0, 6.0)
SEEDS, REPEATS, EVERY = 10, 3, 10


def adult() -> EncodedData:
    sample = samples.find("adult")
    if sample is None:
        raise SystemExit("The sample package is not installed. Run make demo or make test once.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "adult.csv")
        path.write_bytes(sample.csv_bytes())
        table, reading = read_table(path, None, {}, ReadLimits(), FORMATS)
    roles, errors = check_roles(ROLES, profile_table(table, reading))
    if roles is None:
        raise SystemExit(f"The sample's roles do not fit: {errors}.")
    parts = assign_parts(table, roles, "benchmark")
    keys = [group_key(group.attributes) for group in group_members(table, roles)]
    return with_pool(encode(table, roles, parts, make_encoding(table, roles, parts), keys), 0.2, "benchmark")


def whole(data: EncodedData, network: NetworkSpec, teachers: int, threads: int) -> float:
    """Seconds of teachers and all students."""
    started = time.perf_counter()
    trainer = Ensemble(data, network, 1, lambda *_: None, threads=threads)
    for method in (PATE, PATE_SOFT):
        values = {param.key: param.default for param in method.params} | {"teachers": teachers}
        runs = [
            RunSpec(f"{noise} {seed}", method.key, seed, 1.0, noise, seed, values)
            for noise in NOISES
            for seed in range(SEEDS)
        ]
        method.fit(runs, data, data.parts == PUBLIC_PART, 1, trainer)
    return time.perf_counter() - started


def teachers_alone(data: EncodedData, network: NetworkSpec, teachers: int, threads: int) -> tuple[float, float]:
    """Seconds of all teachers in one program, and one after another."""
    private = np.flatnonzero(data.parts == 0)
    teacher = votes.teacher_of(data.unit_ids[private], teachers, 1)
    asked = asked_rows(data, data.parts == PUBLIC_PART, 300, 1)
    values = {param.key: param.default for param in PATE.params}
    lessons = teacher_lessons(teachers, int(values["teacher_steps"]))
    started = time.perf_counter()
    Ensemble(data, network, 1, lambda *_: None, threads=threads).teacher_votes(
        private, teacher, teachers, asked, lessons
    )
    together = time.perf_counter() - started
    started = time.perf_counter()
    chosen = range(0, teachers, EVERY)
    for number in chosen:
        ordinary(data, private[teacher == number], asked, network, lessons)
    return together, (time.perf_counter() - started) * teachers / len(chosen)


def ordinary(
    data: EncodedData, rows: np.ndarray, asked: np.ndarray, network: NetworkSpec, lessons: Lessons
) -> torch.Tensor:
    """One teacher as anybody would write it."""
    layers: list[torch.nn.Module] = []
    inputs = data.features.shape[1]
    for width in network.hidden:
        layers += [torch.nn.Linear(inputs, width), torch.nn.Tanh()]
        inputs = width
    model = torch.nn.Sequential(*layers, torch.nn.Linear(inputs, 1))
    descent = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=2 * TEACHER_PENALTY)
    features = torch.as_tensor(data.features[rows])
    labels = torch.as_tensor(data.labels[rows], dtype=torch.float32)
    for step in range(lessons.steps):
        chosen = (step * lessons.batch + torch.arange(lessons.batch)) % len(rows)
        descent.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(features[chosen])[:, 0], labels[chosen]).backward()
        descent.step()
    with torch.inference_mode():
        return model(torch.as_tensor(data.features[asked])) > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=("mlp", "logistic"), default="mlp")
    asked = parser.parse_args()
    data = adult()
    network = NetworkSpec(asked.kind, (64,) if asked.kind == "mlp" else ())
    pairs = [teachers_alone(data, network, asked.teachers, asked.threads) for _ in range(REPEATS)]
    together, apart = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
    ratio = statistics.median(slow / fast for fast, slow in pairs)
    seconds = statistics.median(whole(data, network, asked.teachers, asked.threads) for _ in range(REPEATS))
    students = 2 * len(NOISES) * SEEDS
    print(
        f"{asked.teachers} teachers ({asked.kind}): {together:.2f} s together, {apart:.2f} s one by one: {ratio:.1f} x"
    )
    print(f"{asked.teachers} teachers and {students} students: {seconds:.2f} s")
    if asked.json:
        found = {"teachers": asked.teachers, "students": students, "network": asked.kind, "seconds": seconds}
        print(json.dumps(found | {"ratio_ordinary": ratio}))


if __name__ == "__main__":
    main()
