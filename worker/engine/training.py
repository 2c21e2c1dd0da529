"""The loop over a stack of runs: read it top to bottom. It saves nothing and prints nothing.

Each step: a Poisson batch that all runs share; each run's per-example gradient norms; each method's factors; the sum
of scaled gradients plus the run's own noise, which is the only thing that leaves the batch; and a step of that length
divided by the *expected* batch size. An empty batch takes a step of noise alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from math import isfinite
from typing import Protocol, TypeVar, cast

import torch
from torch import Tensor

from worker.engine.mechanisms.clipping import ClippingRule
from worker.engine.mechanisms.noise import NoiseStream
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.mechanisms.sampling import PoissonBatches
from worker.engine.methods.base import Method
from worker.engine.networks.descent import Descent
from worker.engine.networks.rows import Rows
from worker.engine.networks.stack import DenseStack
from worker.engine.observer import Observer
from worker.engine.params import NetworkKind
from worker.engine.results import EncodedData, PrivacyEvent, RunSpec, StackSpec

LOOK_EVERY = 10
"""Steps between two looks at whether a run has diverged."""


@dataclass(frozen=True)
class Trained:
    """A trained stack: its networks, all rows of the table as tensors, and for each run the step at which it was seen
    to have diverged (or None) and the events that it spent."""

    network: DenseStack
    rows: Rows
    diverged: tuple[int | None, ...]
    events: tuple[tuple[PrivacyEvent, ...], ...]
    steps: int


def train_stack(
    spec: StackSpec,
    data: EncodedData,
    methods: Sequence[Method],
    networks: Sequence[NetworkKind],
    observer: Observer,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Trained:
    """Train all runs of a stack on the training part. The same spec, data, kernel and threads give the same bits.

    Raises:
        Stopped: the observer said so.
        ValueError: an unknown method or network.
    """
    torch.set_num_threads(spec.threads)
    torch.set_float32_matmul_precision("highest")  # a rounded norm would be a privacy bug
    with torch.inference_mode():
        rows, network = Rows.of(data, device, dtype), build_network(spec, data, networks, device, dtype)
        mechanisms = [mechanism_of(run, spec, methods) for run in spec.runs]
        batches = PoissonBatches.of_training_part(data, spec.size.sampling_probability, spec.batch_seed)
        rates = [run.parameters["learning_rate"] / spec.size.expected_batch_size for run in spec.runs]
        momenta = [run.parameters.get("momentum", 0.0) for run in spec.runs]
        descent, rules = Descent(network, rates, momenta), shared_rules(mechanisms)
        seeds, stds = [run.noise_seed for run in spec.runs], [mechanism.noise_std for mechanism in mechanisms]
        with NoiseStream(seeds, stds, network.numbers, spec.threads) as noise:
            for step in range(spec.size.steps):
                network.load_release(torch.as_tensor(noise.next(), device=device))
                batch = torch.as_tensor(batches.batch(step), device=device)
                if len(batch):
                    add_batch(network, rows, batch, rules)
                descent.step()
                if (step + 1) % LOOK_EVERY == 0 or step + 1 == spec.size.steps:
                    descent.look(step + 1)
                observer.step(step + 1, spec.size.steps)
    return Trained(network, rows, tuple(descent.diverged), tuple(m.events for m in mechanisms), spec.size.steps)


def add_batch(network: DenseStack, rows: Rows, batch: Tensor, rules: Sequence[tuple[slice, ClippingRule]]) -> None:
    """Add the scaled gradients of a batch to the network's release. Private until the noise is in: nothing else may
    keep it."""
    scores = network.forward(rows.features.index_select(0, batch))
    slopes = scores.sigmoid_() if network.outputs == 1 else torch.softmax(scores, 2)
    slopes.sub_(rows.targets.index_select(0, batch)[:, None, :])
    norms = network.squared_norms(slopes, rows.squares.index_select(0, batch)).sqrt_()
    if not isfinite(float(norms.sum())):
        lost = ~norms.isfinite()
        network.forget(lost)
        norms.masked_fill_(lost, 0.0)
    for runs, rule in rules:
        norms[:, runs] = rule.scale(norms[:, runs])
    network.add_scaled_gradients(norms)


def build_network(
    spec: StackSpec, data: EncodedData, networks: Sequence[NetworkKind], device: str, dtype: torch.dtype
) -> DenseStack:
    """The stack of networks before its first step."""
    kind = _called(spec.network.kind, networks)
    outputs = 1 if data.classes == 2 else data.classes
    build = import_module(kind.module).build
    made = build(
        spec.network, data.feature_names, outputs, len(spec.runs), spec.weight_seed, device=device, dtype=dtype
    )
    return cast(DenseStack, made)


def mechanism_of(run: RunSpec, spec: StackSpec, methods: Sequence[Method]) -> Mechanism:
    """What bounds and hides one unit's influence on this run."""
    return Mechanism.of(_called(run.method, methods).rule(run.parameters), run.noise_multiplier, spec.size)


def shared_rules(mechanisms: Sequence[Mechanism]) -> list[tuple[slice, ClippingRule]]:
    """Neighbouring runs with equal rules are scaled together."""
    shared, start = [], 0
    for rule, runs in groupby(mechanism.rule for mechanism in mechanisms):
        count = len(list(runs))
        shared.append((slice(start, start + count), rule))
        start += count
    return shared


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


Item = TypeVar("Item", bound=_Keyed)


def _called(key: str, items: Sequence[Item]) -> Item:
    for item in items:
        if item.key == key:
            return item
    raise ValueError(f"There is nothing called {key!r} among {[item.key for item in items]}. Check the catalogue.")
