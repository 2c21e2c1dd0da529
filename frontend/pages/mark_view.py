"""Who pays more than the rest: the planned family of comparisons as a sentence and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frontend.charts.base import Cell, Table, signed
from frontend.pages.selection import titles
from worker.engine.facts.marks import mark_rows
from worker.engine.facts.rows import MarkRow
from worker.engine.results import AuditFacts

ANSWERS = {True: "yes", False: "no", None: "—"}
COLUMNS = (
    "Method",
    "Group",
    "n",
    "Cost above the rest (points)",
    "95 % interval",
    "Adjusted p",
    "Marked",
    "Seeds",
    "Note",
)


def context(facts: AuditFacts) -> dict[str, Any]:
    """The sentence and the table."""
    rows = mark_rows(facts)
    size = rows[0].family if rows else 0
    caption = (
        f"Each group against all other rows, accuracy averaged over epsilons; Holm over {size} planned comparisons"
    )
    keys = tuple(f"{row.method}|all|{row.group}" for row in rows)
    return {"sentence": sentence(rows), "table": Table(caption, COLUMNS, tuple(_cells(row) for row in rows), keys)}


def sentence(rows: Sequence[MarkRow]) -> str:
    """Who is marked, or why nobody is."""
    marked = [f"{row.group_label} ({titles().get(row.method, row.method)})" for row in rows if row.marked]
    if not rows:
        return "No group can be compared with the rest: none has enough test rows, or persons where rows belong to persons."
    if all(row.marked is None for row in rows):
        return f"Whether any group pays more than the rest cannot be said yet: {rows[0].reason}."
    if marked:
        return f"Pays more than the rest in accuracy, over all epsilons: {'; '.join(marked)}."
    return (
        "No group is shown to pay more than the rest in accuracy, over all epsilons. That is no proof that none does."
    )


def _cells(row: MarkRow) -> tuple[Cell, ...]:
    span = "—" if row.low is None or row.high is None else f"{signed(100 * row.low)} to {signed(100 * row.high)}"
    return (
        Cell(titles().get(row.method, row.method), row.method),
        Cell(row.group_label, row.group),
        Cell(f"{row.n:,}", row.n, number=True),
        Cell(signed(None if row.difference is None else 100 * row.difference), row.difference, number=True),
        Cell(span, row.low, number=True),
        Cell(_chance(row.p_adjusted), row.p_adjusted, number=True),
        Cell(ANSWERS[row.marked], ANSWERS[row.marked]),
        Cell(str(row.seeds), row.seeds, number=True),
        Cell(row.reason or ""),
    )


def _chance(value: float | None) -> str:
    if value is None:
        return "—"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
