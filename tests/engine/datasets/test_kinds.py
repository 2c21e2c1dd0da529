"""Each kind of trouble that tables have in the wild, on a small file of its own: shape, types, counts, what is said."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.datasets.files import Read, archive, workbook
from worker.engine.errors import TableProblem

ROWS: list[tuple[Any, ...]] = [
    (
        place + 1,
        20 + place % 40,
        "FM"[place % 2],
        ("North", "East", "South")[place % 3],
        30000.25 + 137 * place,
        place % 2,
    )
    for place in range(40)
]
NAMES = ("id", "age", "sex", "region", "income", "approved")


def text(rows=ROWS, names: Any = NAMES, delimiter=",", decimal=".", end="\n") -> str:
    lines = [names, *rows] if names else rows
    shown = [[str(c).replace(".", decimal) if isinstance(c, float) else str(c) for c in row] for row in lines]
    return end.join(delimiter.join(row) for row in shown) + end


def with_cells(name: str, cells: list[str], **more: Any) -> str:
    """The clean table with other cells in one column."""
    place = NAMES.index(name)
    rows = [(*row[:place], cells[i % len(cells)], *row[place + 1 :]) for i, row in enumerate(ROWS)]
    return text(rows, **more)


CLEAN = text()


def mixed_ends() -> str:
    lines = CLEAN.splitlines()
    return "".join(line + ("\n", "\r\n", "\r")[place % 3] for place, line in enumerate(lines))


WRAPPINGS: dict[str, Callable[[], bytes]] = {
    "byte order mark": lambda: b"\xef\xbb\xbf" + CLEAN.encode(),
    "UTF-16 with a mark": lambda: text(end="\r\n").encode("utf-16"),
    "UTF-16 without one": lambda: CLEAN.encode("utf-16-le"),
    "UTF-32": lambda: CLEAN.encode("utf-32"),
    "semicolons and decimal commas": lambda: text(delimiter=";", decimal=",").encode(),
    "tabs": lambda: text(delimiter="\t").encode(),
    "bars": lambda: text(delimiter="|").encode(),
    "carets": lambda: text(delimiter="^").encode(),
    "trailing delimiter": lambda: CLEAN.replace("\n", ",\n").replace("approved,", "approved").encode(),
    "mixed line endings": lambda: mixed_ends().encode(),
    "old Mac line endings": lambda: text(end="\r").encode(),
    "Windows line endings": lambda: text(end="\r\n").encode(),
    "blank lines": lambda: CLEAN.replace("\n", "\n\n").encode(),
    "every cell quoted": lambda: "\n".join(
        ",".join(f'"{c}"' for c in line.split(",")) for line in CLEAN.splitlines()
    ).encode(),
    "lines above": lambda: ("Report of 2026\nnot for sale,,,,,\n\n" + CLEAN).encode(),
    "a line below": lambda: (CLEAN + "Source: the register\n").encode(),
    "a total below": lambda: (CLEAN + "Total,,,,1306860,20\n").encode(),
    "gzip": lambda: gzip.compress(CLEAN.encode()),
    "zip": lambda: archive({"readme.md": b"# x", "data/table.csv": CLEAN.encode(), "__MACOSX/._table.csv": b"\0"}),
    "gzip in zip": lambda: archive({"table.csv.gz": gzip.compress(CLEAN.encode())}),
    "workbook": lambda: workbook({"Data": [NAMES, *ROWS]}),
    "workbook in gzip": lambda: gzip.compress(workbook({"Data": [["A title"], [], NAMES, *ROWS]})),
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_what_is_only_wrapping_gives_the_clean_table(tmp_path, name):
    clean = Read(tmp_path, CLEAN)
    found = Read(tmp_path, WRAPPINGS[name]())
    assert found.table.names == NAMES
    assert found.reading["types"] == clean.reading["types"]
    for column in NAMES:
        assert found.cells(column) == clean.cells(column), column
    assert found.profile["columns"] == clean.profile["columns"]


def test_the_clean_table_is_what_it_is(tmp_path):
    found = Read(tmp_path, CLEAN)
    assert found.shape == (40, 6)
    kinds = {
        "id": "number",
        "age": "number",
        "sex": "category",
        "region": "category",
        "income": "number",
        "approved": "number",
    }
    assert found.reading["types"] == kinds
    assert found.counts("sex") == {"F": 20, "M": 20}
    assert found.table.column("income").numbers.sum() == pytest.approx(sum(row[4] for row in ROWS))
    assert {name: column["role"] for name, column in found.columns.items()} == {
        "id": "ignored",
        "age": "protected",
        "sex": "protected",
        "region": "feature",
        "income": "feature",
        "approved": "target",
    }
    assert all(column["reason"] for column in found.columns.values())
    assert found.profile["preview"][0] == ["1", "20", "F", "North", "30000.25", "0"]


@pytest.mark.parametrize(
    ("encoding", "word", "read_as"),
    [("latin-1", "Zürich", "latin-1"), ("cp1252", "Zürich – 5 €", "cp1252"), ("cp1251", "Новосибирск", "cp1251")],
)
def test_an_encoding_is_found_with_its_evidence_and_can_be_changed(tmp_path, encoding, word, read_as):
    content = with_cells("region", [word, "North"]).encode(encoding)
    found = Read(tmp_path, content)
    assert found.reading["encoding"] == read_as
    assert found.counts("region") == {word: 20, "North": 20}
    assert word.split()[0] in found.notes()
    other = Read(tmp_path, content, {"encoding": "cp1250" if encoding != "cp1251" else "koi8_r"})
    assert other.reading["encoding"] in ("cp1250", "koi8-r")
    assert len(other.table) == 40


def test_line_breaks_and_quotes_inside_cells_are_kept(tmp_path):
    found = Read(tmp_path, with_cells("region", ['"Asked for\na second ""look"""', "ok"]))
    assert found.counts("region") == {'Asked for\na second "look"': 20, "ok": 20}


