"""CSV: what is read, what is recorded, what is refused and where."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker.engine.datasets.cells import plain_number
from worker.engine.datasets.formats.base import ReadLimits
from worker.engine.datasets.formats.csv import CSV
from worker.engine.datasets.read import read_table
from worker.engine.errors import TableProblem

SAMPLES = Path(__file__).parents[2] / "samples"
LIMITS = ReadLimits(rows=10_000, columns=50, memory_bytes=600_000_000)


def read(folder: Path, content: str | bytes, asked=None, name="table.csv", limits=LIMITS):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return CSV.read(path, asked or {}, limits)


def texts(table, name):
    return table.column(name).values_as_text()


def test_spaces_are_trimmed_and_only_declared_codes_are_missing():
    table, reading = CSV.read(SAMPLES / "spaces.csv", {}, LIMITS)
    assert texts(table, "sex") == ["Male", "Female", None]
    assert texts(table, "job") == ["clerk", None, "NA"]
    assert table.column("age").kind == "number"
    assert reading["missing_codes"] == ["", "?"]
    assert reading["types"] == {"age": "number", "sex": "category", "income": "category", "job": "category"}
    assert (reading["delimiter"], reading["quote"], reading["header"], reading["trim_spaces"]) == (",", '"', True, None)


def test_row_ids_count_from_nought():
    table, _ = CSV.read(SAMPLES / "spaces.csv", {}, LIMITS)
    assert table.row_ids.tolist() == [0, 1, 2]


def test_a_semicolon_and_a_decimal_comma_are_found_together():
    table, reading = CSV.read(SAMPLES / "semicolon.csv", {}, LIMITS)
    assert (reading["delimiter"], reading["decimal"]) == (";", ",")
    assert table.column("betrag").numbers.tolist() == [1.5, 2.5]
    as_asked, _ = CSV.read(SAMPLES / "semicolon.csv", {"decimal": "."}, LIMITS)
    assert texts(as_asked, "betrag") == ["1,5", "2,5"]


def test_names_that_had_to_be_made_are_noted():
    table, reading = CSV.read(SAMPLES / "headers.csv", {}, LIMITS)
    assert table.names == ("id", "id_2", "column_3")
    assert [note["column"] for note in reading["notes"]] == ["id_2", "column_3"]


@pytest.mark.parametrize("delimiter", ["\t", "|", ";", ","])
def test_each_delimiter_is_found(tmp_path, delimiter):
    table, reading = read(tmp_path, f"a{delimiter}b\n1{delimiter}x y\n2{delimiter}z\n")
    assert table.names == ("a", "b")
    assert reading["delimiter"] == delimiter


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfid,b\n1,2\n")[0].names == ("id", "b")


def test_mixed_line_endings_are_evened_out_and_noted(tmp_path):
    table, reading = read(tmp_path, b"a,b\r\n1,2\n3,4\r5,6\r\n")
    assert texts(table, "a") == ["1", "3", "5"]
    assert "line endings" in reading["notes"][0]["message"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_quoted_cells_keep_delimiters_quotes_and_line_breaks(tmp_path):
    table, _ = read(tmp_path, 'a,b\n"x, ""y""\nz",1\n')
    assert texts(table, "a") == ['x, "y"\nz']


def test_values_that_look_like_formulas_or_markup_are_plain_text(tmp_path):
    table, _ = read(tmp_path, "a\n=1+1\n<script>\n@x\n")
    assert texts(table, "a") == ["=1+1", "<script>", "@x"]


def test_what_was_asked_is_done(tmp_path):
    asked = {
        "delimiter": ";",
        "header": False,
        "trim_spaces": False,
        "missing_codes": ["x"],
        "types": {"column_1": "category"},
        "merges": {"column_2": {"f": "female"}},
        "labels": {"columns": {"column_2": "Sex"}, "values": {}},
    }
    table, reading = read(tmp_path, "1;f\n2; f\nx;female\n", asked)
    assert table.names == ("column_1", "column_2")
    assert texts(table, "column_1") == ["1", "2", None]
    assert texts(table, "column_2") == ["female", " f", "female"]
    assert reading["labels"]["columns"] == {"column_2": "Sex"}
    assert reading["merges"] == asked["merges"]


def test_reading_by_the_recorded_reading_gives_the_same(tmp_path):
    content = "a,b\n 1 ,x\n2,?\n"
    first, reading = read(tmp_path, content)
    second, again = read(tmp_path, content, reading)
    assert reading == again
    assert texts(first, "b") == texts(second, "b")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"a,b\n", "no rows"),
        (b"\xd0\xcf\x11\xe0rest", "old Excel workbook"),
        (b"%PDF-1.7", "PDF"),
        (b"<!DOCTYPE html><p>", "web page"),
        (b"<html><form><input type='password'>", "sign-in page"),
        (b'{"a": 1}', "JSON"),
        (b"a,b\n1,\0\n", "byte 6 is zero"),
    ],
)
def test_what_is_no_table_is_refused_in_words(tmp_path, content, said):
    with pytest.raises(TableProblem, match=said) as caught:
        read(tmp_path, content)
    assert caught.value.next_step


def test_a_broken_byte_among_good_ones_is_found_across_chunks(tmp_path):
    content = b"a\n" + b"x" * (2**20 - 43) + "ä".encode() * 20 + b"\xc3\n" + "ö".encode() * 20 + b"\nend\n"
    with pytest.raises(TableProblem, match=f"byte {2**20 - 1}"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "row"),
    [("a,b\n1,2\n1,2,3\n", 2), ("a,b\n1,2\n\n5\n", 2), ('a,b\n"x\ny",2\n1,2\n1,2,3\n', 3), ('a,b\n1,2\n"x,2\n', 2)],
)
def test_a_ragged_row_is_named(tmp_path, content, row):
    with pytest.raises(TableProblem) as caught:
        read(tmp_path, content)
    assert caught.value.row == row


def test_a_number_that_is_asked_for_must_be_one(tmp_path):
    with pytest.raises(TableProblem) as caught:
        read(tmp_path, "a\n1\nx\n", {"types": {"a": "number"}})
    assert (caught.value.row, caught.value.column) == (2, "a")


@pytest.mark.parametrize(
    "asked",
    [
        {"delimiter": "ab"},
        {"encoding": "rot13"},
        {"encoding": "no such"},
        {"decimal": ";"},
        {"skip_rows": -1},
        {"header_rows": 3},
        {"missing": {"a": "x"}},
        {"missing": {"b": ["x"]}},
        {"ragged_rows": "mend"},
        {"schema": {"a": {"low": 3, "high": 1}}},
        {"schema": {"a": {"low": 3}}},
        {"schema": {"a": {"source": "guessed"}}},
        {"header": 1},
        {"foo": 1},
        {"types": {"a": "date"}},
        {"types": {"b": "number"}},
    ],
)
def test_a_recipe_that_cannot_be_used_is_refused(tmp_path, asked):
    with pytest.raises(TableProblem):
        read(tmp_path, "a\n1\n", asked)


def test_limits_are_named(tmp_path):
    with pytest.raises(TableProblem) as rows:
        read(tmp_path, "a\n" + "1\n" * 11, limits=ReadLimits(rows=10))
    with pytest.raises(TableProblem) as columns:
        read(tmp_path, "a,b,c\n1,2,3\n", limits=ReadLimits(columns=2))
    assert (rows.value.limit, columns.value.limit) == ("rows", "columns")


@pytest.mark.parametrize("text", ["1", "-1.5", "+2", ".5", "3.", "1e-3", "0", "0.0", "9007199254740991"])
def test_plain_numbers(text):
    assert plain_number(text) == float(text)


@pytest.mark.parametrize(
    "text", ["", "007", "1,234", "1_000", "nan", "inf", "0x1", "1e999", "12%", "١", "9007199254740993", "1 2"]
)
def test_texts_that_would_lose_something_are_no_numbers(text):
    assert plain_number(text) is None


CELLS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_any_cells_come_back_as_written(tmp_path, cells):
    """Written by Python's csv with every cell quoted; the oracle is the list itself."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("a", "b"), *cells])
    asked = {"delimiter": ",", "trim_spaces": False, "types": {"a": "category", "b": "category"}}
    table, _ = read(tmp_path, out.getvalue(), asked)
    for position, name in enumerate(("a", "b")):
        expected = [None if row[position].strip(" \t") in ("", "?") else row[position] for row in cells]
        assert texts(table, name) == expected


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_numbers_come_back_exactly(tmp_path, numbers):
    table, _ = read(tmp_path, "a\n" + "".join(f"{value!r}\n" for value in numbers))
    assert table.column("a").numbers.tolist() == numbers


