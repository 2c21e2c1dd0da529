"""What an audit claims about privacy, field by field, as far as it is known (design: CLAIM.md items 1-22)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from worker.engine.audits.question import Question, default_delta
from worker.engine.results import PrivacyEvent

_CHOSEN_BY_LOOKING = (
    "Points are compared by looking at this audit, and that choice was not paid for. It has no epsilon of its own."
)

_NO_CLAIM = "These claim no privacy, with noise or without: no epsilon covers them."
_NOT_COVERED = (
    "every number per group, every baseline and everything computed on the evaluation rows: audit-only",
    "the runs of this audit: their noise is seeded, so that the audit can be repeated; none may be released",
    "the labels and protected values of the evaluation rows, which are used in clear",
)


def published_events(events_by_run: Sequence[Sequence[PrivacyEvent]], seeds: int) -> tuple[PrivacyEvent, ...]:
    """What publishing all private runs of an audit spends: their noise together, step by step, over all seeds.

    The runs of one seed share their Poisson batches, so a step of all of them is one release on that batch with
    sigma_eff = (sum of sigma^-2)^(-1/2); seeds draw their own batches and compose.

    Args:
        events_by_run: the events of each private run of *one* seed (the same in every seed).
        seeds: how many seeds there are.

    Returns no event if there is no private run. Raises ValueError if runs of a seed differ in batches or steps.
    """
    events = [event for run in events_by_run for event in run]
    if not events:
        return ()
    probability, steps, adjacency = events[0].sampling_probability, events[0].steps, events[0].adjacency
    if any((e.sampling_probability, e.steps, e.adjacency) != (probability, steps, adjacency) for e in events):
        raise ValueError("The runs of one seed do not share their batches, so they are not one release a step.")
    together = 1.0 / math.sqrt(math.fsum(float(event.noise_multiplier) ** -2 for event in events))
    return (PrivacyEvent(together, probability, steps * seeds, adjacency),)


def claim(
    question: Question,
    summary: Mapping[str, Any],
    points: Sequence[Mapping[str, Any]] = (),
    all_runs_epsilon: float | None = None,
    group_methods: Sequence[str] = (),
    choice_epsilon: float | None = None,
) -> dict[str, Any]:
    """The claim as JSON. Undefined figures are None beside a ``reason``.

    Args:
        points: one a method and epsilon: ``method``, ``epsilon_asked``, ``epsilon_spent``, ``noise_multiplier``,
            ``events`` and ``check``; empty before the noise is found.
        all_runs_epsilon: epsilon of ``published_events``, by the accountant.
        group_methods: methods that look at training groups.
        choice_epsilon: what it would cost to pay for the choice, by the accountant; a forecast, never a claim.
    """
    units, unit = int(summary["units"]), str(summary["unit"])
    return {
        "sentence": _sentence(question, unit),
        "setting": "central: whoever runs this service sees the rows",
        "variant": "approximate differential privacy (epsilon, delta)",
        "adjacency": f"add or remove one {unit}",
        "unit": unit,
        "units": units,
        "delta": question.delta,
        "delta_times_units": question.delta * units,
        "delta_note": _delta_note(question.delta, units),
        "mechanism": _mechanism(question, units),
        "groups_in_training": _groups_in_training(summary, group_methods),
        "references": {
            "methods": list(question.references),
            "note": _NO_CLAIM if question.references else None,
        },
        "accounting": "dp-accounting's PLD counts; Opacus checks. All steps are counted, also of a stopped run.",
        "points": [dict(point) for point in points],
        "epsilons": _three_epsilons(question, points, all_runs_epsilon, choice_epsilon),
        "public_constants": ["number of units", "groups", "cut points", "steps", "batch size"],
        "covered": "the final network of one fresh private run with these settings, fixed beforehand",
        "not_covered": list(_NOT_COVERED),
        "encoding": _encoding(summary),
        "open_items": _open_items(summary),
        "residual_risk": "Gaussian noise in floating point is not exactly differentially private (theoretical).",
    }


def _mechanism(question: Question, units: int) -> dict[str, Any]:
    size = question.size(units)
    return {
        "sampling": "Poisson: each unit by its own coin, each step; a batch is never cut, an empty one takes a noisy step",
        "sampling_probability": size.sampling_probability,
        "steps": size.steps,
        "expected_batch_size": size.expected_batch_size,
        "epochs": size.epochs,
        "optimizer": question.optimizer,
        "activation": question.network.activation,
        "parameters": {method: dict(question.parameters[method]) for method in question.methods},
        "joint": "all that a step releases on one batch is one event; each event lists its releases",
    }


def _groups_in_training(summary: Mapping[str, Any], group_methods: Sequence[str]) -> dict[str, Any] | None:
    """Who looks at a protected attribute while training; None if nobody does."""
    if not group_methods:
        return None
    groups = summary.get("training_groups") or {}
    return {"methods": list(group_methods), "column": groups.get("column"), "count": groups.get("count")}


def _sentence(question: Question, unit: str) -> str:
    who = "one person, with all their rows," if unit == "person" else "one row of the training part"
    span = f"{question.epsilons[0]:g}"
    span += f" to {question.epsilons[-1]:g}" if len(question.epsilons) > 1 else ""
    return (
        f"Adding or removing {who} changes what can be inferred from one released private network by at most epsilon "
        f"({span}, as chosen) with delta {question.delta:g}; this holds against anyone who sees the network."
    )


def _delta_note(delta: float, units: int) -> str | None:
    if delta <= default_delta(units) * (1 + 1e-9):
        return None
    return f"Delta is above the default {default_delta(units):g}, the largest power of ten not above 1 / (10 n)."


def _three_epsilons(
    question: Question,
    points: Sequence[Mapping[str, Any]],
    all_runs_epsilon: float | None,
    choice_epsilon: float | None,
) -> dict[str, Any]:
    one_run = [
        {"method": point["method"], "asked": point["epsilon_asked"], "spent": point["epsilon_spent"]}
        for point in points
    ]
    options = len(question.methods) * len(question.epsilons)
    return {
        "one_run": {"what": "one fresh run with settings fixed beforehand", "values": one_run},
        "choice_paid": {
            "what": "with the choice of settings paid for",
            "value": None,
            "reason": _CHOSEN_BY_LOOKING,
            "options_looked_at": options,
            "forecast": choice_epsilon,
            "forecast_what": (
                "had the number of tries been drawn at random beforehand, as many as options on average, each with batches "
                "and noise of its own, scored on rows outside training, whose people would not be covered"
            ),
        },
        "all_runs": {
            "what": "all runs of this audit published",
            "value": all_runs_epsilon,
            "reason": None if all_runs_epsilon is not None else "not computed yet",
            "runs": options * question.seeds,
        },
    }


def _encoding(summary: Mapping[str, Any]) -> dict[str, list[str]]:
    """Whose bounds and category lists are public by declaration, and whose were read from the data (CLAIM.md item 10)."""
    bounds = summary.get("bounds", {})
    return {key: list(bounds.get(key, [])) for key in ("public", "read_from_data")}


def _open_items(summary: Mapping[str, Any]) -> list[str]:
    read = summary.get("bounds", {}).get("read_from_data")
    items = ["bounds read from the data, not accounted for"] if read or read is None else []
    if summary["unit"] == "row":
        items.append("row level only: if a person has several rows, no claim per person is made")
    return items