def test_duplicate_and_blank_headers_are_told_apart(tmp_path):
    found = Read(tmp_path, text(names=("id", "score", "", "region", "score", "approved")))
    assert found.table.names == ("id", "score", "column_3", "region", "score_2", "approved")
    assert "a second time" in found.notes("score_2")
    assert "no name" in found.notes("column_3")


def test_two_header_rows_are_joined(tmp_path):
    found = Read(tmp_path, "who,,money,\nid,sex,income,debt\n" + "".join(f"{i},F,{i}.5,{i}\n" for i in range(9)))
    assert found.table.names == ("who id", "who sex", "money income", "money debt")
    assert found.shape == (9, 4)
    assert "first two rows" in found.notes()
    one = Read(tmp_path, "X1,X2\nid,pay\n1,2\n3,4\n5,6\n", {"header_rows": 1})
    assert one.cells("X1") == ["id", "1", "3", "5"]


def test_row_names_without_a_header_are_a_column(tmp_path):
    found = Read(tmp_path, "age,sex\n" + "".join(f"r{i},{20 + i},F\n" for i in range(5)))
    assert found.table.names == ("column_1", "age", "sex")
    assert found.cells("age")[:2] == ["20", "21"]
    assert "one name too few" in found.notes()


def test_no_header_is_noticed_and_can_be_changed(tmp_path):
    found = Read(tmp_path, text(names=None))
    assert found.shape == (40, 6)
    assert found.table.names[:2] == ("column_1", "column_2")
    assert "looks like the others" in found.notes()
    told = Read(tmp_path, text(names=None), {"header": True})
    assert told.shape == (39, 6)


def test_years_as_names_are_a_header(tmp_path):
    found = Read(tmp_path, "country,2019,2020\n" + "".join(f"c{i},{i},{i + 1}\n" for i in range(30)))
    assert found.table.names == ("country", "2019", "2020")


CODES = ["1.5", "NA", "?", "-", "NULL", " ", "", "N/A", "n/a", ".", "#N/A", "-99", "unknown", "7"]


def test_codes_among_numbers_are_missing_with_counts_and_a_number_only_when_told(tmp_path):
    cells = [f"{place}.25" for place in range(26)] + CODES
    found = Read(tmp_path, with_cells("income", cells))
    income = found.columns["income"]
    assert income["type"] == "number"
    assert income["missing"] == 11
    taken = {entry["value"]: entry["count"] for entry in income["missing_codes"]}
    assert taken == {"": 2, "?": 1, "NA": 1, "-": 1, "NULL": 1, "N/A": 1, "n/a": 1, ".": 1, "#N/A": 1, "unknown": 1}
    assert income["suspects"] == [{"value": "-99", "count": 1}]
    assert income["low"] == -99
    told = Read(tmp_path, with_cells("income", cells), {"missing": {"income": [*taken, "-99"]}})
    assert told.columns["income"]["missing"] == 12
    assert told.columns["income"]["low"] == 0.25
    kept = Read(tmp_path, with_cells("income", cells), {"missing": {"income": []}})
    assert kept.columns["income"]["type"] == "category"


