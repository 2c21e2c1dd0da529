"""All SQL about audits, stacks, runs and their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, case, delete, func, select, update
from sqlalchemy.orm import Session

from backend.people.service import Principal, visible
from backend.queue import COUNT_GROUPS, LIGHT, PLAN_AUDIT, READ_DATASET, TRAIN, TRAIN_GPU, TRAIN_STACK
from backend.tables import Audit, Dataset, GapFloor, Group, Measurement, Recipe, Run, RunValue, Stack, Statistic

ACTIVE = ("queued", "running")
CUDA_KERNEL = "eager-cuda"
RECENT_STACKS = 20


@dataclass(frozen=True)
class Counts:
    """Runs by state and steps of one audit."""

    runs: dict[str, int]
    steps_done: int
    steps_total: int


def audits_of(principal: Principal, state: str | None, dataset: str | None) -> Select[Audit]:
    """All that one may see; erased ones only when asked for."""
    found = select(Audit).where(visible(principal, Audit))
    found = found.where(Audit.state == state if state else Audit.state != "erased")
    return found.where(Audit.dataset_id == dataset) if dataset else found


def counts(session: Session, audit_ids: Sequence[str]) -> dict[str, Counts]:
    """Runs by state and steps done, of several audits in two queries."""
    by_state = (
        select(Run.audit_id, Run.state, func.count())
        .where(Run.audit_id.in_(audit_ids))
        .group_by(Run.audit_id, Run.state)
    )
    runs: dict[str, dict[str, int]] = {audit_id: {} for audit_id in audit_ids}
    for audit_id, state, count in session.execute(by_state):
        runs[audit_id][state] = count
    done = case((Stack.state == "finished", Stack.steps), else_=Stack.step)
    steps = select(Stack.audit_id, func.sum(done), func.sum(Stack.steps)).where(Stack.audit_id.in_(audit_ids))
    found = {row[0]: (int(row[1]), int(row[2])) for row in session.execute(steps.group_by(Stack.audit_id))}
    return {audit_id: Counts(runs[audit_id], *found.get(audit_id, (0, 0))) for audit_id in audit_ids}


def stacks_in(session: Session, audit_id: str, *states: str) -> Sequence[Stack]:
    """Stacks in some states, locked, in order; lock their audit first."""
    found = select(Stack).where(Stack.audit_id == audit_id, Stack.state.in_(states)).order_by(Stack.number)
    return session.scalars(found.with_for_update().execution_options(populate_existing=True)).all()


def count_stacks(session: Session, audit_id: str, state: str) -> int:
    """How many stacks are in a state."""
    found = select(func.count()).select_from(Stack).where(Stack.audit_id == audit_id, Stack.state == state)
    return session.scalar(found) or 0


def set_runs(session: Session, stack_ids: Sequence[str], states: Sequence[str], state: str, reason: str | None) -> None:
    """Moves the runs of some stacks from some states to another."""
    open_runs = Run.stack_id.in_(stack_ids) & Run.state.in_(states)
    session.execute(update(Run).where(open_runs).values(state=state, reason=reason))


@dataclass(frozen=True)
class FinishedStack:
    """What one finished stack took, with what is needed to compare it with another audit's."""

    seconds: float
    audit_id: str
    recipe_id: str
    question: dict[str, Any]


def recently_finished(session: Session, kernel: str) -> list[FinishedStack]:
    """The stacks of this kernel that finished last, newest audits first."""
    recent = (
        select(Stack.seconds, Audit.id, Audit.recipe_id, Audit.question)
        .join(Audit, Audit.id == Stack.audit_id)
        .where(Stack.state == "finished", Stack.kernel == kernel, Stack.seconds > 0)
        .order_by(Audit.created_at.desc(), Stack.number.desc())
        .limit(RECENT_STACKS)
    )
    return [FinishedStack(*row) for row in session.execute(recent)]


def summaries(session: Session, recipe_ids: set[str]) -> dict[str, dict[str, Any]]:
    """Summaries by recipe, of those that have one."""
    found = select(Recipe.id, Recipe.summary).where(Recipe.id.in_(recipe_ids), Recipe.summary.is_not(None))
    return {row[0]: row[1] for row in session.execute(found)}


def runs_of(session: Session, audit_id: str) -> Sequence[Run]:
    """Runs in the order of the plan: by seed, then by their place in the stack."""
    found = select(Run).join(Stack, Stack.id == Run.stack_id).where(Run.audit_id == audit_id)
    return session.scalars(found.order_by(Stack.number, Run.position)).all()


def stack_numbers(session: Session, audit_id: str) -> dict[str, int]:
    """Numbers of the stacks of an audit by id."""
    return {row[0]: row[1] for row in session.execute(select(Stack.id, Stack.number).where(Stack.audit_id == audit_id))}


