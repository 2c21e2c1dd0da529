"""The loop over a stack of runs: read it top to bottom. It saves nothing and prints nothing.

Each step: a Poisson batch that all runs share; each run's per-example gradient norms; what each method counts, with
noise; each method's factors; the sum of scaled gradients plus the run's own noise; and a step of that length divided by
the *expected* batch size. The noisy sum and the noisy counts are all that leaves the batch. An empty batch takes a step
of noise alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from math import isfinite
from typing import Protocol, TypeVar, cast

import torch
from torch import Tensor

from worker.engine.mechanisms.clipping import Clipper, NoClip, Start
from worker.engine.mechanisms.noise import NoiseStream
from worker.engine.mechanisms.plan import Mechanism
from worker.engine.mechanisms.sampling import PoissonBatches
from worker.engine.methods.base import Method
from worker.engine.networks.descent import Descent
from worker.engine.networks.gradients import Gradients
from worker.engine.networks.rows import Rows
from worker.engine.networks.stack import DenseStack
from worker.engine.observer import Observer
from worker.engine.params import NetworkKind
from worker.engine.results import EncodedData, PrivacyEvent, RunSpec, StackSpec

LOOK_EVERY = 10
"""Steps between two looks at whether a run has diverged."""

LARGEST_SETTING, LARGEST_CLIP = 1e30, 1e12
"""Beyond these no run is begun: in float32 nothing of its steps could be told from infinity."""

SIDE_STREAM = 1
"""Second word of the noise seed of a run's counts; the noise of its sums has the seed alone."""


@dataclass(frozen=True)
class Trained:
    """A trained stack: its networks, all rows of the table as tensors, and for each run the step at which it was seen
    to have diverged (or None), why, and the events that it spent."""

    network: DenseStack
    rows: Rows
    diverged: tuple[int | None, ...]
    reasons: tuple[str | None, ...]
    events: tuple[tuple[PrivacyEvent, ...], ...]
    steps: int


@dataclass(frozen=True)
class Section:
    """Neighbouring runs with the same rule: the clipper that scales them, and the noise of what it counts."""

    runs: slice
    clipper: Clipper
    side: NoiseStream | None


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
    with torch.inference_mode(), ExitStack() as streams:
        network = build_network(spec, data, networks, device, dtype)
        rows = Rows.of(data, device, dtype, network.outputs)
        mechanisms = mechanisms_of(spec, methods)
        batches = PoissonBatches.of_training_part(data, spec.size.sampling_probability, spec.batch_seed)
        descent = descent_of(spec, network)
        sections = sections_of(spec, data, network, mechanisms, streams)
        seeds, stds = [run.noise_seed for run in spec.runs], [mechanism.noise_std for mechanism in mechanisms]
        noise = streams.enter_context(NoiseStream(seeds, stds, network.numbers, spec.threads))
        for step in range(spec.size.steps):
            batch = torch.as_tensor(batches.batch(step), device=device)
            release_batch(network, rows, batch, sections, torch.as_tensor(noise.next(), device=device))
            descent.step()
            if (step + 1) % LOOK_EVERY == 0 or step + 1 == spec.size.steps:
                descent.look(step + 1)
            observer.step(step + 1, spec.size.steps)
    events = tuple(() if unusable(run) else one.events for run, one in zip(spec.runs, mechanisms, strict=True))
    return Trained(network, rows, tuple(descent.diverged), tuple(descent.reasons), events, spec.size.steps)


def release_batch(
    network: DenseStack, rows: Rows, batch: Tensor, sections: Sequence[Section], noise: Tensor
) -> list[Tensor | None]:
    """Set the network's release to the noise, shape (R, numbers), plus the scaled gradients of a batch. What is private
    stays in here.

    Returns what each section's counts came to, with noise.
    """
    targets, squares = rows.targets.index_select(0, batch), rows.squares.index_select(0, batch)
    norms = gradient_norms(network, rows.features.index_select(0, batch), targets, squares)
    groups, widths = rows.groups.index_select(0, batch), norms.new_ones(network.runs)
    views, counts = [], []
    for section in sections:
        view = Gradients(network, section.runs, norms[:, section.runs], groups, targets, squares)
        counts.append(_noisy(section, section.clipper.measure(view)))
        factors = section.clipper.scale(view, counts[-1])
        if section.clipper.width is not None:
            widths[section.runs] = section.clipper.width
        norms[:, section.runs] = factors
        views.append((view, factors))
    network.load_release(noise, None if all(one.clipper.width is None for one in sections) else widths)
    network.add_scaled_gradients(norms)
    for view, factors in views:
        view.finish(factors)
    return counts


