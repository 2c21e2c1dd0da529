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
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import torch
from torch import Tensor

from worker.engine.mechanisms.clipping import ClippingRule
from worker.engine.mechanisms.noise import NoiseStream
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.mechanisms.sampling import PoissonBatches
from worker.engine.methods.base import Method
from worker.engine.networks.stack import DenseStack
from worker.engine.observer import Observer
from worker.engine.params import NetworkKind
from worker.engine.results import PARTS, EncodedData, PrivacyEvent, RunSpec, StackSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOOK_EVERY = 10
"""Steps between two looks at whether a run has diverged."""

ABSURD = 1e6
"""A weight larger than this, on features scaled to about one, means that the run has diverged."""


@dataclass(frozen=True)
class Trained:
    """A trained stack: its networks, all rows of the table as tensors, and for each run the step at which it was seen
    to have diverged (or None) and the events that it spent."""

    network: DenseStack
    rows: Rows
    diverged: tuple[int | None, ...]
    events: tuple[tuple[PrivacyEvent, ...], ...]
    steps: int


@dataclass(frozen=True)
class Rows:
    """Rows as tensors.

    ``features`` (n, d + 1) end in a one; a row that is not finite is zeroed, and its ``squares`` (n,), kept from
    before, are not finite, so that its gradient counts as not finite and becomes zero. ``targets`` (n, outputs): the
    label, or one-hot.
    """

    features: Tensor
    squares: Tensor
    targets: Tensor

    @classmethod
    def of(cls, data: EncodedData, device: str, dtype: torch.dtype) -> Rows:
        features = torch.as_tensor(data.features, device=device, dtype=dtype)
        features = torch.cat([features, features.new_ones(len(features), 1)], 1)
        squares = features.square().sum(1)
        features[~features.isfinite().all(1)] = 0.0
        labels = torch.as_tensor(data.labels, device=device)
        targets = labels[:, None] if data.classes == 2 else torch.nn.functional.one_hot(labels, data.classes)
        return cls(features, squares, targets.to(dtype))


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
        batches, descent, rules = TrainingBatches(spec, data), _Descent(spec, network), shared_rules(mechanisms)
        seeds, stds = [run.noise_seed for run in spec.runs], [mechanism.noise_std for mechanism in mechanisms]
        with NoiseStream(seeds, stds, network.numbers, spec.threads) as noise:
            for step in range(spec.size.steps):
                network.load_release(torch.as_tensor(noise.next(), device=device))
                batch = torch.as_tensor(batches.positions(step), device=device)
                if len(batch):
                    add_batch(network, rows, batch, rules)
                descent.step(network)
                if (step + 1) % LOOK_EVERY == 0 or step + 1 == spec.size.steps:
                    descent.look(network, step + 1)
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


class TrainingBatches:
    """Poisson batches of the training part, as positions in the whole table."""

    def __init__(self, spec: StackSpec, data: EncodedData) -> None:
        self._rows = (data.parts == PARTS.index("train")).nonzero()[0]
        units, ids = data.unit_ids[self._rows], data.row_ids[self._rows]
        self._coins = PoissonBatches(units, ids, data.universe, spec.size.sampling_probability, spec.batch_seed)

    def positions(self, step: int) -> NDArray[np.int64]:
        batch: NDArray[np.int64] = self._rows[self._coins.batch(step)]
        return batch


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


class _Descent:
    """Steps of plain SGD, with momentum where a run asks for it, and an eye on runs that diverge."""

    def __init__(self, spec: StackSpec, network: DenseStack) -> None:
        rates = [run.parameters["learning_rate"] / spec.size.expected_batch_size for run in spec.runs]
        momenta = [run.parameters.get("momentum", 0.0) for run in spec.runs]
        self._rates = torch.tensor(rates, device=network.device, dtype=network.dtype)
        self._momenta = torch.tensor(momenta, device=network.device, dtype=network.dtype)
        self._velocity = [torch.zeros_like(p) for p in network.parameters] if any(momenta) else None
        self.diverged: list[int | None] = [None] * network.runs

    def step(self, network: DenseStack) -> None:
        """theta <- theta - rate * velocity; velocity <- momentum * velocity + release."""
        moves = network.release
        if self._velocity is not None:
            for velocity, move, momentum in zip(self._velocity, moves, network.per_run(self._momenta), strict=True):
                velocity.mul_(momentum).add_(move)
            moves = self._velocity
        for parameter, move, rate in zip(network.parameters, moves, network.per_run(self._rates), strict=True):
            parameter.addcmul_(move, rate, value=-1.0)

    def look(self, network: DenseStack, step: int) -> None:
        """Judge by the released weights alone; a diverged run is zeroed and stands still, and touches no other."""
        for run in (~(network.largest() <= ABSURD)).nonzero().flatten().tolist():
            self.diverged[run] = step
            self._rates[run] = 0.0
            self._momenta[run] = 0.0
            network.clear(network.parameters, run)
            if self._velocity is not None:
                network.clear(self._velocity, run)


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


Item = TypeVar("Item", bound=_Keyed)


def _called(key: str, items: Sequence[Item]) -> Item:
    for item in items:
        if item.key == key:
            return item
    raise ValueError(f"There is nothing called {key!r} among {[item.key for item in items]}. Check the catalogue.")