def groups_of(session: Session, recipe_id: str) -> Sequence[Group]:
    """Groups in the order of the screen."""
    return session.scalars(select(Group).where(Group.recipe_id == recipe_id).order_by(Group.position)).all()


def statistics_of(session: Session, audit_id: str, part: str | None = None) -> Sequence[Row[Any]]:
    """Statistics as plain rows of columns, in the order of runs, groups, parts and labels."""
    columns = [column for column in Statistic.__table__.columns if column.name not in ("id", "team_id", "audit_id")]
    found = (
        select(*columns)
        .join(Run, Run.id == Statistic.run_id)
        .join(Stack, Stack.id == Run.stack_id)
        .join(Group, Group.id == Statistic.group_id)
        .where(Statistic.audit_id == audit_id)
        .order_by(Stack.number, Run.position, Group.position, Statistic.part, Statistic.label)
    )
    return session.execute(found.where(Statistic.part == part) if part else found).all()


def measurements_of(session: Session, audit_id: str, quantities: Sequence[str] | None = None) -> Sequence[Row[Any]]:
    """Measurements as plain rows of columns, of some quantities or of all."""
    columns = [column for column in Measurement.__table__.columns if column.name not in ("id", "team_id", "audit_id")]
    found = select(*columns).where(Measurement.audit_id == audit_id)
    found = found if quantities is None else found.where(Measurement.quantity.in_(quantities))
    return session.execute(found.order_by(Measurement.id)).all()


def run_values_of(session: Session, audit_id: str, metrics: Sequence[str]) -> Sequence[Row[Any]]:
    """Run, group, metric and value of what counts cannot give, for the test part."""
    found = select(RunValue.run_id, RunValue.group_id, RunValue.metric, RunValue.value)
    chosen = found.where(RunValue.audit_id == audit_id, RunValue.metric.in_(metrics), RunValue.part == "test")
    return list(session.execute(chosen))


def all_values_of(session: Session, audit_id: str) -> Sequence[RunValue]:
    """Every value of a run that counts cannot give, in the order in which they were made."""
    return session.scalars(select(RunValue).where(RunValue.audit_id == audit_id).order_by(RunValue.id)).all()


def floors_of(session: Session, audit_id: str, metrics: Sequence[str]) -> Sequence[GapFloor]:
    """Permutation floors of some metrics."""
    found = select(GapFloor).where(GapFloor.audit_id == audit_id, GapFloor.metric.in_(metrics))
    return session.scalars(found.order_by(GapFloor.id)).all()


def remove_numbers(session: Session, audit_id: str) -> tuple[int, int]:
    """Deletes statistics and measurements; says how many of each."""
    found = [
        session.execute(
            delete(table)
            .where(table.audit_id == audit_id)
            .returning(table.id)
            .execution_options(synchronize_session=False)
        ).all()
        for table in (Statistic, Measurement, RunValue, GapFloor)
    ]
    return len(found[0]), sum(len(rows) for rows in found[1:])


@dataclass(frozen=True)
class QueueLine:
    """Jobs of one name in one queue."""

    job: str
    queue: str
    waiting: int
    working: int
    since: datetime | None


def queue_lines(session: Session) -> list[QueueLine]:
    """What waits and what is worked on, all teams together, from the rows themselves: the broker may forget."""
    active = select(Audit.id).where(Audit.state.in_(ACTIVE))
    to_train = Stack.state.in_(("waiting", "training")) & Stack.audit_id.in_(active)
    wanted: tuple[tuple[str, str, Any, ColumnElement[bool]], ...] = (
        (READ_DATASET, LIGHT, Dataset, Dataset.state == "received"),
        (COUNT_GROUPS, LIGHT, Recipe, Recipe.state == "counting"),
        (PLAN_AUDIT, LIGHT, Audit, Audit.state == "planning"),
        (TRAIN_STACK, TRAIN, Stack, to_train & (Stack.kernel != CUDA_KERNEL)),
        (TRAIN_STACK, TRAIN_GPU, Stack, to_train & (Stack.kernel == CUDA_KERNEL)),
    )
    return [_line(session, *line) for line in wanted]


def _line(session: Session, job: str, queue: str, table: Any, wants: ColumnElement[bool]) -> QueueLine:
    held = table.lease_until.is_not(None) & (table.lease_until > func.clock_timestamp())
    since = func.min(func.coalesce(table.asked_at, table.created_at)).filter(~held)
    found = select(func.count().filter(~held), func.count().filter(held), since).select_from(table).where(wants)
    return QueueLine(job, queue, *session.execute(found).one())
