"""Job ``audit.plan``: finds the noise of every private run, has it checked, and lets the stacks begin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from backend.database import Database
from backend.progress.queries import record_event
from backend.queue import PLAN_AUDIT
from backend.tables import Audit, Calibration, Recipe, Run, Stack
from worker.engine.errors import AccountingProblem
from worker.tasks import claims, outcome
from worker.tasks.claims import Claim, Heartbeat
from worker.tasks.context import Context
from worker.tasks.job import Job, heartbeat, perform, problem
from worker.tasks.patience import patiently

if TYPE_CHECKING:
    from worker.engine import results
    from worker.engine.audits.plan import Question
    from worker.engine.methods.base import Calibrate, MethodPlan

NEXT = "Ask for a larger epsilon, fewer epochs or a smaller batch, and start a new audit."


def run(context: Context, audit_id: str) -> None:
    """Plan one audit."""
    perform(context, JOB, audit_id)


def cached(database: Database, calibrate: Calibrate) -> Calibrate:
    """``calibrate`` behind the table of calibrations: each is computed once, and survives whatever happens next.

    A worker that dies loses the calibration it was busy with, no other. Of two that compute the same, both get the
    number that was stored first.
    """

    def find(epsilon: float, delta: float, sampling_probability: float, steps: int) -> results.Calibration:
        asked = {"epsilon": epsilon, "delta": delta, "sampling_probability": sampling_probability, "steps": steps}
        stored = _stored(database, asked)
        if stored is None:
            found = calibrate(epsilon, delta, sampling_probability, steps)
            values = {
                "noise_multiplier": float(found.noise_multiplier),
                "epsilon_spent": float(found.epsilon_spent),
                "accountant_check": dict(found.check),
            }
            with database.transaction() as session:
                session.execute(insert(Calibration).values(**asked, **values).on_conflict_do_nothing())
            stored = _stored(database, asked) or found
        return stored

    return find


def _stored(database: Database, asked: dict[str, float]) -> results.Calibration | None:
    from worker.engine.results import Calibration as Found

    with database.transaction() as session:
        row = session.scalar(select(Calibration).filter_by(**asked))
    return None if row is None else Found(row.noise_multiplier, row.epsilon_spent, row.accountant_check)


@dataclass(frozen=True)
class Planned:
    """Noise of every method and epsilon, and what the audit claims with it."""

    points: dict[tuple[str, float | None], MethodPlan]
    claim: dict[str, Any]


def _work(context: Context, held: Claim) -> None:
    with heartbeat(context, held).beating() as beat:
        try:
            planned = _plan(context, held, beat)
        except AccountingProblem as error:
            why = problem("The privacy claim could not be established.", f"Audit {held.id}: {error}", NEXT)
            patiently(lambda: _save_refusal(context, held, why))
        else:
            beat.check()
            patiently(lambda: _save(context, held, planned))


def _plan(context: Context, held: Claim, beat: Heartbeat) -> Planned:
    from worker.engine.accounting.calibrate import calibrate
    from worker.engine.audits.plan import Question
    from worker.engine.catalogue import METHODS
    from worker.engine.methods.base import Budget

    with context.database.transaction() as session:
        audit = session.get_one(Audit, held.id)
        summary = session.get_one(Recipe, audit.recipe_id).summary or {}
    question = Question.from_json(audit.question)
    size = question.size(int(summary["units"]))
    known = {method.key: method for method in METHODS}
    find = cached(context.database, calibrate)
    points: dict[tuple[str, float | None], MethodPlan] = {}
    for method, epsilon in question.points:
        beat.check()  # an audit that is stopped while it is planned is taken away
        budget = Budget(epsilon, audit.delta)
        points[method, epsilon] = known[method].plan(budget, size, question.parameters[method], find)
    return Planned(points, _claim(question, summary, points))


def _claim(
    question: Question, summary: Mapping[str, Any], points: Mapping[tuple[str, float | None], MethodPlan]
) -> dict[str, Any]:
    """The audit's claim, with the epsilon of publishing all of its runs."""
    from worker.engine.accounting.accountant import epsilon_all_published, epsilon_of_choice
    from worker.engine.audits.plan import claim
    from worker.engine.catalogue import METHODS

    private = {key: plan for key, plan in points.items() if key[1] is not None}
    of_one_seed = [event for plan in private.values() for event in plan.events]
    stated = [
        {
            "method": method,
            "epsilon_asked": epsilon,
            "epsilon_spent": plan.epsilon_spent,
            "noise_multiplier": plan.noise_multiplier,
            "events": [asdict(event) for event in plan.events],
            "check": dict(plan.check),
        }
        for (method, epsilon), plan in private.items()
    ]
    all_runs = epsilon_all_published([of_one_seed] * question.seeds, question.delta) if of_one_seed else None
    looking = [method.key for method in METHODS if method.uses_groups and (method.key in question.parameters)]
    costliest = max(private.values(), key=lambda plan: plan.epsilon_spent or 0.0, default=None)
    choice = epsilon_of_choice(costliest.events, len(private), question.delta) if costliest else None
    paid = choice if choice is not None and math.isfinite(choice) else None
    return claim(question, summary, stated, all_runs, group_methods=looking, choice_epsilon=paid)


def _save(context: Context, held: Claim, planned: Planned) -> None:
    with context.database.transaction() as session:
        audit = outcome.lock_audit(session, held.id)
        claims.hold(session, held)
        if audit.state != "planning":
            raise claims.ClaimLost(held.id)  # stopped or erased meanwhile
        claims.release(session, held)
        stacks = session.scalars(select(Stack).where(Stack.audit_id == audit.id).order_by(Stack.number)).all()
        for run in session.scalars(select(Run).where(Run.audit_id == audit.id)):
            _settle_run(run, planned.points[run.method, run.epsilon_asked])
        audit.claim, audit.state = planned.claim, "queued"
        record_event(session, audit, "audit.planned", {"stacks": len(stacks)})
        for stack in stacks:
            if stack.state == "waiting":
                outcome.ask_for_stack(session, stack)


def _settle_run(run: Run, plan: MethodPlan) -> None:
    run.noise_multiplier, run.epsilon_spent = float(plan.noise_multiplier), plan.epsilon_spent
    run.events = [asdict(event) for event in plan.events]
    run.accountant_check = dict(plan.check) or None


def _save_refusal(context: Context, held: Claim, why: dict[str, Any]) -> None:
    with context.database.transaction() as session:
        audit = outcome.lock_audit(session, held.id)
        claims.hold(session, held)
        outcome.fail_audit(session, audit, why)
        claims.release(session, held)


JOB = Job(
    name=PLAN_AUDIT,
    table=Audit,
    states=("planning",),
    doing="planning this audit",
    work=_work,
    give_up=outcome.fail_audit,
)