# -- two files ------------------------------------------------------------------------------------------------------------


def two(folder: Path, first: str, second: str, asked=None):
    (folder / "one.csv").write_text(first, "utf-8")
    (folder / "two.csv").write_text(second, "utf-8")
    return read_table(folder / "one.csv", folder / "two.csv", asked or {}, LIMITS, (CSV,))


def test_rows_of_the_test_file_follow(tmp_path):
    table, _ = two(tmp_path, "a,b\n1,x\n0,x\n", "b,a\ny,2\nx,3\n")
    assert table.row_ids.tolist() == [0, 1, 2, 3]
    assert table.from_test_file.tolist() == [False, False, True, True]
    assert texts(table, "b") == ["x", "x", "y", "x"]
    assert table.column("a").numbers.tolist() == [1, 0, 2, 3]


def test_a_column_that_is_no_number_in_one_file_is_text_in_both_as_written(tmp_path):
    table, reading = two(tmp_path, "a\n1.0\n2\n", "a\nnone\n")
    assert texts(table, "a") == ["1.0", "2", "none"]
    assert reading["types"] == {"a": "category"}


def test_a_test_file_with_other_columns_is_refused(tmp_path):
    with pytest.raises(TableProblem, match="missing in the test file"):
        two(tmp_path, "a,b\n1,2\n3,4\n", "a\n1\n")


def test_the_database_reaches_no_other_file(tmp_path):
    import duckdb

    from worker.engine.datasets.formats.text_table import open_database

    (tmp_path / "mine.csv").write_text("a\n1\n", "utf-8")
    (tmp_path / "other.csv").write_text("a\n2\n", "utf-8")
    connection = open_database(tmp_path / "mine.csv", LIMITS)
    assert connection.execute("SELECT * FROM read_csv(?)", [str(tmp_path / "mine.csv")]).fetchall() == [(1,)]
    for attempt in (
        f"SELECT * FROM read_csv('{tmp_path}/other.csv')",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(attempt)
    connection.close()
