"""Guesses, and every way in which roles can be wrong, each at its field."""

from __future__ import annotations

import json

import pytest

from tests.builders import category, make_table, number, table_of
from worker.engine.datasets.profile import profile_table
from worker.engine.datasets.roles import Roles, check_roles, suggest_roles

ROWS = 120


@pytest.fixture(scope="module")
def profile():
    table = make_table()
    extra = (
        number("id", list(range(len(table)))),
        number("grade", [float(i % 3) for i in range(len(table))]),
        category("one", ["same"] * len(table)),
        category("town", [f"t{i % 70}" for i in range(len(table))]),
        category("person", [None if i == 5 else f"p{i // 4}" for i in range(len(table))]),
    )
    return profile_table(table_of(*table.columns, *extra), {})


GOOD = {"target": {"column": "income", "favourable": ">50K"}, "protected": ["sex", "race"]}


def errors(profile, **changes):
    body = {key: value for key, value in (GOOD | changes).items() if value is not ...}
    roles, found = check_roles(body, profile)
    assert (roles is None) == bool(found)
    return {error.field: error.message for error in found}


def test_good_roles_are_completed_and_survive_json(profile):
    roles, found = check_roles(GOOD, profile)
    assert found == ()
    assert roles.features == ("age", "hours", "job", "grade", "town")
    assert set(roles.ignored) == {"id", "one", "person"}
    assert Roles.from_json(json.loads(json.dumps(roles.to_json()))) == roles
    assert check_roles(roles.to_json(), profile) == (roles, ())


def test_a_column_may_be_protected_and_feature(profile):
    roles, _ = check_roles(GOOD | {"features": ["sex", "age"]}, profile)
    assert roles.features == ("sex", "age")
    assert "sex" in roles.protected
    assert "job" in roles.ignored


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"target": ...}, "target"),
        ({"target": 3}, "target"),
        ({"target": {"column": "nope"}}, "target.column"),
        ({"target": {"column": ["income"]}}, "target.column"),
        ({"target": {"column": "income"}}, "target.favourable"),
        ({"target": {"column": "income", "favourable": "50"}}, "target.favourable"),
        ({"target": {"column": "income", "favourable": {}}}, "target.favourable"),
        ({"target": {"column": "income", "favourable": ">50K", "threshold": 1}}, "target"),
        ({"target": {"column": "one", "favourable": "same"}}, "target.column"),
        ({"target": {"column": "race"}, "protected": ["sex"]}, "target.favourable"),
        ({"target": {"column": "sex", "favourable": "Male"}}, "target.column"),
        ({"target": {"column": "income", "threshold": 3}}, "target.threshold"),
        ({"target": {"column": "hours", "threshold": "x"}}, "target.threshold"),
        ({"target": {"column": "hours", "threshold": float("nan")}}, "target.threshold"),
        ({"target": {"column": "hours", "threshold": 10**400}}, "target.threshold"),
        ({"target": {"column": "hours", "threshold": 1000}}, "target.threshold"),
        ({"target": {"column": "hours", "favourable": 40}}, "target.favourable"),
        ({"protected": []}, "protected"),
        ({"protected": "sex"}, "protected"),
        ({"protected": ["nope"]}, "protected[0]"),
        ({"protected": ["sex", "sex"]}, "protected"),
        ({"protected": ["one"]}, "protected[0]"),
        ({"protected": ["age"]}, "cuts.age"),
        ({"protected": ["town"]}, "protected[0]"),
        ({"features": ["nope"]}, "features[0]"),
        ({"features": ["income"]}, "features[0]"),
        ({"features": []}, "features"),
        ({"ignored": ["sex"]}, "ignored[0]"),
        ({"ignored": ["income"]}, "ignored[0]"),
        ({"cuts": 3}, "cuts"),
        ({"cuts": {"sex": [1]}}, "cuts.sex"),
        ({"cuts": {"age": [1]}}, "cuts.age"),
        ({"cuts": {"nope": [1]}}, "cuts.nope"),
        ({"protected": ["age"], "cuts": {"age": []}}, "cuts.age"),
        ({"protected": ["age"], "cuts": {"age": [40, 20]}}, "cuts.age"),
        ({"protected": ["age"], "cuts": {"age": [20, float("inf")]}}, "cuts.age"),
        ({"protected": ["age"], "cuts": {"age": list(range(100))}}, "protected[0]"),
        ({"intersections": [["sex"]]}, "intersections[0]"),
        ({"intersections": [["sex", "sex"]]}, "intersections[0]"),
        ({"intersections": [["sex", "job"]]}, "intersections[0]"),
        ({"intersections": [["sex", "race"], ["race", "sex"]]}, "intersections"),
        ({"intersections": 5}, "intersections"),
        ({"person_id": "person"}, "person_id"),
        ({"person_id": "nope"}, "person_id"),
        ({"person_id": "job", "features": ["job", "age"]}, "features[0]"),
        ({"weight": "income"}, "weight"),
        ({"foo": 1}, "foo"),
    ],
)
def test_each_mistake_is_told_at_its_field(profile, changes, field):
    found = errors(profile, **changes)
    assert field in found
    assert found[field].endswith(".")


