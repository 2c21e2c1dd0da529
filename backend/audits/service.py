"""Audits: forecast, start, show, stop, resume, erase, and their numbers. Plain arguments in, plain dictionaries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from backend.audits import planning, queries, rows, states
from backend.audits.planning import Planned
from backend.chain import record
from backend.database import ask
from backend.datasets.service import ready_recipe
from backend.errors import Conflict, InputProblem
from backend.once import fingerprint, first_with
from backend.paging import page
from backend.people.service import Principal, fetch_owned, require
from backend.plain import clean_name, refuse_strange, title_problem
from backend.queue import PLAN_AUDIT
from backend.settings import Settings
from backend.storage import Storage
from backend.tables import Audit, Dataset, Recipe, Run, Stack, random_id
from worker.engine.audits.plan import Question, StackPlan
from worker.engine.catalogue import METHODS, METRICS
from worker.engine.facts.costs import INTERVALS, Interval
from worker.engine.metrics.base import Metric
from worker.engine.results import PRIMARY, AuditFacts

ROUTE = "POST /api/v1/audits"


def forecast(session: Session, settings: Settings, principal: Principal, body: Mapping[str, Any]) -> dict[str, Any]:
    """Runs, stacks, seconds, memory and smallest detectable costs of a question; nothing is stored.

    Raises:
        InputProblem: every field at fault.
        Conflict: the dataset's groups are not counted yet.
    """
    require(principal, "read")
    refuse_strange(body)
    recipe = ready_recipe(session, principal, body.get("dataset"))
    return planning.plan_audit(session, settings, recipe, body).forecast


def start(
    session: Session,
    settings: Settings,
    principal: Principal,
    body: Mapping[str, Any],
    *,
    idempotency_key: str | None = None,
) -> dict[str, Any]:
    """Stores the audit with its stacks and runs, and asks for its plan. Everything is checked before.

    Raises:
        InputProblem: every field at fault, or an idempotency key that was used with another body.
        Conflict: the dataset's groups are not counted yet.
    """
    require(principal, "run")
    refuse_strange(body)
    audit_id = random_id()
    first = first_with(session, principal, idempotency_key, ROUTE, fingerprint(body), audit_id)
    if first != audit_id:
        return get_audit(session, principal, first)
    recipe = ready_recipe(session, principal, body.get("dataset"))
    planned = planning.plan_audit(session, settings, recipe, body)
    audit = _audit(principal, recipe, audit_id, _name(body), planned)
    session.add(audit)
    session.flush()
    _add_stacks(session, audit, planned.stacks)
    session.refresh(audit)
    ask(session, PLAN_AUDIT, audit.id)
    record(session, principal, "audit.started", "audit", audit.id)
    return get_audit(session, principal, audit.id)


def _name(body: Mapping[str, Any]) -> str:
    name = body.get("name")
    if name is not None and not isinstance(name, str):
        raise InputProblem.at("name", "A name is text.")
    problem = title_problem(name or "")
    if problem is not None:
        raise InputProblem.at("name", problem)
    return clean_name(name or "", otherwise="")


def _made_name(question: Question) -> str:
    epsilons, seeds = len(question.epsilons), question.seeds
    many = f"{epsilons} epsilon{'s' * (epsilons != 1)}, {seeds} seed{'s' * (seeds != 1)}"
    return f"{', '.join([*question.methods, *question.references])}: {many}"


def _audit(principal: Principal, recipe: Recipe, audit_id: str, name: str, planned: Planned) -> Audit:
    question = planned.question
    return Audit(
        id=audit_id,
        team_id=recipe.team_id,
        dataset_id=recipe.dataset_id,
        recipe_id=recipe.id,
        created_by=principal.person_id,
        name=name or _made_name(question),
        question=question.to_json(),
        delta=question.delta,
        forecast=planned.forecast,
        asked_at=datetime.now(UTC),
    )


def _add_stacks(session: Session, audit: Audit, plans: Sequence[StackPlan]) -> None:
    for plan in plans:
        stack = Stack(
            id=random_id(),
            team_id=audit.team_id,
            audit_id=audit.id,
            number=plan.number,
            seed=plan.seed,
            kernel=plan.kernel,
            threads=plan.threads,
            steps=plan.steps,
        )
        session.add(stack)
        session.flush()
        session.add_all(
            Run(
                team_id=audit.team_id,
                audit_id=audit.id,
                stack_id=stack.id,
                position=run.position,
                method=run.method,
                seed=run.seed,
                epsilon_asked=run.epsilon,
                parameters=dict(run.parameters),
            )
            for run in plan.runs
        )
    session.flush()


def list_audits(
    session: Session,
    principal: Principal,
    *,
    limit: int = 50,
    cursor: str | None = None,
    state: str | None = None,
    dataset: str | None = None,
) -> dict[str, Any]:
    """A page of audits, newest first; erased ones only with ``state='erased'``."""
    require(principal, "read")
    if state is not None and state not in states.STATES:
        raise InputProblem.at("state", f"There is no such state. There are: {', '.join(states.STATES)}.")

    def lines(found: Sequence[Audit]) -> list[dict[str, Any]]:
        counts = queries.counts(session, [audit.id for audit in found])
        return [_line(audit, counts[audit.id]) for audit in found]

    return page(session, queries.audits_of(principal, state, dataset), Audit, limit, cursor, lines)


def get_audit(session: Session, principal: Principal, audit_id: str) -> dict[str, Any]:
    """One audit in full."""
    require(principal, "read")
    return _full(session, fetch_owned(session, principal, Audit, audit_id))


def _line(audit: Audit, counts: queries.Counts) -> dict[str, Any]:
    states_shown = ("finished", "failed", "diverged", "waiting", "training", "stopped")
    runs = {"total": sum(counts.runs.values())} | {state: counts.runs.get(state, 0) for state in states_shown}
    same = ("id", "name", "state", "stop_requested", "created_at", "started_at", "finished_at")
    return {name: getattr(audit, name) for name in same} | {
        "dataset": audit.dataset_id,
        "question": audit.question,
        "runs": runs,
        "steps_done": counts.steps_done,
        "steps_total": counts.steps_total,
    }


def _full(session: Session, audit: Audit) -> dict[str, Any]:
    same = ("delta", "forecast", "claim", "problem")
    line = _line(audit, queries.counts(session, [audit.id])[audit.id])
    more = {"recipe": audit.recipe_id, "receipt": states.receipt(session, audit)}
    return line | {name: getattr(audit, name) for name in same} | more


def stop(session: Session, principal: Principal, audit_id: str) -> dict[str, Any]:
    """Asks an audit to stop; what has finished stays."""
    require(principal, "run")
    audit = fetch_owned(session, principal, Audit, audit_id, lock=True)
    states.stop(session, audit)
    record(session, principal, "audit.stopped", "audit", audit.id)
    return _full(session, audit)


def resume(session: Session, principal: Principal, audit_id: str) -> dict[str, Any]:
    """Lets a stopped or failed audit go on."""
    require(principal, "run")
    audit = fetch_owned(session, principal, Audit, audit_id, lock=True)
    states.resume(session, audit, fetch_owned(session, principal, Dataset, audit.dataset_id))
    session.flush()
    record(session, principal, "audit.resumed", "audit", audit.id)
    return _full(session, audit)


def erase(session: Session, storage: Storage, principal: Principal, audit_id: str) -> dict[str, Any]:
    """Removes every number of an audit and answers with the receipt; twice does no harm."""
    require(principal, "run", "admin")
    audit = fetch_owned(session, principal, Audit, audit_id, lock=True)
    if audit.state != "erased":
        record(session, principal, "audit.erased", "audit", audit.id)
    return states.erase(session, storage, audit, principal.person_id)


def audit_facts(
    session: Session, settings: Settings, principal: Principal, audit_id: str, metrics: Sequence[str] = (PRIMARY,)
) -> AuditFacts:
    """All that the numbers of an audit are made from; charts and tables start here.

    Args:
        metrics: keys of the metrics that will be asked for; measurements of others are not read.
    """
    audit = with_numbers(session, principal, audit_id)
    recipe = session.get_one(Recipe, audit.recipe_id)
    return rows.facts(session, settings, audit, recipe, metrics)


def with_numbers(session: Session, principal: Principal, audit_id: str) -> Audit:
    """An audit whose numbers one may see, and which still has them."""
    require(principal, "read")
    audit = fetch_owned(session, principal, Audit, audit_id)
    if audit.state == "erased":
        raise Conflict("The audit was erased. Its numbers are gone. The receipt stands at the audit itself.")
    return audit


def costs(
    session: Session,
    settings: Settings,
    principal: Principal,
    audit_id: str,
    *,
    metric: str = "accuracy",
    interval: str = "both",
) -> dict[str, Any]:
    """``{rows, headline, metric, interval}``: the privacy cost of each group.

    Raises:
        InputProblem: an unknown metric or interval.
    """
    chosen, kind = find_metric(metric), find_interval(interval)
    facts = audit_facts(session, settings, principal, audit_id, (chosen.key,))
    return rows.cost_table(facts, chosen, kind, {method.key: method.title for method in METHODS})


def find_metric(key: str) -> Metric:
    """The metric with this key, or an error at the field."""
    found = next((metric for metric in METRICS if metric.key == key), None)
    if found is None:
        raise InputProblem.at("metric", f"There is no such metric. There are: {', '.join(m.key for m in METRICS)}.")
    return found


def find_interval(kind: str) -> Interval:
    """The kind of interval, or an error at the field."""
    found = next((known for known in INTERVALS if known == kind), None)
    if found is None:
        raise InputProblem.at("interval", f"An interval is one of {', '.join(INTERVALS)}.")
    return found


def runs(session: Session, principal: Principal, audit_id: str) -> dict[str, Any]:
    """``{rows}``: every run with what was asked, spent and done."""
    require(principal, "read")
    return {"rows": rows.run_rows(session, fetch_owned(session, principal, Audit, audit_id))}


def statistics(session: Session, settings: Settings, principal: Principal, audit_id: str) -> dict[str, Any]:
    """``{rows}``: the stored sufficient statistics."""
    return {"rows": rows.statistic_rows(session, settings, with_numbers(session, principal, audit_id))}


def queue_state(session: Session, principal: Principal) -> dict[str, Any]:
    """``{rows}``: what waits and how long."""
    require(principal, "read")
    now = datetime.now(UTC)
    return {
        "rows": [
            {
                "job": line.job,
                "queue": line.queue,
                "waiting": line.waiting,
                "working": line.working,
                "longest_wait_seconds": max((now - line.since).total_seconds(), 0.0) if line.since else None,
            }
            for line in queries.queue_lines(session)
        ]
    }