def test_groups_called_none_null_and_nan_are_kept(tmp_path):
    found = Read(tmp_path, with_cells("sex", ["None", "null", "Nan", "", "Hindu", "NA"]))
    assert found.columns["sex"]["missing"] == 7
    assert found.counts("sex") == {"None": 7, "null": 7, "Nan": 7, "NA": 6, "Hindu": 6}
    assert {entry["value"] for entry in found.columns["sex"]["suspects"]} == {"None", "null", "Nan", "NA"}
    told = Read(tmp_path, with_cells("sex", ["None", "null"]), {"missing": {"sex": ["null"]}})
    assert told.counts("sex") == {"None": 20}


def test_two_kinds_of_thousands_marks_are_numbers(tmp_path):
    found = Read(tmp_path, with_cells("income", ['"34,567.89"', "34 567", '"1,234,567"']))
    assert found.columns["income"]["type"] == "number"
    assert found.table.column("income").numbers[:3].tolist() == [34567.89, 34567, 1234567]
    assert "thousands mark" in found.notes("income")


def test_marks_with_decimal_commas(tmp_path):
    found = Read(tmp_path, "a;b\n1.234,5;x\n2,25;y\n-7,0;z\n")
    assert found.table.column("a").numbers.tolist() == [1234.5, 2.25, -7]
    assert found.reading["decimal"] == ","


def test_currency_and_percent_are_offered_as_numbers_and_read_when_told(tmp_path):
    content = with_cells("income", ['"$32,792.52"', "31626 €", "EUR 5"]).replace("North", "60.6 %")
    found = Read(tmp_path, content)
    assert found.columns["income"]["type"] == "category"
    assert set(found.columns["income"]["as_number"].split(", ")) == {"$", "€", "EUR"}
    told = Read(tmp_path, content, {"types": {"income": "number"}})
    assert told.table.column("income").numbers[:3].tolist() == [32792.52, 31626, 5]
    assert "stripped" in told.notes("income")


def test_leading_zeros_stay_text(tmp_path):
    found = Read(tmp_path, with_cells("region", ["07030", "00501", "02134"]))
    assert found.reading["types"]["region"] == "category"
    assert set(found.cells("region")) == {"07030", "00501", "02134"}
    assert "leading zeros" in found.notes("region")


def test_long_whole_numbers_stay_text(tmp_path):
    found = Read(tmp_path, with_cells("id", ["9007199254740993", "9007199254740992"]))
    assert set(found.cells("id")) == {"9007199254740993", "9007199254740992"}


def test_the_cells_in_the_way_of_a_number_are_named(tmp_path):
    cells = [str(place) for place in range(39)] + ["twelve"]
    found = Read(tmp_path, with_cells("income", cells))
    assert found.columns["income"]["offending"] == [{"row": 40, "value": "twelve"}]
    assert "row 40" in found.notes("income")


def test_empty_and_constant_columns_are_noted_and_left_out(tmp_path):
    found = Read(tmp_path, with_cells("region", [""]))
    assert found.columns["region"]["role"] == "ignored"
    assert "missing" in found.notes("region")
    constant = Read(tmp_path, with_cells("region", ["EUR"]))
    assert constant.columns["region"]["role"] == "ignored"
    assert "only one value" in constant.notes("region")


def test_hundreds_of_categories_are_capped_by_a_rule_that_is_said(tmp_path):
    rows = [(i, 30, "F", f"district {i % 500:03d}", 1.5 + i, i % 2) for i in range(600)]
    found = Read(tmp_path, text(rows))
    assert found.columns["region"]["distinct"] == 500
    assert "50 most frequent" in found.notes("region")


