"""Gaps, disparities, marks, the trade-off and the sums behind them: the numbers of an audit beside its costs."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy.orm import Session

from backend.audits import rows, service
from backend.audits.rows import row_of
from backend.errors import InputProblem
from backend.people.service import Principal
from backend.settings import Settings
from worker.engine.catalogue import METHODS, METRICS
from worker.engine.facts.costs import cost_rows
from worker.engine.facts.disparities import BEST, disparity_rows
from worker.engine.facts.gaps import ODDS, ODDS_METRICS, equalized_odds, gap_rows
from worker.engine.facts.marks import mark_rows
from worker.engine.facts.rows import GapRow
from worker.engine.facts.tradeoff import tradeoff
from worker.engine.metrics.base import Metric
from worker.engine.results import AuditFacts

LARGEST_COST = {"points": 100.0, "nats": 50.0}


def gaps(
    session: Session, settings: Settings, principal: Principal, audit_id: str, *, metric: str = "accuracy"
) -> dict[str, Any]:
    """``{rows, metric, title}``: the spread over groups, and how much of it privacy added.

    Raises:
        InputProblem: an unknown metric.
    """
    chosen = gap_metrics(metric)
    facts = service.audit_facts(session, settings, principal, audit_id, [one.key for one in chosen])
    found = gaps_of(facts, chosen)
    return {"rows": [row_of(row) for row in found], "metric": metric, "title": gap_title(chosen)}


def gap_metrics(key: str) -> tuple[Metric, ...]:
    """The metrics that a gap is made of: one, or the two of equalized odds."""
    if key == ODDS:
        return tuple(metric for wanted in ODDS_METRICS for metric in METRICS if metric.key == wanted)
    known = [metric for metric in METRICS if metric.key == key]
    if not known:
        keys = ", ".join([*(metric.key for metric in METRICS), ODDS])
        raise InputProblem.at("metric", f"There is no such metric. There are: {keys}.")
    return tuple(known)


def gaps_of(facts: AuditFacts, metrics: tuple[Metric, ...]) -> list[GapRow]:
    """The gaps of one metric, or the larger of two."""
    if len(metrics) == 1:
        return gap_rows(facts, metrics[0])
    return equalized_odds(gap_rows(facts, metrics[0]), gap_rows(facts, metrics[1]))


def gap_title(metrics: tuple[Metric, ...]) -> str:
    """What the gap is called."""
    return metrics[0].gap_title if len(metrics) == 1 else "Equalized odds difference"


def disparities(
    session: Session,
    settings: Settings,
    principal: Principal,
    audit_id: str,
    *,
    metric: str = "accuracy",
    reference: str = BEST,
) -> dict[str, Any]:
    """``{rows, metric, reference}``: each group against a reference group, or the best one.

    Raises:
        InputProblem: an unknown metric, or a reference that is no group.
    """
    chosen = service.find_metric(metric)
    facts = service.audit_facts(session, settings, principal, audit_id, (chosen.key,))
    if reference != BEST and reference not in {group.key for group in facts.groups}:
        raise InputProblem.at("reference", "There is no such group. Give the key of a group, or best.")
    found = disparity_rows(cost_rows(facts, chosen), chosen, reference)
    return {"rows": [row_of(row) for row in found], "metric": chosen.key, "reference": reference}


def marks(session: Session, settings: Settings, principal: Principal, audit_id: str) -> dict[str, Any]:
    """``{rows}``: every group against the rest, adjusted over the planned family."""
    facts = service.audit_facts(session, settings, principal, audit_id)
    return {"rows": [row_of(row) for row in mark_rows(facts)]}


def tradeoffs(
    session: Session,
    settings: Settings,
    principal: Principal,
    audit_id: str,
    *,
    metric: str = "accuracy",
    group_min: int = 200,
    max_cost: float = 3.0,
) -> dict[str, Any]:
    """``{rows, answer, method, epsilon_asked}``: candidates, the Pareto set among them, and the answer in words.

    Args:
        max_cost: percentage points, or nats for the loss.

    Raises:
        InputProblem: an unknown metric, or a limit out of range.
    """
    chosen = service.find_metric(metric)
    problems = [("group_min", "Must be at least 1.")] if group_min < 1 else []
    most = LARGEST_COST[chosen.unit]
    if not math.isfinite(max_cost) or not -most <= max_cost <= most:
        problems.append(("max_cost", f"Must lie between -{most:g} and {most:g} {chosen.unit}."))
    for field, message in problems:
        raise InputProblem.at(field, message)
    facts = service.audit_facts(session, settings, principal, audit_id, (chosen.key,))
    scale = 100.0 if chosen.unit == "points" else 1.0
    titles = {method.key: method.title for method in METHODS}
    found = tradeoff(facts, chosen, titles, group_min=group_min, max_cost=max_cost / scale)
    same = {"metric": chosen.key, "group_min": group_min, "max_cost": max_cost}
    point = {"method": found.method, "epsilon_asked": found.epsilon_asked}
    return {"rows": [row_of(row) for row in found.rows], "answer": found.answer} | point | same


def measurements(session: Session, settings: Settings, principal: Principal, audit_id: str) -> dict[str, Any]:
    """``{rows}``: the sums over rows or persons that intervals are made from."""
    audit = service.with_numbers(session, principal, audit_id)
    return {"rows": rows.measurement_rows(session, settings, audit)}


def values(session: Session, settings: Settings, principal: Principal, audit_id: str) -> dict[str, Any]:
    """``{rows}``: metrics of single runs that counts cannot give."""
    audit = service.with_numbers(session, principal, audit_id)
    return {"rows": rows.value_rows(session, settings, audit)}
