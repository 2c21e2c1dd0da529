"""From the cells of one column to a typed column, with what was decided, what is proposed, and which cells stand in the way.

Works on the different texts of a column, so it stays quick; columns of plain numbers with many different texts are turned
by Arrow without looking at one text after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from worker.engine.datasets.cells import (
    PLAIN_NUMBER,
    SUSPECTED_NUMBERS,
    Number,
    is_suspected_code,
    parse_number,
    plain_number,
)
from worker.engine.datasets.counted import counted
from worker.engine.datasets.role_set import number_text
from worker.engine.datasets.spellings import propose_merges
from worker.engine.datasets.table import MISSING, Column
from worker.engine.errors import TableProblem

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_SHOWN = 40
_CELLS_SHOWN = 10
_EXACT = float(2**53)


@dataclass(frozen=True)
class Wishes:
    """What a recipe says about one column. ``missing`` is None where it does not name codes for this column alone."""

    decimal: str = "."
    trim: bool | None = None
    missing_codes: frozenset[str] = frozenset()
    missing: frozenset[str] | None = None
    kind: str | None = None
    merges: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Judged:
    """A column and what was found out about it, as the profile shows it.

    Attributes:
        missing: codes that were taken as missing, with counts: the declared ones, and those beside which all else are numbers.
        suspects: texts that may stand for a missing cell, with counts; nothing was done.
        merges: spellings that look alike, as by ``propose_merges``; nothing was done.
        offending: cells that keep the column from being a number: ``row`` from 1 and ``value``.
        as_number: what reading it as a number would strip, if it could be; nothing was done.
    """

    column: Column
    notes: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    suspects: list[dict[str, Any]] = field(default_factory=list)
    merges: list[dict[str, Any]] = field(default_factory=list)
    offending: list[dict[str, Any]] = field(default_factory=list)
    as_number: str | None = None

    def note(self, message: str, place: str = "types") -> None:
        """Say something about this column; ``place`` is the field of the recipe that changes it."""
        self.notes.append({"column": self.column.name, "field": place, "message": message})

    def proposals(self) -> dict[str, Any]:
        """What the profile of the column says besides its values."""
        keys = ("missing", "suspects", "merges", "offending", "as_number")
        return {f"{'missing_codes' if key == 'missing' else key}": getattr(self, key) for key in keys}


def judge_numbers(name: str, numbers: NDArray[np.float64], wishes: Wishes) -> Judged:
    """A column that came as numbers, NaN where missing."""
    if wishes.kind == "category" or wishes.merges:
        column = Column(name, "number", numbers=numbers).as_category()
        return judge_texts(name, column.filled_codes(), list(column.categories), wishes)
    told = [float(code) for code in (wishes.missing or ()) if plain_number(code) is not None]
    told += [float(code) for code in wishes.missing_codes if plain_number(code) is not None]
    if told:
        numbers = np.where(np.isin(numbers, told), np.nan, numbers)
    judged = Judged(Column(name, "number", numbers=numbers))
    judged.suspects = _suspected_numbers(numbers)
    return judged


def judge_arrow(name: str, cells: pa.ChunkedArray, wishes: Wishes) -> Judged:
    """A column that came as texts, dictionary-encoded or not."""
    import pyarrow as pa

    if not pa.types.is_dictionary(cells.type):
        judged = None if wishes.kind == "category" or wishes.merges else _plain_numbers(name, cells, wishes)
        if judged is not None:
            return judged
        cells = pa.chunked_array([chunk.dictionary_encode() for chunk in cells.chunks])
    codes, texts = _unify(cells)
    return judge_texts(name, codes, texts, wishes)


def _unify(cells: pa.ChunkedArray) -> tuple[NDArray[np.int32], list[str | None]]:
    """Codes into one list of texts, from chunks that each have their own."""
    position: dict[str | None, int] = {}
    pieces = []
    for chunk in cells.chunks:
        own = [position.setdefault(text, len(position)) for text in chunk.dictionary.to_pylist()]
        codes = chunk.indices.fill_null(len(own)).to_numpy(zero_copy_only=False)
        pieces.append(np.array([*own, MISSING], dtype=np.int32)[codes])
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32), list(position)


def _plain_numbers(name: str, cells: pa.ChunkedArray, wishes: Wishes) -> Judged | None:
    """The numbers of a column in which every cell is a plain number or missing, else None."""
    codes = sorted(wishes.missing_codes | (wishes.missing or frozenset()))
    counts: dict[str, int] = {}
    pieces = []
    for chunk in cells.chunks:
        numbers = (
            None if wishes.decimal != "." or any(plain_number(code) is not None for code in codes) else _cast(chunk)
        )
        if numbers is None:
            numbers = _cast(_stated(chunk, codes, wishes.decimal, counts))
        if numbers is None:
            return None
        pieces.append(numbers)
    numbers = np.concatenate(pieces) if pieces else np.zeros(0)
    if np.isnan(numbers).all():
        return None
    judged = judge_numbers(name, numbers, Wishes())
    judged.missing = _entries(counts)
    return judged


def _stated(cells: pa.Array, codes: list[str], decimal: str, counts: dict[str, int]) -> pa.Array:
    """The texts without outer spaces, with a decimal point, null where missing; adds to the counts of missing codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    empty = pc.is_in(trimmed, pa.array(codes, pa.string()))
    for entry in pc.value_counts(trimmed.filter(empty)).to_pylist():
        counts[entry["values"]] = counts.get(entry["values"], 0) + entry["counts"]
    stated = pc.if_else(empty, None, trimmed)
    if decimal == ".":
        return stated
    pointed = pc.match_substring(stated, ".")  # a point is no decimal sign here: such a cell is no plain number
    return pc.if_else(pointed, "", pc.replace_substring(stated, decimal, ".", max_replacements=1))


