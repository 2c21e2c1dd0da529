"""From the body of a request to a checked question, its stacks and its forecast. Nothing is stored here."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from backend.audits import queries
from backend.audits.rows import group_facts
from backend.errors import InputProblem
from backend.settings import Settings
from backend.tables import Recipe
from worker.engine.audits import plan
from worker.engine.audits.plan import Forecast, Question, StackPlan
from worker.engine.catalogue import METHODS, NETWORKS

KERNEL_OF_DEVICE = {"cpu": "eager-cpu", "cuda": "eager-cuda"}


@dataclass(frozen=True)
class Planned:
    """A question with all that follows from it before any noise is found."""

    question: Question
    stacks: tuple[StackPlan, ...]
    forecast: dict[str, Any]


def plan_audit(session: Session, settings: Settings, recipe: Recipe, body: Mapping[str, Any]) -> Planned:
    """Checks the question and lays out its runs.

    Raises:
        InputProblem: every field at fault.
    """
    summary = recipe.summary or {}
    question, errors = plan.check_question(
        body, summary=summary, methods=METHODS, networks=NETWORKS, run_limit=settings.run_limit
    )
    if question is None:
        raise InputProblem.of(errors)
    kernel = KERNEL_OF_DEVICE[settings.train_device]
    stacks = plan.plan_stacks(question, summary, kernel, settings.train_threads)
    groups = group_facts(session, recipe)
    pace = seconds_per_run_step(session, settings, kernel)
    return Planned(question, stacks, forecast_json(plan.forecast(question, stacks, summary, groups, pace)))


def forecast_json(found: Forecast) -> dict[str, Any]:
    """As stored and shown; an estimate, and said to be one."""
    return {
        "runs": found.runs,
        "stacks": found.stacks,
        "steps": found.steps,
        "seconds": found.seconds,
        "memory_bytes": found.memory_bytes,
        "detectable": [
            {
                "group": one.group,
                "smallest_detectable_cost": one.cost,
                "units": one.units,
                "units_to_halve": one.units_to_halve,
                "seeds_to_halve": one.seeds_to_halve,
                "with_endless_seeds": one.with_endless_seeds,
                "reason": one.reason,
            }
            for one in found.detectable
        ],
    }


def seconds_per_run_step(session: Session, settings: Settings, kernel: str) -> float:
    """The pace of the stacks that finished last (median), at the size that forecasts start from; else the setting."""
    finished = queries.recently_finished(session, kernel)
    summaries = queries.summaries(session, {stack.recipe_id for stack in finished})
    work: dict[str, float] = {}
    for stack in finished:
        if stack.audit_id not in work and stack.recipe_id in summaries:
            work[stack.audit_id] = _work(stack.question, summaries[stack.recipe_id], kernel)
    paces = [stack.seconds / work[stack.audit_id] for stack in finished if work.get(stack.audit_id)]
    return statistics.median(paces) if paces else settings.seconds_per_run_step


def _work(stored: Mapping[str, Any], summary: Mapping[str, Any], kernel: str) -> float:
    """Steps x runs of one stack, weighted by size as forecasts weigh them: what a pace of 1 second adds."""
    question = Question.from_json(stored)
    one: Sequence[StackPlan] = plan.plan_stacks(question, summary, kernel, 1)[:1]
    with_pace, without = (plan.forecast(question, one, summary, (), pace).seconds for pace in (1.0, 0.0))
    return with_pace - without
