"""Guesses of the role of each column, each with its reason. They are shown to be changed, never used unseen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

TARGET_WORDS = frozenset(
    [
        "target",
        "label",
        "y",
        "class",
        "outcome",
        "income",
        "default",
        "approved",
        "released",
        "granted",
        "hired",
        "churn",
        "risk",
        "readmitted",
        "recid",
        "two_year_recid",
        "decision",
        "result",
        "accepted",
        "admitted",
    ]
)
PROTECTED_WORDS = frozenset(
    [
        "sex",
        "gender",
        "race",
        "ethnicity",
        "ethnic",
        "age",
        "colour",
        "color",
        "nationality",
        "national",
        "citizen",
        "citizenship",
        "marital",
        "marriage",
        "religion",
        "disability",
        "disabled",
        "foreign",
    ]
)
IDENTIFIER_WORDS = frozenset(["id", "ids", "identifier", "uuid", "index", "rownames"])
PERSON_WORDS = frozenset(
    ["person", "subject", "patient", "client", "customer", "user", "applicant", "participant", "respondent"]
)
WEIGHT_WORDS = frozenset(["fnlwgt", "weight", "weights", "wgt", "pweight", "sampleweight"])

FEW_VALUES = 12
"""A protected column is guessed only up to this many values; a number with more needs cuts."""
AGE_CUTS = (25.0, 45.0, 65.0)
_FEWEST_ROWS = 20


def words(name: str) -> frozenset[str]:
    """The words of a column name in small letters, and the name itself: ``SexCode`` gives sex, code, sexcode."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset([*re.findall(r"[a-z]+", spaced.lower()), name.lower().strip()])


def guess_roles(columns: Sequence[Mapping[str, Any]], rows: int) -> list[tuple[str, str]]:
    """Role and reason for each column of a profile (``name``, ``type``, ``missing``, ``distinct``, ``whole``)."""
    target = _guess_target(columns, rows)
    guesses = []
    for position, column in enumerate(columns):
        if target is not None and position == target[0]:
            guesses.append(("target", target[1]))
        else:
            guesses.append(_guess_other(column, rows))
    return guesses


def _guess_target(columns: Sequence[Mapping[str, Any]], rows: int) -> tuple[int, str] | None:
    best, best_score, reason = None, 0, ""
    for position, column in enumerate(columns):
        distinct, last = column["distinct"], position == len(columns) - 1
        if not 2 <= distinct <= FEW_VALUES or distinct == rows or words(column["name"]) & PROTECTED_WORDS:
            continue
        known = bool(words(column["name"]) & TARGET_WORDS)
        score = 4 * known * (distinct == 2) + 3 * last * (distinct == 2) + 2 * known + last
        if score >= 2 and score > best_score:
            causes = ["its name" if known else "", "it is the last column" if last else "", f"it has {distinct} values"]
            best, best_score, reason = position, score, "Guessed from " + ", ".join(c for c in causes if c) + "."
    return None if best is None else (best, reason)


def _guess_other(column: Mapping[str, Any], rows: int) -> tuple[str, str]:
    found, distinct = words(column["name"]), column["distinct"]
    if distinct == 0:
        return "ignored", "Every cell is missing."
    if distinct == 1 and not column["missing"]:
        return "ignored", "Every row has the same value."
    if found & WEIGHT_WORDS:
        return "weight", "Its name is that of a survey weight; weights say how a row was drawn, not what it is like."
    identifier = _identifier(column, found, rows)
    if identifier is not None:
        return identifier
    if found & PROTECTED_WORDS:
        return _guess_protected(column, found)
    if column["type"] == "category" and distinct > 0.9 * rows and rows >= _FEWEST_ROWS:
        return "ignored", "Nearly every row has a text of its own: there is nothing to learn from it."
    return "feature", "Nothing speaks against it."


def _identifier(column: Mapping[str, Any], found: frozenset[str], rows: int) -> tuple[str, str] | None:
    distinct = column["distinct"]
    all_differ = distinct == rows and rows >= _FEWEST_ROWS
    if found & (IDENTIFIER_WORDS | PERSON_WORDS) and distinct > FEW_VALUES:
        if all_differ or (found & IDENTIFIER_WORDS and distinct > rows * 0.95):
            return "ignored", "It numbers the rows: it says who, not what they are like."
        if distinct < rows and rows >= _FEWEST_ROWS and column["type_is_whole_or_text"]:
            return "person id", "It looks like a number of persons who have several rows each."
    numbered = all_differ and column["type"] == "number" and column["whole"] and not found & PROTECTED_WORDS
    if numbered and _counts_up(column, rows):
        return "ignored", "Each row has its own whole number: it says who, not what they are like."
    return None


def _counts_up(column: Mapping[str, Any], rows: int) -> bool:
    return bool(column["high"] - column["low"] < 2 * rows)


def _guess_protected(column: Mapping[str, Any], found: frozenset[str]) -> tuple[str, str]:
    if column["type"] == "number" and column["distinct"] > FEW_VALUES:
        if "age" in found:
            return "protected", "Its name is that of a protected attribute; cut at 25, 45 and 65 as a guess."
        return "feature", "Its name is that of a protected attribute, but it has many values and no cuts."
    if column["distinct"] > FEW_VALUES:
        return "feature", f"Its name is that of a protected attribute, but it has {column['distinct']} values."
    return "protected", "Its name is that of a protected attribute."
