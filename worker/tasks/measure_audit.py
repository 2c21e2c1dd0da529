"""Job ``audit.measure``: from the stored logits of the finished stacks, the numbers that counts cannot give."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from backend.progress.queries import record_event
from backend.queue import MEASURE_AUDIT
from backend.tables import Audit, Dataset, Group, Measurement, Run, Stack
from worker.tasks import claims, data, outcome
from worker.tasks.claims import Claim
from worker.tasks.context import Context
from worker.tasks.job import Job, heartbeat, perform
from worker.tasks.patience import patiently

if TYPE_CHECKING:
    from worker.engine.results import MeasurementRow


def run(context: Context, audit_id: str) -> None:
    """Measure what has finished since the last time, and end the audit if that was all."""
    perform(context, JOB, audit_id)


def _work(context: Context, held: Claim) -> None:
    with heartbeat(context, held).beating() as beat:
        with context.database.transaction() as session:
            audit = session.get_one(Audit, held.id)
            finished = _finished(session, audit.id)
        rows: list[MeasurementRow] | None = None
        if len(finished) > audit.measured_stacks:
            rows = _measure(context, audit, finished)
        beat.check()
        patiently(lambda: _save(context, held, rows, len(finished)))


def _finished(session: Session, audit_id: str) -> list[Stack]:
    found = select(Stack).where(Stack.audit_id == audit_id, Stack.state == "finished").order_by(Stack.number)
    return list(session.scalars(found))


def _measure(context: Context, audit: Audit, finished: list[Stack]) -> list[MeasurementRow]:
    from worker.engine.audits import logits
    from worker.engine.audits.measure import measure

    with context.database.transaction() as session:
        key = session.scalar(select(Dataset.file_key).where(Dataset.id == audit.dataset_id))
        runs = session.scalars(select(Run).where(Run.stack_id.in_([stack.id for stack in finished]))).all()
    rows = data.load_data(context, audit.recipe_id)
    by_seed = {stack.seed: logits.from_bytes(context.storage.read(stack.logits_key or "", key)) for stack in finished}
    known = {one.id: (one.method, one.epsilon_asked, one.seed) for one in runs if one.state == "finished"}
    return list(measure(by_seed, known, rows))


def _save(context: Context, held: Claim, rows: list[MeasurementRow] | None, stacks: int) -> None:
    """Replace all measurements of the audit, tell of it, and end the audit if nothing else is left to do."""
    with context.database.transaction() as session:
        audit = outcome.lock_audit(session, held.id)
        claims.hold(session, held)
        if rows is not None:
            session.execute(delete(Measurement).where(Measurement.audit_id == audit.id))
            _insert(session, audit, rows)
            audit.measured_stacks = stacks
            record_event(session, audit, "audit.measured", {"stacks": stacks})
        session.flush()
        outcome.settle_audit(session, audit)
        if outcome.count_stacks(session, audit.id).get("finished", 0) > audit.measured_stacks:
            outcome.ask_to_measure(session, audit)  # one more finished while this ran
        claims.release(session, held)
    if audit.state not in outcome.ACTIVE:
        data.forget_data()


def _insert(session: Session, audit: Audit, rows: list[MeasurementRow]) -> None:
    ids = dict(session.execute(select(Group.key, Group.id).where(Group.recipe_id == audit.recipe_id)).all())
    values = []
    for row in rows:
        value = asdict(row)
        value |= {
            "group_id": ids[value.pop("group")],
            "epsilon_asked": value.pop("epsilon"),
            "seeds": list(row.seeds),
            "team_id": audit.team_id,
            "audit_id": audit.id,
        }
        values.append(value)
    if values:
        session.execute(insert(Measurement), values)


JOB = Job(
    name=MEASURE_AUDIT,
    table=Audit,
    states=outcome.ACTIVE,
    doing="measuring this audit",
    work=_work,
    give_up=outcome.fail_audit,
)