def test_too_many_groups_of_combinations_are_refused(profile):
    cuts = {"age": list(range(20, 60, 2))}
    assert "intersections" in errors(
        profile, protected=["sex", "race", "age"], cuts=cuts, intersections=[["age", "race"]]
    )


def test_numbers_with_few_values_are_named_by_their_text(profile):
    for favourable in ("1", 1, 1.0):
        roles, found = check_roles(
            {"target": {"column": "grade", "favourable": favourable}, "protected": ["sex"]}, profile
        )
        assert found == ()
        assert roles.target.favourable == "1"


def test_a_target_with_values_only_in_the_test_file_is_refused():
    table = table_of(
        category("income", ["a", "b"] * 20 + ["a.", "b."] * 5),
        category("sex", ["f", "m"] * 25),
        number("x", [1.0, 2] * 25),
        test_rows=10,
    )
    found = profile_table(table, {})
    assert any("Only in the test file" in note["message"] for note in found["notes"])
    _, problems = check_roles({"target": {"column": "income", "favourable": "a"}, "protected": ["sex"]}, found)
    assert problems[0].field == "target.column"


# -- guesses --------------------------------------------------------------------------------------------------------------


def test_guesses_name_a_reason(profile):
    by_name = {column["name"]: column for column in profile["columns"]}
    assert {name: column["role"] for name, column in by_name.items()} == {
        "age": "protected",
        "hours": "feature",
        "sex": "protected",
        "race": "protected",
        "job": "feature",
        "income": "target",
        "id": "ignored",
        "grade": "feature",
        "one": "ignored",
        "town": "feature",
        "person": "person id",
    }
    assert all(column["reason"].endswith(".") for column in by_name.values())


def test_suggested_roles_can_be_given_as_they_are():
    found = profile_table(make_table(), {})
    body = suggest_roles(found)
    assert body["cuts"] == {"age": [25, 45, 65]}
    roles, problems = check_roles(body, found)
    assert problems == ()
    assert roles.target.column == "income"


def test_a_survey_weight_is_no_feature():
    table = table_of(
        number("fnlwgt", [float(i % 50) for i in range(ROWS)]), number("x", [float(i % 7) for i in range(ROWS)])
    )
    assert profile_table(table, {})["columns"][0]["role"] == "weight"


def test_a_profile_shows_labels_counts_ranges_and_missing_cells():
    table = table_of(number("SEX", [1.0, 2.0, 2.0, None]), category("job", ["b", "a", None, "b"]))
    labels = {"labels": {"columns": {"SEX": "Sex"}, "values": {"SEX": {"2": "female"}}}}
    sex, job = profile_table(table, labels)["columns"]
    assert (sex["label"], sex["type"], sex["missing"], sex["distinct"], sex["low"], sex["high"]) == (
        "Sex",
        "number",
        1,
        2,
        1,
        2,
    )
    assert sex["values"] == [{"value": "2", "label": "female", "count": 2}, {"value": "1", "label": "1", "count": 1}]
    assert (job["low"], job["values"][0]) == (None, {"value": "b", "label": "b", "count": 2})


def test_a_profile_is_json():
    json.dumps(profile_table(make_table(), {}), allow_nan=False)
