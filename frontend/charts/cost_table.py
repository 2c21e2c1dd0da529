"""The table twin of the cost charts, and the words that both cost charts print beside a number."""

from __future__ import annotations

from frontend.charts.base import TAG, Cell, CostFacts, Table, digits_of, epsilon_text, mark_key, plain, signed
from worker.engine.results import CostRow

INTERVALS = {
    "both": "rows and seeds",
    "sampling": "rows",
    "seeds": "seeds",
}


def level(facts: CostFacts, value: float | None) -> str:
    """A value of the metric itself: percent with one decimal, or nats with three."""
    if value is None:
        return "—"
    return f"{value * facts.scale:.{digits_of(facts)}f}" + (" %" if facts.percent else "")


def interval_text(facts: CostFacts, row: CostRow) -> str:
    """The interval in words, or a dash where there is none."""
    if row.low is None or row.high is None:
        return "—"
    digits = digits_of(facts)
    return f"{signed(row.low * facts.scale, digits)} to {signed(row.high * facts.scale, digits)}"


def fresh_text(facts: CostFacts, row: CostRow) -> str:
    """Where the metric of one more run with these settings would lie, 95 times in 100."""
    if row.fresh_low is None or row.fresh_high is None:
        return "—"
    digits = digits_of(facts)
    low, high = row.fresh_low * facts.scale, row.fresh_high * facts.scale
    return f"{low:.{digits}f} to {high:.{digits}f}" + (" %" if facts.percent else "")


def _marked(row: CostRow) -> tuple[str, str]:
    """Whether the group pays more in accuracy than the rest, over the planned family."""
    text = "—" if row.marked is None else "yes" if row.marked else "no"
    return text, text


def difference_text(facts: CostFacts, row: CostRow) -> str:
    """The cost of a row in points, with its sign."""
    return signed(None if row.cost is None else row.cost * facts.scale, digits_of(facts))


def note(row: CostRow) -> str:
    """Why a number is missing or must not be judged."""
    return row.reason or ""


def hover_text(facts: CostFacts, row: CostRow) -> str:
    """What a mark says when pointed at; foreign text is made harmless."""
    lines = [
        f"{plain(row.group_label, 60)}, n = {row.n:,}",
        f"{plain(facts.method_title(row.method))}, epsilon spent {epsilon_text(row.epsilon_spent)}",
        f"{facts.noun} {difference_text(facts, row)} {facts.unit}, 95 % interval {interval_text(facts, row)}",
        f"{level(facts, row.baseline)} without DP, {level(facts, row.value)} with; {row.seeds} seeds; {TAG}",
    ]
    if row.marked:
        lines.append("pays more than the rest in accuracy")
    if row.fresh_low is not None:
        lines.append(f"one fresh run: {fresh_text(facts, row)}")
    if row.reason:
        lines.append(plain(row.reason, 90))
    return "<br>".join(lines)


def cost_table(facts: CostFacts, rows: tuple[CostRow, ...], caption: str) -> Table:
    """Rows as read on the screen: every number with its interval, n and seeds."""
    noun = facts.noun.capitalize()
    columns = (
        "Method",
        "Group",
        "n",
        "Epsilon asked",
        "Epsilon spent",
        "Without DP",
        "With DP",
        f"{noun} ({facts.unit})",
        "95 % interval",
        "More than the rest",
        "One fresh run",
        "Seeds",
        "Note",
    )
    return Table(caption, columns, tuple(_cells(facts, row) for row in rows), tuple(mark_key(row) for row in rows))


def reference_table(facts: CostFacts, rows: tuple[CostRow, ...], caption: str) -> Table:
    """Rows of methods that claim no privacy: no epsilon, the same numbers otherwise."""
    noun = facts.noun.capitalize()
    columns = (
        "Method",
        "Group",
        "n",
        "Baseline",
        "This method",
        f"{noun} ({facts.unit})",
        "95 % interval",
        "Seeds",
        "Note",
    )
    kept = tuple((*cells[:3], *cells[5:]) for cells in (_cells(facts, row) for row in rows))
    return Table(caption, columns, kept, tuple(mark_key(row) for row in rows))


def _cells(facts: CostFacts, row: CostRow) -> tuple[Cell, ...]:
    scaled = None if row.cost is None else row.cost * facts.scale
    return (
        Cell(facts.method_title(row.method), row.method),
        Cell(row.group_label, row.group),
        Cell(f"{row.n:,}", row.n, number=True),
        Cell("none" if row.epsilon_asked is None else f"{row.epsilon_asked:g}", row.epsilon_asked, number=True),
        Cell(epsilon_text(row.epsilon_spent), row.epsilon_spent, number=True),
        Cell(level(facts, row.baseline), row.baseline, number=True),
        Cell(level(facts, row.value), row.value, number=True),
        Cell(difference_text(facts, row), scaled, number=True),
        Cell(interval_text(facts, row), row.low, number=True),
        Cell(*_marked(row)),
        Cell(fresh_text(facts, row), row.fresh_low, number=True),
        Cell(str(row.seeds), row.seeds, number=True),
        Cell(note(row)),
    )
