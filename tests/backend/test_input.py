"""Input before its meaning, and output before a spreadsheet."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.csv_export import cell, csv_lines
from backend.edge import parse_object
from backend.errors import InputProblem, Malformed
from backend.paging import _read, _write
from backend.plain import clean_name, file_name, refuse_strange, title_problem
from backend.tables.base import random_id

STRANGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(), max_size=8), STRANGE, max_size=5))
def test_what_passes_can_be_stored(body: dict[str, Any]) -> None:
    with contextlib.suppress(InputProblem):
        refuse_strange(body)
        text = json.dumps(body, allow_nan=False)
        assert "\\u0000" not in text
        text.encode("utf-8")
        json.dumps(body, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"a": [1, math.nan]}, "a[1]"),
        ({"a": {"b": math.inf}}, "a.b"),
        ({"a": 2**60}, "a"),
        ({"a": "x\0"}, "a"),
        ({"a": {"\0": 1}}, "a"),
        ({"a": "x" * 30_000}, "a"),
    ],
)
def test_strange_values_are_told_at_their_place(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as caught:
        refuse_strange(body)
    assert caught.value.errors[0]["field"] == field


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_malformed(body: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(parse_object(body), dict)


def test_a_number_of_ten_thousand_digits_is_a_field_error() -> None:
    body = parse_object('{"a": ' + "9" * 10_000 + "}")
    with pytest.raises(InputProblem):
        refuse_strange(body)


@given(st.text(st.characters()))
def test_names_are_one_printable_line(text: str) -> None:
    name = clean_name(text, otherwise="table")
    assert 0 < len(name) <= 200
    assert name.isprintable() or " " in name
    folderless = file_name(text, otherwise="table")
    assert "/" not in folderless
    assert "\\" not in folderless


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\uff1dx", "\uff20x"])
def test_text_that_could_be_a_formula_is_quoted(text: str) -> None:
    assert cell(text) == f"'{text}"


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_numbers_stay_numbers_to_the_last_digit(value: float) -> None:
    assert cell(value) == json.dumps(value)
    assert type(value)(cell(value)) == value


@given(
    st.lists(st.tuples(st.text(st.characters(exclude_categories=("Cs",)), max_size=9), st.floats(-9, 9)), max_size=9)
)
def test_csv_reads_back(rows: list[tuple[str, float]]) -> None:
    text = "".join(csv_lines(["a", "b"], [{"a": a, "b": b} for a, b in rows]))
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found[0] == ["a", "b"]
    assert [float(row[1]) for row in found[1:]] == [b for _, b in rows]
    assert [row[0] for row in found[1:]] == [cell(a) for a, _ in rows]


def test_a_cursor_comes_back() -> None:
    from datetime import UTC, datetime

    now, row_id = datetime.now(UTC), random_id()
    assert _read(_write(now, row_id)) == (now, row_id)


def test_a_title_keeps_its_slashes_and_a_file_name_loses_its_folders() -> None:
    assert clean_name("A/B test, Q1\\Q2", otherwise="x") == "A/B test, Q1\\Q2"
    assert file_name("C:\\people\\of 2026.csv", otherwise="x") == "of 2026.csv"
    assert file_name("the %22best%22.csv", otherwise="x") == 'the "best".csv'
    assert title_problem("x" * 200) is None
    assert title_problem("x" * 201) == "A name may have at most 200 characters."
