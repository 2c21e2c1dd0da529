"""The declared encoding: bounds and lists, their sources, what falls outside; and features that repeat the target."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import DATASET, category, make_roles, make_table, number, table_of
from tests.engine.audits.test_plan import SUMMARY, ask
from tests.engine.datasets.files import Read
from worker.engine.audits.claim import claim
from worker.engine.datasets.encode import encode, encode_features, make_encoding, summary
from worker.engine.datasets.repeats_target import repeats_target
from worker.engine.datasets.role_set import Roles, Target
from worker.engine.datasets.split import assign_parts
from worker.engine.errors import TableProblem

ALL_TRAIN = np.zeros(6, dtype=np.int8)


def entry(column, declared):
    table = table_of(column, category("y", ["0", "1"] * 3))
    return make_encoding(
        table, Roles(Target("y", favourable="1"), (), (column.name,)), ALL_TRAIN, {column.name: declared}
    )["columns"][0]


def test_declared_bounds_are_used_and_what_lies_outside_is_clamped_and_counted():
    ages = number("age", [10.0, 20.0, 50.0, 90.0, 120.0, None])
    found = entry(ages, {"low": 20, "high": 90, "source": "public"})
    assert (found["low"], found["high"], found["source"], found["clamped"]) == (20, 90, "public", 2)
    values, names = encode_features(table_of(ages), [found])
    assert names == ("age", "age (missing)")
    assert values[:, 0].tolist() == pytest.approx([-1, -1, 2 * 30 / 70 - 1, 1, 1, 0])


def test_bounds_read_from_the_data_clamp_nothing_of_the_training_part():
    found = entry(number("age", [10.0, 20.0, 50.0, 90.0, 120.0, 1.0]), {})
    assert (found["low"], found["high"], found["source"], found["clamped"]) == (1, 120, "read from the data", 0)


def test_a_declared_list_sends_the_rest_to_other_and_counts_it():
    jobs = category("job", ["a", "b", "c", "c", "d", None])
    found = entry(jobs, {"categories": ["a", "c", "z"], "source": "public"})
    assert (found["other"], found["in_other"], found["indicator"]) == (True, 2, True)
    values, names = encode_features(table_of(jobs), [found])
    assert names == ("job=a", "job=c", "job=z", "job (other)", "job (missing)")
    assert values.sum(axis=0).tolist() == [1, 2, 0, 2, 1]
    without = entry(jobs, {"categories": ["a"], "other": False})
    assert (without["other"], without["in_other"], without["source"]) == (False, 4, "read from the data")


def test_a_public_entry_does_not_depend_on_the_data():
    declared = {"low": 0, "high": 100, "transform": "log1p", "source": "public"}
    one = entry(number("x", [1.0, 2, 3, 4, 5, 6]), declared)
    other = entry(number("x", [None, 200.0, -3, 4, 5, 6]), declared)
    assert {k: one[k] for k in one if k != "clamped"} == {k: other[k] for k in other if k != "clamped"}


def test_the_claim_cites_what_is_public_and_what_was_read():
    table, roles = make_table(), make_roles()
    parts = assign_parts(table, roles, DATASET)
    declared = {"age": {"low": 18, "high": 90, "source": "public"}}
    encoding = make_encoding(table, roles, parts, declared)
    data = encode(table, roles, parts, encoding, [])
    found = summary(data, table, roles, encoding)
    assert found["bounds"] == {"public": ["age"], "read_from_data": ["hours", "job"]}
    question = ask()
    said = claim(question, SUMMARY | {"bounds": found["bounds"]})
    assert said["encoding"] == found["bounds"]
    assert "bounds read from the data, not accounted for" in said["open_items"]
    public = claim(question, SUMMARY | {"bounds": {"public": ["age"], "read_from_data": []}})
    assert not [item for item in public["open_items"] if "bounds" in item]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"sex": {"low": 0, "high": 1}}, "bounds for sex, which is a category"),
        ({"age": {"categories": ["1"]}}, "a list of categories for age, which is a number"),
        ({"height": {"low": 0, "high": 1}}, "no such column"),
    ],
)
def test_a_schema_that_does_not_fit_the_columns_is_refused(tmp_path, schema, said):
    with pytest.raises(TableProblem, match=said):
        Read(tmp_path, "age,sex\n1,F\n2,M\n", {"schema": schema})


# -- features that repeat the target ----------------------------------------------------------------------------------


def notes_on(**columns):
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 300)
    made = {name: make(labels, draw) for name, make in columns.items()}
    table = table_of(category("y", [str(label) for label in labels]), *made.values())
    return {note["column"] for note in repeats_target(table, Roles(Target("y", favourable="1"), (), tuple(made)))}


def test_features_that_tell_the_target_are_named_and_good_ones_are_not():
    found = notes_on(
        copy=lambda labels, draw: category("copy", [f"v{label}" for label in labels]),
        finer=lambda labels, draw: category("finer", [f"{label}{int(draw.integers(0, 5))}" for label in labels]),
        cut=lambda labels, draw: number("cut", (draw.random(300) + labels).tolist()),
        below=lambda labels, draw: number("below", (draw.random(300) - labels).tolist()),
        helpful=lambda labels, draw: number("helpful", (draw.normal(size=300) + labels).tolist()),
        noise=lambda labels, draw: category("noise", [str(value) for value in draw.integers(0, 9, 300)]),
        row=lambda labels, draw: category("row", [str(value) for value in range(300)]),
    )
    assert found == {"copy", "finer", "cut", "below"}
