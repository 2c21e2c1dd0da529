"""Workbooks, archives, Parquet and Arrow: what is read, what is set aside, and every limit by its name."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.datasets.files import LIMITS, Day, Error, Read, archive, workbook
from worker.engine.catalogue import FORMATS
from worker.engine.datasets.formats.base import Format, ReadLimits, TableFormat, Wrapping
from worker.engine.datasets.read import read_table
from worker.engine.errors import TableProblem

ROWS = [["who", "age", "sex"], *([f"p{i}", 20.0 + i, "FM"[i % 2]] for i in range(6))]


def problem(folder, content, asked=None, limits=LIMITS) -> TableProblem:
    path = folder / "upload"
    path.write_bytes(content)
    with pytest.raises(TableProblem) as caught:
        read_table(path, None, asked or {}, limits, FORMATS)
    assert caught.value.next_step
    assert sorted(path.name for path in folder.iterdir()) == ["upload"]
    return caught.value


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.key)
def test_every_format_keeps_the_protocol(kind):
    assert isinstance(kind, Format)
    assert isinstance(kind, TableFormat) != isinstance(kind, Wrapping)
    assert kind.title
    assert kind.help.endswith(".")
    assert len({one.key for one in FORMATS}) == len(FORMATS)


# -- workbooks --------------------------------------------------------------------------------------------------------


def test_the_first_visible_sheet_with_a_table_is_read_and_the_others_are_named(tmp_path):
    book = workbook({"Cover": [["A title"]], "Old": ROWS[:3], "Data": ROWS, "More": ROWS}, hidden=["Old"])
    found = Read(tmp_path, book)
    assert found.reading["sheet"] == "Data"
    assert found.shape == (6, 3)
    assert found.table.column("age").numbers.tolist() == [20, 21, 22, 23, 24, 25]
    assert "Cover, More, Old (hidden)" in found.notes()
    assert Read(tmp_path, book, {"sheet": "Old"}).shape == (2, 3)
    assert "Cover, Old, Data, More" in problem(tmp_path, book, {"sheet": "None"}).next_step


def test_cells_of_each_kind(tmp_path):
    rows = [
        ["a", "day", "ok", "b"],
        [1.5, Day(43832), True, "007"],
        [Error("#N/A"), Day(43833), False, "x"],
        [3, None, True, "y"],
    ]
    found = Read(tmp_path, workbook({"S": rows}))
    assert found.cells("a") == ["1.5", None, "3"]
    assert found.cells("day") == ["2020-01-02", "2020-01-03", None]
    assert found.cells("ok") == ["TRUE", "FALSE", "TRUE"]
    assert found.cells("b") == ["007", "x", "y"]
    assert "1 cell with an error such as #N/A taken as missing, the first in A3" in found.notes()


def test_a_header_below_a_title_is_found_and_can_be_moved(tmp_path):
    book = workbook({"S": [["Survey 2026"], [], *ROWS]})
    found = Read(tmp_path, book)
    assert found.table.names == ("who", "age", "sex")
    assert found.reading["skip_rows"] == 1
    told = Read(tmp_path, book, {"skip_rows": 1, "header": False})
    assert told.shape == (7, 3)


@pytest.mark.parametrize(
    "sheets", [{"S": []}, {"S": [["only"]]}, {"S": [["a", "b"], ["c", "d"]]}], ids=["empty", "one cell", "hidden"]
)
def test_a_workbook_without_a_visible_table_is_refused(tmp_path, sheets):
    hidden = ["S"] if len(sheets["S"]) == 2 else []
    assert "no visible sheet" in str(problem(tmp_path, workbook(sheets, hidden)))


def test_an_office_document_without_sheets_is_refused(tmp_path):
    document = archive({"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<x/>"})
    assert "without sheets" in str(problem(tmp_path, document))


# -- archives and bombs -----------------------------------------------------------------------------------------------


def test_of_several_tables_one_has_to_be_named(tmp_path):
    packed = archive({"a.csv": b"x,y\n1,2\n3,4\n", "b.csv": b"x\n1\n2\n3\n"})
    assert "a.csv, b.csv" in problem(tmp_path, packed).next_step
    found = Read(tmp_path, packed, {"member": "b.csv"})
    assert found.shape == (3, 1)
    assert found.reading["member"] == "b.csv"
    assert "no file of the name" in str(problem(tmp_path, packed, {"member": "c.csv"}))


@pytest.mark.parametrize("name", ["../a.csv", "/etc/a.csv", "x/../../a.csv", "..\\a.csv", "C:/a.csv"])
def test_names_that_lead_out_of_an_archive_are_refused(tmp_path, name):
    assert problem(tmp_path, archive({name: b"x,y\n1,2\n3,4\n"})).limit == "member names"


def test_what_grows_too_much_is_stopped_at_the_limit_that_is_named(tmp_path):
    much = b"0,0\n" * 5_000_000
    bomb = gzip.compress(much)
    assert problem(tmp_path, bomb, limits=ReadLimits()).limit == "ratio"
    assert problem(tmp_path, archive({"a.csv": much}), limits=ReadLimits()).limit == "ratio"
    lenient = ReadLimits(unpack_ratio=10_000, unpacked_bytes=5_000_000)
    assert problem(tmp_path, bomb, limits=lenient).limit == "unpacked"
    book = io.BytesIO(workbook({"S": ROWS}))
    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as target:
        target.writestr("xl/media/huge.bin", bytes(20_000_000))
    assert problem(tmp_path, book.getvalue(), limits=ReadLimits()).limit == "ratio"


def test_an_archive_of_many_files_or_many_wrappings_is_refused(tmp_path):
    many = archive({f"{i}.csv": b"" for i in range(20)})
    assert problem(tmp_path, many, limits=ReadLimits(members=10)).limit == "members"
    deep = b"a,b\n1,2\n3,4\n"
    for _ in range(5):
        deep = gzip.compress(deep)
    assert "too deeply" in str(problem(tmp_path, deep))


def test_forged_sizes_are_found_out(tmp_path):
    content = bytearray(archive({"a.csv": b"x,y\n" + b"1,2\n" * 1000}))
    place = content.rfind(b"PK\x01\x02") + 24
    content[place : place + 4] = (8).to_bytes(4, "little")
    assert "damaged" in str(problem(tmp_path, bytes(content)))


@pytest.mark.parametrize("kept", [0.3, 0.7, 0.95])
def test_files_that_are_cut_off_are_refused(tmp_path, kept):
    for content in (gzip.compress(CONTENT), archive({"a.csv": CONTENT}), workbook({"S": ROWS}), parquet(), arrow()):
        assert "cut off or damaged" in str(problem(tmp_path, content[: int(len(content) * kept)]))


CONTENT = b"x,y\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(500))


# -- Parquet and Arrow ------------------------------------------------------------------------------------------------


def typed() -> pa.Table:
    return pa.table(
        {
            "n": pa.array([1, 2, None, 4]),
            "big": pa.array([2**53 + 1, 1, 2, 3]),
            "x": pa.array([1.5, float("inf"), None, float("nan")]),
            "d": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("3.50"), decimal.Decimal("4.00")]),
            "s": pa.array(["a", "", None, "b"]),
            "c": pa.array(["u", "v", None, "u"]).dictionary_encode(),
            "ok": pa.array([True, False, None, True]),
            "day": pa.array([datetime.date(2020, 1, 2), None, None, datetime.date(2020, 1, 3)]),
            "list": pa.array([[1], [2], None, [3]]),
            "struct": pa.array([{"a": 1}] * 4),
            "raw": pa.array([b"\0", b"1", None, b"2"]),
            "none": pa.array([None] * 4),
        }
    )


def parquet(table: pa.Table | None = None, **options) -> bytes:
    out = io.BytesIO()
    pq.write_table(typed() if table is None else table, out, **options)
    return out.getvalue()


def arrow(stream: bool = False, **options) -> bytes:
    out = io.BytesIO()
    table = typed()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [parquet(), parquet(compression="zstd", row_group_size=2), arrow(), arrow(stream=True), arrow(compression="zstd")],
    ids=["parquet", "parquet in groups", "arrow", "arrow stream", "arrow packed"],
)
def test_types_of_the_file_are_kept_and_nested_columns_are_set_aside(tmp_path, content):
    found = Read(tmp_path, content)
    assert found.table.names == ("n", "big", "x", "d", "s", "c", "ok", "day", "none")
    assert found.cells("n") == ["1", "2", None, "4"]
    assert found.cells("big") == ["9007199254740993", "1", "2", "3"]
    assert found.cells("x") == ["1.5", None, None, None]
    assert found.cells("d") == ["1.25", None, "3.5", "4"]
    assert found.cells("s") == ["a", None, None, "b"]
    assert found.cells("c") == ["u", "v", None, "u"]
    assert found.cells("ok") == ["true", "false", None, "true"]
    assert found.cells("day") == ["2020-01-02", None, None, "2020-01-03"]
    for name in ("list", "struct", "raw"):
        assert "Set aside" in found.notes(name)
    assert "infinite" in found.notes("x")
    assert found.columns["n"]["type"] == "number"


def test_a_number_can_be_read_as_a_category_and_a_code_be_missing(tmp_path):
    asked = {"types": {"n": "category"}, "missing": {"d": ["4"]}, "merges": {"c": {"v": "u"}}}
    found = Read(tmp_path, parquet(), asked)
    assert found.columns["n"]["type"] == "category"
    assert found.cells("d") == ["1.25", None, "3.5", None]
    assert found.cells("c") == ["u", "u", None, "u"]


def test_columns_of_the_same_name_are_told_apart(tmp_path):
    same = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    assert Read(tmp_path, parquet(same)).cells("a_2") == ["3", "4"]


def test_a_file_of_nested_columns_only_is_refused(tmp_path):
    assert "plain values" in str(problem(tmp_path, parquet(pa.table({"a": pa.array([[1], [2]])}))))


def test_declared_sizes_and_widths_are_limits(tmp_path):
    zeros = parquet(pa.table({"a": pa.array(np.zeros(200_001))}))
    assert problem(tmp_path, zeros).limit == "rows"
    wide = parquet(pa.table({f"c{i}": pa.array([1, 2]) for i in range(301)}))
    assert problem(tmp_path, wide).limit == "columns"
    random = parquet(pa.table({"a": pa.array(np.random.default_rng(0).random(50_000))}))
    assert problem(tmp_path, random, limits=ReadLimits(unpacked_bytes=100_000)).limit == "unpacked"


def test_an_empty_parquet_file_is_refused(tmp_path):
    assert "no rows" in str(problem(tmp_path, parquet(pa.table({"a": pa.array([], pa.int64())}))))


def test_zero_characters_are_refused_with_the_column(tmp_path):
    assert problem(tmp_path, parquet(pa.table({"a": pa.array(["x\0", "y"])}))).column == "a"
    named = pa.table({"a\0b": pa.array([1, 2]), "l\0": pa.array([[1], [2]])})
    assert "\0" not in repr(Read(tmp_path, parquet(named)).profile)
