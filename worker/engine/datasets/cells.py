"""From the cells of one column as text to a typed column. Works on the different texts only, so it stays quick."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from worker.engine.datasets.table import MISSING, Column
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLAIN_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Digits with an optional decimal point and exponent. ``007`` is not one: its zeros would be lost."""

_EXACT = 2**53


def plain_number(text: str) -> float | None:
    """The number that ``text`` writes plainly, or None: ``1,234``, ``12 %``, ``nan``, ``007`` are not plain numbers.

    Whole numbers of 2**53 and above and numbers that overflow are texts too, since digits would be lost.
    """
    if not PLAIN_NUMBER.fullmatch(text):
        return None
    value = float(text)
    if not math.isfinite(value) or (abs(value) >= _EXACT and text.lstrip("+-").isdigit()):
        return None
    return value


def make_column(
    name: str,
    codes: NDArray[np.int32],
    texts: Sequence[str | None],
    *,
    trim: bool,
    missing_codes: frozenset[str],
    merges: Mapping[str, str],
    asked_kind: str | None,
) -> tuple[Column, str | None]:
    """A typed column, and the first text that is no plain number if that is why it is a category.

    Args:
        codes: int32, shape (n,), positions in ``texts``, -1 for an empty cell.
        texts: the different texts of the column.
        asked_kind: ``number``, ``category`` or None to infer.

    Raises TableProblem if a number was asked for and a cell is none.
    """
    cleaned = [_clean(text, trim, missing_codes, merges) for text in texts]
    numbers = {text: plain_number(text) for text in cleaned if text is not None}
    offending = next((text for text, value in numbers.items() if value is None), None)
    if asked_kind == "number" and offending is not None:
        raise _not_a_number(name, codes, cleaned, numbers)
    if asked_kind != "category" and offending is None and numbers:
        lookup = np.array([math.nan if text is None else numbers[text] for text in cleaned] + [math.nan])
        return Column(name, "number", numbers=lookup[codes]), None
    return _category(name, codes, cleaned), offending if asked_kind is None else None


def _clean(text: str | None, trim: bool, missing_codes: frozenset[str], merges: Mapping[str, str]) -> str | None:
    if text is None:
        text = ""
    if text.strip(" \t") in missing_codes:
        return None
    if trim:
        text = text.strip(" \t")
    return merges.get(text, text)


def _category(name: str, codes: NDArray[np.int32], cleaned: Sequence[str | None]) -> Column:
    categories = tuple(sorted({text for text in cleaned if text is not None}))
    position = {text: place for place, text in enumerate(categories)}
    lookup = np.array([MISSING if text is None else position[text] for text in cleaned] + [MISSING], dtype=np.int32)
    return Column(name, "category", codes=lookup[codes], categories=categories)


def _not_a_number(
    name: str, codes: NDArray[np.int32], cleaned: Sequence[str | None], numbers: Mapping[str, float | None]
) -> TableProblem:
    bad = np.array([text is not None and numbers[text] is None for text in cleaned] + [False])[codes]
    row = int(np.argmax(bad)) + 1
    return TableProblem(
        f"Column {name} was asked to hold numbers, but {int(bad.sum())} cells are none, the first in row {row}.",
        next_step="Read it as a category, or add those cells to the missing codes.",
        row=row,
        column=name,
    )
