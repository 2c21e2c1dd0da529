"""Job ``stack.train``: trains the runs of one seed together and saves all their results in one transaction."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from backend.progress.queries import record_event
from backend.queue import TRAIN_STACK
from backend.tables import Audit, Dataset, Group, Recipe, Run, Stack, Statistic
from worker.engine.errors import Stopped
from worker.recorder import Recorder
from worker.tasks import claims, data, outcome
from worker.tasks.claims import Claim
from worker.tasks.context import Context
from worker.tasks.job import Job, perform
from worker.tasks.patience import patiently

if TYPE_CHECKING:
    from worker.engine.results import RunResult, StackResult, StackSpec

logger = logging.getLogger("counterpoise.train")


def run(context: Context, stack_id: str) -> None:
    """Train one stack, if it is planned and this worker can run its kernel."""
    with context.database.transaction() as session:
        found = session.execute(select(Stack.kernel, Audit.state).join(Audit).where(Stack.id == stack_id)).one_or_none()
    if found is None or found.state == "planning":
        return  # erased, or a message from before a resume; another comes when the plan is made
    if not can_run(found.kernel):
        logger.warning("%s %s: not for this worker (kernel %s).", TRAIN_STACK, stack_id, found.kernel)
        return
    perform(context, JOB, stack_id)


def can_run(kernel: str) -> bool:
    """Whether this worker has the kernel. CUDA is looked for only when a stack wants it."""
    if kernel == outcome.CUDA_KERNEL:
        import torch

        return torch.cuda.is_available()
    return kernel == "eager-cpu"


def _work(context: Context, held: Claim) -> None:
    plan = _begin(context, held)
    if plan is None:
        return
    stack, recipe_id, spec = plan
    recorder = Recorder(context, held, stack.audit_id, stack.number, stack.steps)
    with recorder.heartbeat.beating():
        try:
            result = _train(context, recipe_id, spec, recorder)
        except Stopped:
            patiently(lambda: _save_stopped(context, held))
        except data.SourceErased:
            patiently(lambda: _save_erased(context, held))
        else:
            _save_all(context, held, result)


def _begin(context: Context, held: Claim) -> tuple[Stack, str, StackSpec] | None:
    """Mark stack, runs and audit as training, and name the file the logits will go to; None if there is no need."""
    with context.database.transaction() as session:
        audit, stack = _lock(session, held)
        if audit.state == "planning":
            claims.hand_back(session, held)
            return None
        if audit.stop_requested or audit.state not in outcome.ACTIVE:
            _stop(session, held, audit, stack)
            return None
        forgotten, stack.logits_key = stack.logits_key, f"audits/{audit.id}/{stack.id}-{secrets.token_hex(6)}.logits"
        stack.state, stack.step, stack.reason = "training", 0, None
        session.execute(update(Run).where(Run.stack_id == stack.id).values(state="training", reason=None))
        if audit.state == "queued":
            audit.state = "running"
        audit.started_at = audit.started_at or session.scalar(select(func.now()))
        runs = session.scalars(select(Run).where(Run.stack_id == stack.id).order_by(Run.position)).all()
        spec = _spec(audit, stack, runs, session.get_one(Recipe, audit.recipe_id).summary or {})
    if forgotten is not None:
        context.storage.delete(forgotten)  # of an attempt that died between writing and saving
    return stack, audit.recipe_id, spec


def _spec(audit: Audit, stack: Stack, runs: Sequence[Run], summary: Mapping[str, Any]) -> StackSpec:
    """What the engine is told, from the rows as they were stored when the audit was planned."""
    from worker.engine.audits.plan import Question, RunPlan, StackPlan, stack_spec

    planned = tuple(RunPlan(one.position, one.method, one.epsilon_asked, one.seed, one.parameters) for one in runs)
    plan = StackPlan(stack.number, stack.seed, stack.steps, planned, stack.kernel, stack.threads)
    noise = [float(one.noise_multiplier or 0.0) for one in runs]
    return stack_spec(Question.from_json(audit.question), audit.id, plan, summary, [one.id for one in runs], noise)


def _lock(session: Session, held: Claim) -> tuple[Audit, Stack]:
    """Audit first, then stack: the order everywhere."""
    audit_id = session.scalar(select(Stack.audit_id).where(Stack.id == held.id))
    audit = outcome.lock_audit(session, audit_id or "")
    claims.hold(session, held)
    return audit, session.get_one(Stack, held.id, populate_existing=True)


def _train(context: Context, recipe_id: str, spec: StackSpec, recorder: Recorder) -> StackResult:
    rows = data.load_data(context, recipe_id)
    from worker.engine.audits.execute import execute_stack
    from worker.engine.catalogue import METHODS, NETWORKS

    device = "cuda" if spec.kernel == outcome.CUDA_KERNEL else "cpu"
    return execute_stack(spec, rows, METHODS, NETWORKS, recorder, device=device)


def _save_all(context: Context, held: Claim, result: StackResult) -> None:
    """First the file, under a name that no other attempt uses; then everything else in one transaction."""
    from worker.engine.audits import logits

    key, file_key = patiently(lambda: _logits_place(context, held))
    try:
        context.storage.write(key, logits.to_bytes(result, [one.run for one in result.runs]), file_key)
        patiently(lambda: _save(context, held, result))
    except BaseException:
        context.storage.delete(key)
        raise


def _logits_place(context: Context, held: Claim) -> tuple[str, bytes]:
    with context.database.transaction() as session:
        claims.hold(session, held)
        stack = session.get_one(Stack, held.id)
        audit = session.get_one(Audit, stack.audit_id)
        file_key = session.scalar(select(Dataset.file_key).where(Dataset.id == audit.dataset_id))
    if file_key is None or stack.logits_key is None:
        raise claims.ClaimLost(held.id)  # erased meanwhile
    return stack.logits_key, file_key


def _save(context: Context, held: Claim, result: StackResult) -> None:
    with context.database.transaction() as session:
        audit, stack = _lock(session, held)
        if audit.state == "erased":
            raise claims.ClaimLost(held.id)
        groups = dict(session.execute(select(Group.key, Group.id).where(Group.recipe_id == audit.recipe_id)).all())
        for one in result.runs:
            _save_run(session, audit, one, groups)
        stack.state, stack.step, stack.seconds = "finished", result.steps, result.seconds
        diverged = sum(one.state == "diverged" for one in result.runs)
        payload = {"stack": stack.number, "seed": stack.seed, "runs": len(result.runs), "diverged": diverged}
        record_event(session, audit, "stack.finished", payload | {"seconds": result.seconds})
        claims.settle(session, held)
        _ended(session, audit)


def _save_run(session: Session, audit: Audit, result: RunResult, groups: dict[str, str]) -> None:
    session.execute(update(Run).where(Run.id == result.run).values(state=result.state, reason=result.reason))
    marks = {"team_id": audit.team_id, "audit_id": audit.id, "run_id": result.run}
    rows = []
    for row in result.statistics:
        values = asdict(row)
        values |= {"group_id": groups[values.pop("group")], "predicted": list(row.predicted)}
        rows.append(marks | values)
    if rows:
        session.execute(insert(Statistic), rows)


def _save_stopped(context: Context, held: Claim) -> None:
    with context.database.transaction() as session:
        _stop(session, held, *_lock(session, held))


def _stop(session: Session, held: Claim, audit: Audit, stack: Stack) -> None:
    outcome.end_stack(session, stack, "stopped", outcome.STOPPED)
    claims.release(session, held)
    _ended(session, audit)


def _save_erased(context: Context, held: Claim) -> None:
    with context.database.transaction() as session:
        audit, stack = _lock(session, held)
        outcome.end_stack(session, stack, "failed", "The dataset was erased.")
        claims.release(session, held)
        _ended(session, audit)


def _give_up(session: Session, stack: Stack, why: dict[str, str]) -> None:
    audit = session.get_one(Audit, stack.audit_id)
    outcome.end_stack(session, stack, "failed", why["happened"])
    if audit.state in outcome.ACTIVE and audit.problem is None:
        audit.problem = why
    _ended(session, audit)


def _ended(session: Session, audit: Audit) -> None:
    """A stack of this audit has ended, one way or another: measure, or end the audit."""
    session.flush()
    counts = outcome.count_stacks(session, audit.id)
    if audit.state in outcome.ACTIVE:
        outcome.ask_to_measure(session, audit)
    if not counts.get("waiting") and not counts.get("training"):
        data.forget_data()


JOB = Job(
    name=TRAIN_STACK,
    table=Stack,
    states=("waiting", "training"),
    doing="training this stack",
    work=_work,
    give_up=_give_up,
)
