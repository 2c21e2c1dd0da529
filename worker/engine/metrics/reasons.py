"""Why a number is undefined or must not be judged: one code for machines, one sentence for people."""

from __future__ import annotations

NO_ROWS = "no_rows"
NO_LABEL = "no_rows_with_label"
TWO_CLASSES = "two_classes_only"
NOBODY_PREDICTED = "nobody_predicted"
NO_SEED = "no_finished_seed"
NO_FLOOR = "no_floor"
FEW_GROUPS = "fewer_than_two_groups"
WITHHELD = "withheld"
FEW_ROWS = "too_few_rows"
FEW_PERSONS = "too_few_persons"
FEW_LABELS = "too_few_rows_with_label"
IS_BASELINE = "is_baseline"
DIVERGED = "diverged"
UNFINISHED = "unfinished"
UNMEASURED = "unmeasured"
FEW_SEEDS = "too_few_seeds"

WORDS: dict[str, str] = {
    NO_ROWS: "no rows of this group are in the test part",
    NO_LABEL: "cannot be computed: no test rows of this group have the label it needs",
    TWO_CLASSES: "cannot be computed: it is defined for two classes only",
    NOBODY_PREDICTED: "cannot be computed: nobody of this group is predicted to have the favourable outcome",
    NO_SEED: "no seed has both a finished run and a finished baseline",
    NO_FLOOR: "no floor is given: it cannot be had by shuffling groups for a metric that is biased in small groups",
    FEW_GROUPS: "cannot be computed: fewer than two groups can be judged",
    IS_BASELINE: "this is the baseline",
    UNFINISHED: "no run with a finished baseline yet",
    UNMEASURED: "the rows are still being measured; an audit that ended before this metric existed must be asked again",
    FEW_SEEDS: "under 3 seeds: nothing is said about training luck",
}
"""Sentences without a number; those with one are made where the number is known."""


def words(code: str) -> str:
    """The sentence of a code."""
    return WORDS.get(code, code)
