"""Job ``audit.measure``: from the stored logits of the finished stacks, the numbers that counts cannot give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from backend.progress.queries import record_event
from backend.queue import MEASURE_AUDIT
from backend.tables import Audit, Dataset, GapFloor, Group, Measurement, Run, RunValue, Stack
from worker.engine.facts.grid import attribute_set
from worker.tasks import claims, data, outcome
from worker.tasks.claims import Claim
from worker.tasks.context import Context
from worker.tasks.job import Job, heartbeat, perform
from worker.tasks.patience import patiently

if TYPE_CHECKING:
    from worker.engine.results import FloorRow, MeasurementRow
    from worker.engine.results import RunValue as Value

ROWS_AT_ONCE = 5000


@dataclass(frozen=True)
class Measured:
    """All that the logits of the finished stacks gave."""

    rows: list[MeasurementRow]
    values: list[Value]
    floors: list[FloorRow]


def run(context: Context, audit_id: str) -> None:
    """Measure what has finished since the last time, and end the audit if that was all."""
    perform(context, JOB, audit_id)


def _work(context: Context, held: Claim) -> None:
    with heartbeat(context, held).beating() as beat:
        with context.database.transaction() as session:
            audit = session.get_one(Audit, held.id)
            finished = _finished(session, audit.id)
        found: Measured | None = None
        if len(finished) > audit.measured_stacks:
            found = _measure(context, audit, finished)
        beat.check()
        patiently(lambda: _save(context, held, found, len(finished)))


def _finished(session: Session, audit_id: str) -> list[Stack]:
    found = select(Stack).where(Stack.audit_id == audit_id, Stack.state == "finished").order_by(Stack.number)
    return list(session.scalars(found))


def _measure(context: Context, audit: Audit, finished: list[Stack]) -> Measured:
    from worker.engine.audits import logits
    from worker.engine.audits.floors import floors
    from worker.engine.audits.measure import measure, run_values
    from worker.engine.catalogue import METRICS

    with context.database.transaction() as session:
        key = session.scalar(select(Dataset.file_key).where(Dataset.id == audit.dataset_id))
        runs = session.scalars(select(Run).where(Run.stack_id.in_([stack.id for stack in finished]))).all()
        families = _families(session, audit.recipe_id)
    rows = data.load_data(context, audit.recipe_id)
    by_seed = {stack.seed: logits.from_bytes(context.storage.read(stack.logits_key or "", key)) for stack in finished}
    known = {one.id: (one.method, one.epsilon_asked, one.seed) for one in runs if one.state == "finished"}
    fewest = context.settings.estimable_per_label
    return Measured(
        measure(by_seed, known, rows, METRICS),
        run_values(by_seed, known, rows, METRICS),
        floors(by_seed, known, rows, METRICS, families, fewest_with_label=fewest),
    )


def _families(session: Session, recipe_id: str) -> dict[str, list[str]]:
    """Keys of the groups that can be judged, by the attributes that make them."""
    found: dict[str, list[str]] = {}
    listed = select(Group).where(Group.recipe_id == recipe_id, Group.estimable).order_by(Group.position)
    for group in session.scalars(listed):
        if group.attributes:
            found.setdefault(attribute_set(group.attributes), []).append(group.key)
    return found


def _save(context: Context, held: Claim, found: Measured | None, stacks: int) -> None:
    """Replace all measurements of the audit, tell of it, and end the audit if nothing else is left to do."""
    with context.database.transaction() as session:
        audit = outcome.lock_audit(session, held.id)
        claims.hold(session, held)
        if found is not None:
            for table in (Measurement, RunValue, GapFloor):
                session.execute(delete(table).where(table.audit_id == audit.id))
            _insert(session, audit, found)
            audit.measured_stacks = stacks
            record_event(session, audit, "audit.measured", {"stacks": stacks})
        session.flush()
        outcome.settle_audit(session, audit)
        if outcome.count_stacks(session, audit.id).get("finished", 0) > audit.measured_stacks:
            outcome.ask_to_measure(session, audit)  # one more finished while this ran
        claims.release(session, held)
    if audit.state not in outcome.ACTIVE:
        data.forget_data()


def _insert(session: Session, audit: Audit, found: Measured) -> None:
    ids = dict(session.execute(select(Group.key, Group.id).where(Group.recipe_id == audit.recipe_id)).all())
    marks: dict[str, Any] = {"team_id": audit.team_id, "audit_id": audit.id}
    rows = [asdict(row) for row in found.rows]
    values = [asdict(row) for row in found.values]
    lines = [asdict(row) for row in found.floors]
    for row in rows:
        row["seeds"] = list(row["seeds"])
    for row in (*rows, *lines):
        row["epsilon_asked"] = row.pop("epsilon")
    for row in values:
        row["run_id"] = row.pop("run")
    for row in (*rows, *values):
        row["group_id"] = ids[row.pop("group")]
    _insert_all(session, Measurement, marks, rows)
    _insert_all(session, RunValue, marks, values)
    _insert_all(session, GapFloor, marks, lines)


def _insert_all(session: Session, table: Any, marks: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    for at in range(0, len(rows), ROWS_AT_ONCE):
        session.execute(insert(table), [marks | row for row in rows[at : at + ROWS_AT_ONCE]])


JOB = Job(
    name=MEASURE_AUDIT,
    table=Audit,
    states=outcome.ACTIVE,
    doing="measuring this audit",
    work=_work,
    give_up=outcome.fail_audit,
)