def _cast(stated: pa.Array) -> NDArray[np.float64] | None:
    """The texts as numbers, NaN where null; None where one is no plain number (``007``, ``1,2``)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    few = stated.filter(pa.array(_doubtful(stated)))
    if not pc.all(pc.match_substring_regex(few, f"^(?:{PLAIN_NUMBER.pattern})$"), min_count=0).as_py():
        return None
    if pc.any(pc.starts_with(few, "+")).as_py():
        stated = pc.replace_substring_regex(stated, r"^\+", "")
    try:
        cast = pc.cast(stated, pa.float64())
    except pa.ArrowInvalid:
        return None
    numbers = np.array(cast.fill_null(math.nan).to_numpy(zero_copy_only=False))
    present = numbers if not stated.null_count else numbers[~np.isnan(numbers)]
    if len(present) != len(stated) - stated.null_count or not np.isfinite(present).all():
        return None
    return None if (np.abs(present) >= _EXACT).any() else numbers


def _doubtful(stated: pa.Array) -> NDArray[np.bool_]:
    """Bool, shape (n,): texts that begin with a plus or with a nought before anything but a point."""
    _, offsets, data = stated.buffers()
    if data is None or not data.size:
        return np.zeros(len(stated), dtype=np.bool_)
    starts = np.frombuffer(offsets, dtype=np.int32)[stated.offset : stated.offset + len(stated) + 1]
    letters = np.frombuffer(data, dtype=np.uint8)
    last = len(letters) - 1
    first, second = letters[np.minimum(starts[:-1], last)], letters[np.minimum(starts[:-1] + 1, last)]
    longer = np.diff(starts) > 1
    nought = ((first == ord("0")) & (second != ord("."))) | ((first == ord("-")) & (second == ord("0")))
    return np.asarray((first == ord("+")) | (longer & nought))


def _entries(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"value": value[:_SHOWN], "count": int(count)} for value, count in ordered if count]


def judge_texts(name: str, codes: NDArray[np.int32], texts: Sequence[str | None], wishes: Wishes) -> Judged:
    """A typed column from codes into different texts.

    Args:
        codes: int32, shape (n,), positions in ``texts``, -1 for an empty cell.
        texts: the different texts of the column as they stand in the file.

    Raises TableProblem if a number was asked for and a cell is none.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    bare = [(text or "").strip() for text in texts]
    told = wishes.missing_codes | (wishes.missing or frozenset())
    stated = [place for place, text in enumerate(bare) if text not in told and counts[place]]
    parsed = {place: parse_number(bare[place], wishes.decimal) for place in stated}
    reader = _TextColumn(name, codes, texts, bare, counts, stated, parsed, wishes)
    if wishes.kind == "number":
        return reader.number_as_asked()
    if wishes.kind is None and not wishes.merges and stated:
        found = reader.number_if_plain()
        if found is not None:
            return found
    return reader.category()


