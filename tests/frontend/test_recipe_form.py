"""The form of a recipe there and back: nothing asked where nothing was changed, ticks to merges and codes, errors to fields."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import FormData

from backend.errors import InputProblem
from frontend.pages import recipe_form, recipe_view, roles_form
from frontend.pages.rendering import ENVIRONMENT
from tests.engine.datasets.files import Read
from tests.frontend.facts import HOSTILE
from tests.frontend.test_pages import ANALYST, AUDITOR, check_page, dataset_page, make_dataset
from worker.engine.datasets.reading import check_reading
from worker.engine.datasets.roles import check_roles

TABLE = (
    "sex,income,job,y\n" + "F,1.5,a,1\nf,NA,b,0\nFemale,2.5,a,1\nM,-99,c,0\nMale,3.5,b,1\n" * 4
)  # sex has spellings, income a code and a suspect


@pytest.fixture
def dataset(tmp_path: Path) -> dict[str, Any]:
    return described(Read(tmp_path, TABLE))


def described(found: Read, **changes: Any) -> dict[str, Any]:
    reading = {key: value for key, value in found.reading.items() if key != "found"}
    shown = {"columns": found.profile["columns"], "preview": found.profile["preview"], "notes": found.profile["notes"]}
    base = {"recipe": reading, "asked_recipe": None, "recipe_version": 1, "rows": len(found.table), "encoding": []}
    return make_dataset(**(base | shown | {"suggested_roles": None} | changes))


class Filled(HTMLParser):
    """The fields of the recipe's form as a browser would send them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self._inside = self._area = False
        self._select: str | None = None
        self._chosen: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, value = str(given.get("name")), given.get("value") or ""
        if tag == "form":
            self._inside = "data-recipe" in given
        elif not self._inside:
            return
        elif tag == "input" and (given.get("type") != "checkbox" or "checked" in given):
            self.fields.append((name, value))
        elif tag == "textarea":
            self._area = True
            self.fields.append((name, ""))
        elif tag == "select":
            self._select, self._chosen = name, None
        elif tag == "option" and (self._chosen is None or "selected" in given):
            self._chosen = value

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        if tag == "textarea":
            self._area = False
        if tag == "select" and self._select is not None:
            self.fields.append((self._select, self._chosen or ""))
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._area:
            name, value = self.fields[-1]
            self.fields[-1] = (name, value + data)


def filled(dataset: dict[str, Any], *more: tuple[str, str], **changes: str) -> FormData:
    fields = Filled(dataset_page(dataset)).fields
    return FormData([(name, changes.get(name, value)) for name, value in fields] + list(more))


def asked(form: FormData, dataset: dict[str, Any]) -> dict[str, Any]:
    body = {key: value for key, value in recipe_form.body_of(form, dataset).items() if value is not None}
    assert check_reading(body) == ()
    return body


def test_a_form_sent_as_it_is_asks_for_nothing(dataset: dict[str, Any]) -> None:
    assert asked(filled(dataset), dataset) == {}


def test_ticks_become_merges_and_missing_codes(dataset: dict[str, Any], tmp_path: Path) -> None:
    form = filled(dataset, ("merge.0", "0"), ("missing.1", "1"))
    body = asked(form, dataset)
    assert body == {"merges": {"sex": {"F": "Female", "f": "Female"}}, "missing": {"income": ["NA", "-99"]}}
    again = Read(tmp_path, TABLE, body)
    assert again.counts("sex") == {"Female": 12, "M": 4, "Male": 4}
    assert again.columns["income"]["missing"] == 8
    shown = described(again, asked_recipe=body)
    assert asked(filled(shown), shown) == body
    untick = FormData([(name, value) for name, value in filled(shown).multi_items() if not name.startswith("merge.")])
    assert "merges" not in asked(untick, shown)
    assert recipe_form.body_of(untick, shown)["merges"] is None


def test_fields_of_the_file(dataset: dict[str, Any]) -> None:
    changes = {"encoding": "cp1252", "delimiter": "\t", "quote": "none", "header_rows": "0", "skip_rows": "2"}
    body = asked(filled(dataset, **changes, trim_spaces="no", missing_codes="?\r\nn/a\r\n"), dataset)
    assert body == {
        "encoding": "cp1252",
        "delimiter": "\t",
        "quote": "",
        "header": False,
        "header_rows": 0,
        "skip_rows": 2,
        "trim_spaces": False,
        "missing_codes": ["", "?", "n/a"],
    }
    shown = dataset | {"asked_recipe": body}
    assert asked(filled(shown), shown) == body


def test_types_and_labels(dataset: dict[str, Any]) -> None:
    form = filled(dataset, **{"type.3": "category", "label.0": "Sex", "value.0.0": "Woman", "value.2.1": HOSTILE})
    body = asked(form, dataset)
    first = dataset["columns"][0]["values"][0]["value"]
    second = dataset["columns"][2]["values"][1]["value"]
    assert body["types"] == {"y": "category"}
    assert body["labels"] == {"columns": {"sex": "Sex"}, "values": {"sex": {first: "Woman"}, "job": {second: HOSTILE}}}
    shown = dataset | {"asked_recipe": body}
    assert asked(filled(shown), shown) == body


