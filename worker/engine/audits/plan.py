"""From a question to its runs, stacks and seeds, and a forecast of what they take. Torch-free; the web uses it too."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from worker.engine.audits.claim import claim, published_events
from worker.engine.audits.power import Detectable, detectable, smallest_detectable
from worker.engine.audits.question import BASELINE, Question, check_question, default_delta
from worker.engine.results import GroupFacts, RunSpec, StackSpec

__all__ = [
    "BASELINE",
    "Question",
    "RunPlan",
    "StackPlan",
    "check_question",
    "claim",
    "default_delta",
    "forecast",
    "plan_stacks",
    "published_events",
    "smallest_detectable",
    "stack_spec",
]

_CALIBRATION_SECONDS = 3.0
_START_SECONDS = 3.0
_REFERENCE_PARAMETERS, _REFERENCE_BATCH = 101 * 64 + 65, 256
_SMALLEST_SHARE = 0.25
_BASE_MEMORY = 400_000_000


@dataclass(frozen=True)
class RunPlan:
    """One run before its noise is known; ``parameters`` are complete."""

    position: int
    method: str
    epsilon: float | None
    seed: int
    parameters: Mapping[str, float]


@dataclass(frozen=True)
class StackPlan:
    """The runs of one seed, the baseline first. ``seed`` is the seed's index, from 0."""

    number: int
    seed: int
    steps: int
    runs: tuple[RunPlan, ...]
    kernel: str
    threads: int


def plan_stacks(question: Question, summary: Mapping[str, Any], kernel: str, threads: int) -> tuple[StackPlan, ...]:
    """One stack a seed: the points of the question in their order, the baseline first."""
    steps = question.size(int(summary["units"])).steps
    return tuple(
        StackPlan(
            number=seed,
            seed=seed,
            steps=steps,
            runs=tuple(
                RunPlan(position, method, epsilon, seed, dict(question.parameters[method]))
                for position, (method, epsilon) in enumerate(question.points)
            ),
            kernel=kernel,
            threads=threads,
        )
        for seed in range(question.seeds)
    )


def derived_seed(audit_id: str, purpose: str, index: str) -> int:
    """A 63-bit number from the audit's id; the same audit always derives the same."""
    digest = hashlib.blake2b(f"{audit_id}|{purpose}|{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def stack_spec(
    question: Question,
    audit_id: str,
    plan: StackPlan,
    summary: Mapping[str, Any],
    run_ids: Sequence[str],
    noise_multipliers: Sequence[float],
) -> StackSpec:
    """All that the training of one stack needs.

    Args:
        run_ids, noise_multipliers: by position in the stack; the baseline's multiplier is 0.

    A run's noise seed depends on its method, epsilon and seed only, so another packing draws the same noise.
    """
    runs = tuple(
        RunSpec(
            run=run_id,
            method=run.method,
            seed=run.seed,
            epsilon=run.epsilon,
            noise_multiplier=float(noise),
            noise_seed=derived_seed(audit_id, "noise", f"{run.method}|{run.epsilon!r}|{run.seed}"),
            parameters=run.parameters,
        )
        for run, run_id, noise in zip(plan.runs, run_ids, noise_multipliers, strict=True)
    )
    return StackSpec(
        runs=runs,
        network=question.network,
        size=question.size(int(summary["units"])),
        weight_seed=derived_seed(audit_id, "weights", str(plan.seed)),
        batch_seed=derived_seed(audit_id, "batches", str(plan.seed)),
        kernel=plan.kernel,
        threads=plan.threads,
        optimizer=question.optimizer,
    )


def parameter_count(question: Question, summary: Mapping[str, Any]) -> int:
    """Weights and biases of one network."""
    classes = int(summary["classes"])
    widths = [int(summary["features"]), *question.network.hidden, 1 if classes == 2 else classes]
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


@dataclass(frozen=True)
class Forecast:
    """What an audit will take, before it starts. ``seconds`` is an estimate, said to be one.

    ``detectable`` gives per group the smallest cost of accuracy that would be seen (``audits.power.Detectable``).
    """

    runs: int
    stacks: int
    steps: int
    seconds: float
    memory_bytes: int
    detectable: tuple[Detectable, ...] = ()


def forecast(
    question: Question,
    plans: Sequence[StackPlan],
    summary: Mapping[str, Any],
    groups: Sequence[GroupFacts],
    seconds_per_run_step: float,
) -> Forecast:
    """Runs, steps, seconds, memory, and the smallest cost that each group would show. Estimates, and said to be.

    ``seconds_per_run_step`` holds for 100 columns, one hidden layer of 64 and a batch of 256; time grows with parameters x
    batch and never falls under a quarter of it. Stacks are counted one after another. Finding the noise takes about three
    seconds an epsilon the first time.
    """
    runs = sum(len(plan.runs) for plan in plans)
    parameters, batch = parameter_count(question, summary), question.size(int(summary["units"])).expected_batch_size
    share = max(parameters * batch / (_REFERENCE_PARAMETERS * _REFERENCE_BATCH), _SMALLEST_SHARE)
    run_steps = sum(len(plan.runs) * plan.steps for plan in plans)
    seconds = run_steps * seconds_per_run_step * share + len(plans) * _START_SECONDS
    seconds += len(question.methods) * len(question.epsilons) * _CALIBRATION_SECONDS
    seen = tuple(detectable(group, question.seeds) for group in groups)
    steps = sum(plan.steps for plan in plans)
    return Forecast(runs, len(plans), steps, seconds, _memory(question, plans, summary, parameters, batch), seen)


def _memory(
    question: Question, plans: Sequence[StackPlan], summary: Mapping[str, Any], parameters: int, batch: float
) -> int:
    """Of one training process: libraries, the table as numbers, weights with noise, a batch's activations, logits."""
    rows = sum(int(summary[part]) for part in ("train", "validation", "test"))
    runs = max(len(plan.runs) for plan in plans)
    wide = int(summary["features"]) + 3 * runs * (sum(question.network.hidden) + int(summary["classes"]))
    evaluated = int(summary["validation"]) + int(summary["test"])
    numbers = rows * (int(summary["features"]) + 8) + 4 * runs * parameters + 1.5 * batch * wide
    numbers += evaluated * runs * int(summary["classes"])
    return _BASE_MEMORY + 4 * math.ceil(numbers)
