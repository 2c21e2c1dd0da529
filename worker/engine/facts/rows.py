"""The rows that facts are given in, beside ``CostRow``: marks, gaps, disparities and candidates. Nothing here computes."""

from __future__ import annotations

from dataclasses import dataclass

from worker.engine.results import Tag


@dataclass(frozen=True)
class MarkRow:
    """Whether one method costs one group more than all other rows, on the primary metric averaged over epsilons.

    ``difference`` is the group's cost less that of everyone else; ``p`` is one-sided, ``p_adjusted`` by Holm over
    ``family`` comparisons, fixed when the audit was planned. Undefined numbers are None and ``reason`` says why.
    """

    method: str
    group: str
    group_label: str
    n: int
    metric: str
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    marked: bool | None
    family: int
    seeds: int
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class GapRow:
    """The spread of a metric over the groups of one set of attributes (``by``), which do not overlap.

    ``gap`` is the highest less the lowest group's seed mean (the gap of means), ``ratio`` the lowest over the highest,
    ``excess`` = gap - baseline_gap. ``signed`` is the private difference of the pair that set the *baseline's* gap: where it
    is negative the order has turned. ``cost_gap`` is the largest less the smallest cost, ``xi`` the largest distance of a
    group's cost from everyone's. ``low`` and ``high`` hold ``excess``; ``floor`` is the gap, ``excess_floor`` the excess, if
    all groups were equal. Only groups that can be judged set a gap; ``left_out`` counts the others.
    """

    method: str
    epsilon_asked: float | None
    epsilon_spent: float | None
    metric: str
    by: str
    groups: int
    left_out: int
    highest: str | None = None
    lowest: str | None = None
    gap: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None
    baseline_gap: float | None = None
    excess: float | None = None
    low: float | None = None
    high: float | None = None
    signed: float | None = None
    ratio: float | None = None
    cost_gap: float | None = None
    xi: float | None = None
    floor: float | None = None
    floor_upper: float | None = None
    excess_floor: float | None = None
    excess_floor_upper: float | None = None
    seeds: int = 0
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class DisparityRow:
    """One group's metric against a reference group's, or the best group's, of the same method and epsilon."""

    method: str
    epsilon_asked: float | None
    epsilon_spent: float | None
    metric: str
    group: str
    group_label: str
    n: int
    reference: str | None
    value: float | None
    reference_value: float | None
    difference: float | None
    ratio: float | None
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class CandidateRow:
    """One point of the trade-off: method and epsilon with what it costs. ``pareto``: no other point is as good in the
    overall metric, the worst group's cost, the excess gap and epsilon, and better in one.

    ``worst_upper`` is the largest one-sided upper limit of any group's cost, at 0.95 after Bonferroni over methods.
    ``passes`` says whether all groups that the question is about stay within the limit; None where nothing can be said.
    """

    method: str
    epsilon_asked: float
    epsilon_spent: float | None
    metric: str
    overall: float | None
    worst_cost: float | None
    worst_upper: float | None
    worst_group: str | None
    excess: float | None
    excess_by: str | None
    pareto: bool | None
    passes: bool | None
    groups: int
    tag: Tag = "audit-only"
    reason: str | None = None
    reason_code: str | None = None