@dataclass
class _TextColumn:
    name: str
    codes: NDArray[np.int32]
    texts: Sequence[str | None]
    bare: list[str]
    counts: NDArray[np.int64]
    stated: list[int]
    parsed: dict[int, Number | None]
    wishes: Wishes

    def number_as_asked(self) -> Judged:
        bad = [place for place in self.stated if self.parsed[place] is None]
        if bad:
            wrong = np.isin(self.codes, bad)
            row, cells = int(np.argmax(wrong)) + 1, int(wrong.sum())
            raise TableProblem(
                f"Column {self.name} was asked to hold numbers, but {cells} cells are none, the first in row {row}.",
                next_step="Read it as a category, or add those cells to the missing codes.",
                row=row,
                column=self.name,
            )
        return self._number([])

    def number_if_plain(self) -> Judged | None:
        """A number, if all cells are numbers without units, but for codes that often stand for a missing cell."""
        others = [place for place in self.stated if self.parsed[place] is None]
        numbers = [place for place in self.stated if self.parsed[place] is not None]
        if not numbers or any(number.unit for number in self.parsed.values() if number):
            return None
        rows = int(self.counts[numbers].sum())
        codes = all(is_suspected_code(self.bare[place]) for place in others)
        if others and (not codes or self.wishes.missing is not None or rows < 2 * int(self.counts[others].sum())):
            return None
        return self._number(others)

    def _number(self, missing: list[int]) -> Judged:
        lookup = np.full(len(self.texts) + 1, math.nan)
        for place in self.stated:
            found = self.parsed[place]
            if found is not None:
                lookup[place] = found.value
        judged = Judged(Column(self.name, "number", numbers=lookup[self.codes]))
        guessed = [self._entry(place) for place in missing]
        judged.missing = self._told() + guessed
        if missing:
            said = ", ".join(f"{entry['value']} ({entry['count']})" for entry in guessed)
            judged.note(
                f"Taken as missing, because all else are numbers: {said}. Change it if one is a value.", "missing"
            )
        self._note_notation(judged)
        judged.suspects = _suspected_numbers(lookup[self.codes])
        return judged

    def _note_notation(self, judged: Judged) -> None:
        found = [number for place in self.stated if (number := self.parsed[place]) is not None]
        marks = sorted({number.thousands for number in found if number.thousands})
        if marks:
            shown = ", ".join("a space" if not mark.strip() else mark for mark in marks)
            sign = "a decimal comma" if self.wishes.decimal == "," else "a decimal point"
            doubt = " If the comma stands before decimals, choose the decimal comma." if marks == [","] else ""
            judged.note(f"Read as numbers with a thousands mark ({shown}) and {sign}.{doubt}")
        units = sorted({number.unit for number in found if number.unit})
        if units:
            judged.note(f"Read as numbers; stripped were: {', '.join(units)}.")

    def _told(self) -> list[dict[str, Any]]:
        """The declared codes that occur, with their counts."""
        counts: dict[str, int] = {}
        for place in set(range(len(self.texts))) - set(self.stated):
            counts[self.bare[place]] = counts.get(self.bare[place], 0) + int(self.counts[place])
        return _entries(counts)

    def _entry(self, place: int) -> dict[str, Any]:
        return {"value": self.bare[place][:_SHOWN], "count": int(self.counts[place])}

    # -- categories ---------------------------------------------------------------------------------------------------

    def category(self) -> Judged:
        values = self._values()
        categories = tuple(sorted(set(values.values())))
        position = {text: place for place, text in enumerate(categories)}
        lookup = np.full(len(self.texts) + 1, MISSING, dtype=np.int32)
        for place, text in values.items():
            lookup[place] = position[text]
        judged = Judged(Column(self.name, "category", codes=lookup[self.codes], categories=categories))
        judged.missing = self._told()
        judged.suspects = [self._entry(place) for place in self.stated if is_suspected_code(self.bare[place])]
        sizes: dict[str, int] = {}
        for place, text in values.items():
            sizes[text] = sizes.get(text, 0) + int(self.counts[place])
        judged.merges = propose_merges(sizes)
        if self.wishes.kind is None and not self.wishes.merges:
            self._say_why_no_number(judged)
        return judged

    def _values(self) -> dict[int, str]:
        """The value of each text that is not missing: outer spaces go where that merges nothing, or as asked."""
        raw = {place: self.texts[place] or "" for place in self.stated}
        trimmed = {place: text.strip() for place, text in raw.items()}
        trim = (
            self.wishes.trim if self.wishes.trim is not None else len(set(trimmed.values())) == len(set(raw.values()))
        )
        chosen = trimmed if trim else raw
        return {place: self.wishes.merges.get(text, text) for place, text in chosen.items()}

    def _say_why_no_number(self, judged: Judged) -> None:
        numbers = [place for place in self.stated if self.parsed[place] is not None]
        others = [place for place in self.stated if self.parsed[place] is None]
        zeros = [
            p for p in self.stated if self.bare[p].isdigit() and self.bare[p].startswith("0") and len(self.bare[p]) > 1
        ]
        if zeros and all(self.bare[place].isdigit() for place in self.stated):
            judged.note("Kept as text: its leading zeros would be lost in a number.")
            return
        if len(numbers) < len(self.stated) / 2 or not numbers:
            return
        real = [place for place in others if not is_suspected_code(self.bare[place])]
        if real:
            bad = np.isin(self.codes, real)
            rows = np.flatnonzero(bad)[:_CELLS_SHOWN]
            cells = [(int(row) + 1, self.bare[int(self.codes[row])][:_SHOWN]) for row in rows]
            judged.offending = [{"row": row, "value": value} for row, value in cells]
            shown = "; ".join(f"row {row}: {value}" for row, value in cells[:3])
            judged.note(f"Read as a category, because of {counted(int(bad.sum()), 'cell')} without a number ({shown}).")
            return
        units = sorted({number.unit for number in self.parsed.values() if number is not None and number.unit})
        if units:
            judged.as_number = ", ".join(units)
            judged.note(
                f"Kept as text. It can be read as numbers if you say so (type number); {', '.join(units)} would be stripped."
            )


def _suspected_numbers(numbers: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Numbers such as -99 that lie apart from all others: the only negative one, or far above the next."""
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return []
    found = []
    low, high = float(present.min()), float(present.max())
    for value in dict.fromkeys((low, high)):
        if value not in SUSPECTED_NUMBERS or low == high:
            continue
        same = present == value
        rest = present[~same]
        apart = rest.min() >= 0 if value < 0 else value > 2 * float(rest.max())
        if apart:
            found.append({"value": number_text(value), "count": int(same.sum())})
    return found