def test_names_that_look_alike_are_proposed_and_nothing_is_merged(tmp_path):
    names = [
        "Québécois",
        "Que\u0301be\u0301cois",
        "Ma\u0304ori",
        "Māori",
        "Na\u00efve\u200b",
        "Naïve",
        "عرب",
        "汉族",
        "İ",
        "I",
        "🙂",
    ]
    found = Read(tmp_path, text([(i, 30, "F", names[i % 11], 1.5, i % 2) for i in range(66)]))
    assert found.columns["region"]["distinct"] == 11
    assert sorted(merge["into"] for merge in found.columns["region"]["merges"]) == ["Māori", "Naïve", "Québécois"]
    merges = {entry["value"]: "Naïve" for entry in found.columns["region"]["merges"][2]["spellings"]}
    assert Read(tmp_path, text([(1, 1, 1, n, 1, 1) for n in names]), {"merges": {"region": merges}}).columns["region"][
        "distinct"
    ] in (9, 10)


def test_spellings_of_a_group_are_proposed_with_counts_and_merged_when_told(tmp_path):
    cells = ["F", "f", "Female", " female", "F ", "M", "m", "Male", "male ", "MALE"]
    found = Read(tmp_path, with_cells("sex", cells))
    assert found.columns["sex"]["distinct"] == 10
    assert {merge["into"]: merge["count"] for merge in found.columns["sex"]["merges"]} == {"Female": 20, "Male": 20}
    told = {e["value"]: m["into"] for m in found.columns["sex"]["merges"] for e in m["spellings"]}
    merged = Read(tmp_path, with_cells("sex", cells), {"merges": {"sex": told}})
    assert merged.counts("sex") == {"Female": 20, "Male": 20}
    assert merged.columns["sex"]["merges"] == []


def test_spaces_go_where_that_merges_nothing_and_stay_where_it_would(tmp_path):
    assert Read(tmp_path, with_cells("sex", [" F", " M"])).counts("sex") == {"F": 20, "M": 20}
    assert Read(tmp_path, with_cells("sex", [" F", "F"])).counts("sex") == {" F": 20, "F": 20}
    assert Read(tmp_path, with_cells("sex", [" F", "F"]), {"trim_spaces": True}).counts("sex") == {"F": 40}


def test_a_very_long_cell_is_read_and_shortened_in_the_preview(tmp_path):
    found = Read(tmp_path, with_cells("region", ["x" * 200_000, "short"]))
    assert max(len(cell or "") for cell in found.cells("region")) == 200_000
    assert max(len(cell or "") for row in found.profile["preview"] for cell in row) <= 80


def test_formulas_and_markup_are_plain_text(tmp_path):
    cells = [
        "=1+1",
        '"=HYPERLINK(""x"")"',
        "@SUM(1)",
        "+49 30 1",
        "\t=1+1",
        "<img src=x onerror=alert(1)>",
        "{{7*7}}",
        "-",
    ]
    found = Read(tmp_path, with_cells("region", cells))
    assert found.counts("region")["\t=1+1"] == 5
    assert found.counts("region")["<img src=x onerror=alert(1)>"] == 5


def test_rows_that_occur_again_are_counted_and_row_numbers_do_not_hide_them(tmp_path):
    doubled = [row for row in ROWS[:15] for _ in range(3)] + ROWS[15:]
    assert Read(tmp_path, text(doubled)).profile["repeats"] == 30
    numbered = [(place, *row[1:]) for place, row in enumerate(doubled)]
    assert Read(tmp_path, text(numbered)).profile["repeats"] == 30 + _repeats(ROWS)