def _noisy(section: Section, measured: Tensor | None) -> Tensor | None:
    if measured is None or section.side is None:
        return measured
    return measured + torch.as_tensor(section.side.next(), device=measured.device)


def gradient_norms(network: DenseStack, features: Tensor, targets: Tensor, squares: Tensor) -> Tensor:
    """Norm of each example's gradient, shape (B, R). One that is not finite becomes zero, and so do both its factors."""
    scores = network.forward(features)
    slopes = scores.sigmoid_() if network.outputs == 1 else torch.softmax(scores, 2)
    slopes.sub_(targets[:, None, :])
    norms = network.squared_norms(slopes, squares).sqrt_()
    if not isfinite(float(norms.sum())):
        lost = ~norms.isfinite()
        network.forget(lost)
        norms.masked_fill_(lost, 0.0)
    return norms


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


def descent_of(spec: StackSpec, network: DenseStack) -> Descent:
    """Moves the stack by its optimizer; runs whose settings cannot be used are ended before they start."""
    ended = [unusable(run) for run in spec.runs]
    return Descent(
        network,
        [run.parameters["learning_rate"] for run in spec.runs],
        [run.parameters.get("momentum", 0.0) for run in spec.runs],
        spec.size.expected_batch_size,
        adam=spec.optimizer == "adam",
        ended=ended,
    )


def mechanism_of(run: RunSpec, spec: StackSpec, methods: Sequence[Method]) -> Mechanism:
    """What bounds and hides one unit's influence on this run."""
    return Mechanism.of(_called(run.method, methods).rule(run.parameters), run.noise_multiplier, spec.size)


def mechanisms_of(spec: StackSpec, methods: Sequence[Method]) -> list[Mechanism]:
    """One a run. A run that must not train borrows the rule of the nearest one of its method, and has no noise: where
    runs with equal rules begin and end, and so every bit of the others, stays as it would be."""
    found = [None if unusable(run) else mechanism_of(run, spec, methods) for run in spec.runs]
    filled = []
    for place, (run, mechanism) in enumerate(zip(spec.runs, found, strict=True)):
        near = sorted(range(len(found)), key=lambda other: abs(other - place))
        lent = (found[other] for other in near if spec.runs[other].method == run.method)
        rule = next((one.rule for one in lent if one is not None), NoClip())
        filled.append(mechanism or Mechanism.of(rule, 0.0, spec.size))
    return filled


def unusable(run: RunSpec) -> str | None:
    """Why a run's settings make training senseless from the first step on, or None."""
    for key, value in run.parameters.items():
        title = key.replace("_", " ")
        if not abs(value) <= (LARGEST_CLIP if key == "clip" else LARGEST_SETTING):
            return f"The {title} is {value:g}. It must be a finite number, and not absurdly large."
        if key in ("learning_rate", "clip") and value <= 0:
            return f"The {title} is {value:g}. It must be above 0."
    return None


def sections_of(
    spec: StackSpec, data: EncodedData, network: DenseStack, mechanisms: Sequence[Mechanism], streams: ExitStack
) -> list[Section]:
    """Neighbouring runs with equal rules are scaled together; each run's counts have noise from a stream of their own."""
    sections, first = [], 0
    for rule, neighbours in groupby(mechanisms, key=lambda mechanism: mechanism.rule):
        stds = [mechanism.side_std for mechanism in neighbours]
        runs = slice(first, first + len(stds))
        start = Start(
            runs=len(stds),
            groups=data.training_group_count,
            classes=data.classes,
            numbers=network.numbers,
            expected_batch_size=spec.size.expected_batch_size,
            empty=network.parameters[0].new_empty(0),
        )
        seeds = [(run.noise_seed, SIDE_STREAM) for run in spec.runs[runs]]
        statistics, side = rule.statistics(start), None
        if statistics:
            side = streams.enter_context(NoiseStream(seeds, stds, statistics, spec.threads))
        sections.append(Section(runs, rule.begin(start), side))
        first = runs.stop
    return sections


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


Item = TypeVar("Item", bound=_Keyed)


def _called(key: str, items: Sequence[Item]) -> Item:
    for item in items:
        if item.key == key:
            return item
    raise ValueError(f"There is nothing called {key!r} among {[item.key for item in items]}. Check the catalogue.")
