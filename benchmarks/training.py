"""How fast a stack trains, beside Opacus' hooks and its ghost mode: milliseconds a run and step. Figures, never pass
or fail.

python -m benchmarks.training [--json] [--runs 6 26 48] [--threads 2]

100 synthetic columns, one hidden layer of 64, batches of 256 rows on average. ``--json`` prints one last line of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from worker.engine.catalogue import METHODS, NETWORKS
from worker.engine.results import EncodedData, GroupRows, NetworkSpec, RunSpec, StackSpec, TrainingSize
from worker.engine.training import train_stack

ROWS, COLUMNS, HIDDEN, BATCH = 20_000, 100, 64, 256
REPEATS = 5


class Clock:
    """An observer that notes when each step ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def step(self, *_: int) -> None:
        self.times.append(time.perf_counter())


def table() -> EncodedData:
    generator = np.random.default_rng(0)
    features = generator.uniform(0, 1, (ROWS, COLUMNS)).astype(np.float32)
    ids = np.arange(ROWS)
    labels = (features @ generator.normal(size=COLUMNS) > 0).astype(np.int64)
    everyone = GroupRows("everyone", np.ones(ROWS, bool))
    names = tuple(map(str, range(COLUMNS)))
    return EncodedData(features, labels, 2, np.zeros(ROWS, np.int8), ids, ids, ROWS, (everyone,), names)


def stack(runs: int, threads: int) -> StackSpec:
    values = {"learning_rate": 0.1, "clip": 4.0}
    specs = [RunSpec("0", "non-private", 0, None, 0.0, 0, values)]
    specs += [RunSpec(str(run), "dp-sgd", 0, 1.0, 1.0, run, values) for run in range(1, runs)]
    size = TrainingSize(ROWS, BATCH, 4)
    return StackSpec(tuple(specs), NetworkSpec("mlp", (HIDDEN,)), size, 1, 2, "eager-cpu", threads)


def stack_ms(runs: int, threads: int) -> float:
    """Milliseconds a run and step: the median over trainings; the first steps are not counted."""
    data, spec, found = table(), stack(runs, threads), []
    for _ in range(REPEATS):
        clock = Clock()
        train_stack(spec, data, METHODS, NETWORKS, clock)
        found.append((clock.times[-1] - clock.times[31]) / (len(clock.times) - 32) / runs * 1e3)
    return statistics.median(found)


def floor_ms(runs: int) -> float:
    """Matrix products and normal draws alone: what no program of this kind can beat."""
    inputs, weights = torch.rand(BATCH, COLUMNS + 1), torch.rand(COLUMNS + 1, runs * HIDDEN)
    slopes = torch.rand(BATCH, runs * HIDDEN)
    noise = np.empty(runs * ((COLUMNS + 1) * HIDDEN + HIDDEN + 1), np.float32)
    draw = np.random.Generator(np.random.SFC64(0))

    def step() -> None:
        torch.mm(inputs, weights)
        torch.mm(inputs.t(), slopes)
        draw.standard_normal(out=noise, dtype=np.float32)

    return _median_ms(step, 50) / runs


def opacus_ms(mode: str) -> float:
    """One network by Opacus on one fixed batch, per step: forward, backward, clip, noise, step."""
    from opacus import PrivacyEngine

    model = nn.Sequential(nn.Linear(COLUMNS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1))
    data = torch.utils.data.TensorDataset(torch.rand(ROWS, COLUMNS), torch.rand(ROWS, 1).round())
    loader = torch.utils.data.DataLoader(data, BATCH)
    criterion = nn.BCEWithLogitsLoss()
    made = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), 0.1),
        data_loader=loader,
        criterion=criterion,
        noise_multiplier=1.0,
        max_grad_norm=4.0,
        grad_sample_mode=mode,
    )
    model, optimizer, criterion = made[0], made[1], made[2] if mode == "ghost" else criterion
    rows, labels = data.tensors[0][:BATCH], data.tensors[1][:BATCH]

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(rows), labels).backward()
        optimizer.step()

    return _median_ms(step, 50)


def _median_ms(step: Callable[[], None], times: int) -> float:
    for _ in range(10):
        step()
    found = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        for _ in range(times):
            step()
        found.append((time.perf_counter() - started) / times * 1e3)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, nargs="+", default=[6, 26, 48])
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(asked.threads)
    figures = {"threads": asked.threads, "opacus_hooks_ms": opacus_ms("hooks"), "opacus_ghost_ms": opacus_ms("ghost")}
    for runs in asked.runs:
        figures[f"stack_{runs}_ms"] = stack_ms(runs, asked.threads)
        figures[f"floor_{runs}_ms"] = floor_ms(runs)
        figures[f"times_hooks_{runs}"] = figures["opacus_hooks_ms"] / figures[f"stack_{runs}_ms"]
        figures[f"times_ghost_{runs}"] = figures["opacus_ghost_ms"] / figures[f"stack_{runs}_ms"]
        figures[f"over_floor_{runs}"] = figures[f"stack_{runs}_ms"] / figures[f"floor_{runs}_ms"]
    for name, value in figures.items():
        print(f"{name:20} {value:8.3f}")
    if asked.json:
        print(json.dumps({name: round(value, 4) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