def _repeats(rows: list[tuple[Any, ...]]) -> int:
    return len(rows) - len({row[1:] for row in rows})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("id,age\n", "no rows"),
        ("id,age\n1,2\n", "only 1 row"),
        ("id,age\n1,2\n3,4,5,6,7\n8,9\n", "Row 2 has 5 cells"),
        ('id,age\n1,2\n3,"4\n5,6\n', "quote"),
        (b"id,age\n1,2\n3,\x004\n", "is zero"),
        ("<html><form><input type=password></form></html>", "sign-in page"),
        (b"PK\x03\x04 no zip", "zip archive"),
        (b"\x1f\x8b no gzip", "gzip"),
        (b"PAR1 no parquet", "Parquet"),
        (b"ARROW1\0\0 no arrow", "Arrow"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_next_step(tmp_path, content, said):
    with pytest.raises(TableProblem, match=said) as caught:
        Read(tmp_path, content)
    assert caught.value.next_step


def test_ragged_rows_are_left_out_only_when_told_and_are_counted(tmp_path):
    content = "a,b,c\n" + "1,2,3\n" * 30 + "4,5\n" + "1,2,3\n" * 5 + "6,7,8,9\n" + "1,2,3\n"
    with pytest.raises(TableProblem) as caught:
        Read(tmp_path, content)
    assert caught.value.row == 31
    found = Read(tmp_path, content, {"ragged_rows": "leave out"})
    assert found.shape == (36, 3)
    assert "2 rows of another width left out, as asked: 31, 37" in found.notes()


def test_a_total_without_an_empty_cell_is_known_by_its_sums(tmp_path):
    assert Read(tmp_path, "region,n\nN,1\nS,2\nTotal,3\n").shape == (2, 2)
    assert Read(tmp_path, "region,n\nN,1\nS,2\nTotal,4\n").shape == (3, 2)
    assert Read(tmp_path, "region,n\nTotal,1\nS,2\nTotal,3\n").shape == (3, 2)


def test_a_total_is_kept_when_told(tmp_path):
    found = Read(tmp_path, CLEAN + "Total,,,,1306860,20\n", {"footer_rows": 0})
    assert found.shape == (41, 6)


def test_large_files_are_read_without_the_second_reader_and_nothing_is_lost(tmp_path):
    rows = [(i, f'"a ""{i % 7}"", b"', i * 0.5) for i in range(120_000)]
    content = text(rows, names=("n", "t", "x"))
    assert len(content) > 2_000_000
    found = Read.__new__(Read)
    from tests.engine.datasets import files
    from worker.engine.catalogue import FORMATS
    from worker.engine.datasets.read import read_table

    path = tmp_path / "large"
    path.write_text(content, "utf-8")
    limits = files.ReadLimits()
    found.table, found.reading = read_table(path, None, {}, limits, FORMATS)
    assert len(found.table) == 120_000
    assert found.table.column("x").numbers.sum() == pytest.approx(sum(row[2] for row in rows))
    assert set(found.cells("t")) == {f'a "{i}", b' for i in range(7)}
    path.write_text(content + '7,"open,1\n8,x,2\n', "utf-8")
    with pytest.raises(TableProblem) as caught:
        read_table(path, None, {}, limits, FORMATS)
    assert caught.value.row == 120_001
    path.write_text(content + "7,x\n8,x,2\n", "utf-8")
    with pytest.raises(TableProblem) as ragged:
        read_table(path, None, {}, limits, FORMATS)
    assert ragged.value.row == 120_001


# -- two files --------------------------------------------------------------------------------------------------------


def test_labels_that_end_in_a_full_stop_in_the_test_file_are_the_same_two(tmp_path):
    train = "39, Male, <=50K\n50, Female, >50K\n28, Male, <=50K\n"
    test = "25, Male, <=50K.\n44, Female, >50K.\n"
    asked = {"header": False}
    found = Read(tmp_path, train, asked, test=test)
    assert found.counts("column_3") == {"<=50K": 3, ">50K": 2}
    assert "full stop" in found.notes("column_3") or "'.'" in found.notes("column_3")
    assert found.reading["test_file_ends"] == {"column_3": "."}
    kept = Read(tmp_path, train, asked | {"test_file_ends": {}}, test=test)
    assert kept.columns["column_3"]["distinct"] == 4
    assert kept.columns["column_3"]["only_in_test_file"] == ["<=50K.", ">50K."]
    assert len(kept.columns["column_3"]["merges"]) == 2


def test_what_is_proposed_counts_both_files(tmp_path):
    first = "sex,y\n" + "F,1\nunknown,0\n" * 5
    found = Read(tmp_path, first, test="sex,y\nfemale,1\nunknown,0\n")
    assert found.columns["sex"]["suspects"] == [{"value": "unknown", "count": 6}]
    assert found.columns["sex"]["merges"][0]["into"] == "female"


def test_free_text_is_left_out_of_the_features_with_a_reason(tmp_path):
    found = Read(tmp_path, text([(*row[:3], f"note {row[0]} of many words", *row[4:]) for row in ROWS]))
    assert found.columns["region"]["role"] == "ignored"
    assert "text of its own" in found.columns["region"]["reason"]
    long = Read(tmp_path, with_cells("region", ["x" * 5_000, "y"]))
    assert max(len(value) for value in long.counts("region")) == 1_000
