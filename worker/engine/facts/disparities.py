"""Each group against a reference group, or against the best one: difference and ratio, as Fairlearn has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from worker.engine.facts.costs import rounded
from worker.engine.facts.rows import DisparityRow
from worker.engine.metrics.base import Metric
from worker.engine.results import EVERYONE, CostRow

BEST = "best"


def disparity_rows(rows: Sequence[CostRow], metric: Metric, reference: str = BEST) -> list[DisparityRow]:
    """One row for each method, epsilon and group.

    Args:
        rows: from ``cost_rows``.
        reference: key of a group, or ``best``: the group with the best value among those that can be judged (the highest
            where the metric has no direction).
    """
    found = []
    for point in dict.fromkeys((row.method, row.epsilon_asked) for row in rows):
        own = [row for row in rows if (row.method, row.epsilon_asked) == point]
        against = _reference(own, metric, reference)
        found += [_row(row, metric, against) for row in own]
    return found


def _reference(rows: Sequence[CostRow], metric: Metric, reference: str) -> CostRow | None:
    if reference != BEST:
        return next((row for row in rows if row.group == reference and row.value is not None), None)
    fit = [row for row in rows if row.group != EVERYONE and row.value is not None and not _cautioned(row)]
    sign = -1.0 if metric.better == "lower" else 1.0
    return max(fit, key=lambda row: sign * (row.value or 0.0), default=None)


def _cautioned(row: CostRow) -> bool:
    return "to judge" in (row.reason or "")


def _row(row: CostRow, metric: Metric, against: CostRow | None) -> DisparityRow:
    made = DisparityRow(
        method=row.method,
        epsilon_asked=row.epsilon_asked,
        epsilon_spent=row.epsilon_spent,
        metric=metric.key,
        group=row.group,
        group_label=row.group_label,
        n=row.n,
        reference=None if against is None else against.group,
        value=row.value,
        reference_value=None if against is None else against.value,
        difference=None,
        ratio=None,
        reason=row.reason if row.value is None or _cautioned(row) else None,
        reason_code=row.reason_code if row.value is None or _cautioned(row) else None,
    )
    if row.value is None or against is None or against.value is None:
        why = "the reference group has no value here"
        return made if made.reason else replace(made, reason=why, reason_code="no_reference")
    made = replace(made, difference=rounded(row.value - against.value))
    return replace(made, ratio=rounded(row.value / against.value)) if against.value else made