ENCODING = [
    {"column": "income", "kind": "number", "low": 1.5, "high": 3.5, "transform": "linear", "categories": []}
    | {"source": "read from the data", "clamped": 0, "in_other": 0, "indicator": True, "other": False},
    {
        "column": "job",
        "kind": "category",
        "low": None,
        "high": None,
        "transform": "linear",
        "categories": ["a", "b", "c"],
    }
    | {"source": "read from the data", "clamped": 0, "in_other": 0, "indicator": False, "other": False},
]


def test_bounds_and_lists_are_declared_only_where_they_were_changed(dataset: dict[str, Any]) -> None:
    dataset = dataset | {"encoding": ENCODING}
    assert asked(filled(dataset), dataset) == {}
    changes = {"low.1": "0", "high.1": "10", "source.1": "public", "list.2": "a\r\nb\r\nnurse, night"}
    body = asked(filled(dataset, **changes), dataset)
    assert body["schema"] == {
        "income": {"low": 0.0, "high": 10.0, "transform": "linear", "source": "public"},
        "job": {"categories": ["a", "b", "nurse, night"], "other": True, "source": "read from the data"},
    }
    wrong = filled(dataset, **{"low.1": "five", "high.1": "4"})
    errors = [
        error.__dict__ for error in check_reading({k: v for k, v in recipe_form.body_of(wrong, dataset).items() if v})
    ]
    placed, stray = recipe_form.field_errors(errors, dataset)
    assert list(placed) == ["high.1"]
    assert stray == []


def test_errors_stand_at_their_fields_and_what_was_filled_in_stays(dataset: dict[str, Any]) -> None:
    form = filled(dataset, skip_rows="many")
    errors = [{"field": "skip_rows", "message": "Must be a whole number."}, {"field": "types.z", "message": "No such."}]
    placed, stray = recipe_form.field_errors(errors, dataset)
    posted = recipe_view.Posted(form, placed, stray, InputProblem("Nothing was stored.", errors))
    text = dataset_page(dataset, recipe=posted)
    check_page(text)
    assert 'value="many"' in text
    assert text.count("Must be a whole number.") == 1
    assert "No such." in text


def test_hostile_names_and_values_are_plain_text_everywhere(tmp_path: Path) -> None:
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    content = f"{quoted},y\n" + f"{quoted},1\nb,0\n" * 20
    found = Read(tmp_path, content)
    dataset = described(found)
    text = dataset_page(dataset)
    check_page(text)
    assert "<script>alert" not in text
    assert asked(filled(dataset), dataset) == {}


def test_the_recipe_is_shown_to_a_reader_who_cannot_change_it(dataset: dict[str, Any]) -> None:
    text = dataset_page(dataset, AUDITOR)
    assert "How it was read" in text
    assert "Read it anew" not in text


def test_a_refused_table_offers_to_be_read_otherwise() -> None:
    problem = {"happened": "Row 3 has 4 cells.", "where": "In row 3.", "next": "Correct it."}
    changes = {"state": "refused", "columns": [], "problem": problem, "rows": None, "suggested_roles": None}
    dataset = make_dataset(recipe=None, asked_recipe={"delimiter": ";"}, **changes)
    text = dataset_page(dataset, ANALYST)
    check_page(text)
    assert "Read it anew" in text
    assert asked(filled(dataset), dataset) == {"delimiter": ";"}


def test_values_with_outer_spaces_are_shown_in_quotes() -> None:
    assert ENVIRONMENT.filters["shown"](" female") == "“ female”"
    assert ENVIRONMENT.filters["shown"]("") == "(empty)"


def test_up_to_three_protected_columns_can_be_combined(tmp_path: Path) -> None:
    content = "sex,race,region,y\n" + "F,a,n,1\nM,b,s,0\nM,a,s,1\n" * 40
    columns = Read(tmp_path, content).profile["columns"]
    roles = {"target": {"column": "y", "favourable": "1"}, "protected": ["sex", "race", "region"], "features": []}
    shown = roles_form.fields({"columns": columns}, roles | {"intersections": [["region", "sex", "race"]]}, None)
    assert [pair["value"] for pair in shown["pairs"]] == ["0x1", "0x2", "1x2", "0x1x2"]
    assert [pair["chosen"] for pair in shown["pairs"]] == [False, False, False, True]


def test_a_column_of_long_texts_cannot_be_protected(tmp_path: Path) -> None:
    profile = Read(tmp_path, f"sex,x,y\n{'f' * 300},1,1\nM,2,0\nM,2,1\n").profile
    body = {"target": {"column": "y", "favourable": "1"}, "protected": ["sex"], "features": ["x"]}
    roles, errors = check_roles(body, profile)
    assert roles is None
    assert [error.field for error in errors] == ["protected[0]"]
