"""Laws of encoding and groups, against loops over rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.builders import DATASET, category, make_data, make_roles, make_table, number, table_of
from worker.engine.datasets.encode import encode, encode_features, make_encoding, summary
from worker.engine.datasets.groups import Thresholds, count_groups, group_key, group_label, group_members
from worker.engine.datasets.role_set import Roles, Target
from worker.engine.datasets.split import assign_parts
from worker.engine.datasets.table import from_bytes, to_bytes

ALL_TRAIN = np.zeros(600, dtype=np.int8)


def entries(table, *features):
    roles = Roles(Target("y"), (), features)
    return make_encoding(table, roles, np.zeros(len(table), dtype=np.int8))["columns"]


def test_numbers_go_from_minus_one_to_one_and_are_clamped():
    made = entries(table_of(number("x", [10.0, 20.0, 30.0])), "x")
    values, names = encode_features(table_of(number("x", [10.0, 25.0, 30.0, 99.0, -5.0])), made)
    assert values[:, 0].tolist() == [-1, 0.5, 1, 1, -1]
    assert names == ("x",)
    assert values.dtype == np.float32


def test_a_missing_number_is_the_midpoint_and_an_indicator():
    table = table_of(number("x", [10.0, None, 30.0]))
    values, names = encode_features(table, entries(table, "x"))
    assert names == ("x", "x (missing)")
    assert values.tolist() == [[-1, 0], [0, 1], [1, 0]]


def test_constant_and_empty_numbers_are_zeros():
    table = table_of(number("x", [3.0, 3.0]), number("z", [None, None]))
    values, _ = encode_features(table, entries(table, "x", "z"))
    assert values.tolist() == [[0, 0, 1], [0, 0, 1]]


def test_heavy_tails_go_through_a_logarithm_and_ages_do_not():
    tail = [0.0] * 80 + [float(v) for v in range(1000, 1019)] + [99999.0]
    table = table_of(number("gain", tail), number("age", [20.0 + i % 60 for i in range(100)]))
    gain, age = entries(table, "gain", "age")
    assert (gain["transform"], age["transform"]) == ("log1p", "linear")
    values, _ = encode_features(table, [gain])
    assert values[-1, 0] == pytest.approx(1)
    assert values[85, 0] == pytest.approx(2 * np.log1p(1005) / np.log1p(99999) - 1, abs=1e-6)


def test_a_category_is_one_column_a_value_and_unknown_values_are_none():
    made = entries(table_of(category("c", ["b", "a", None])), "c")
    values, names = encode_features(table_of(category("c", ["a", "z", None])), made)
    assert names == ("c=a", "c=b", "c (missing)")
    assert values.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_only_the_most_frequent_fifty_values_have_a_column():
    cells = [f"v{i:02d}" for i in range(60) for _ in range(60 - i)]
    table = table_of(category("c", cells))
    values, names = encode_features(table, entries(table, "c"))
    assert len(names) == 51
    assert names[-1] == "c (other)"
    assert np.array_equal(values.sum(axis=1), np.ones(len(cells)))
    assert values[:, -1].sum() == sum(60 - i for i in range(50, 60))


def test_bounds_and_lists_are_those_of_the_training_part_and_say_so():
    table, roles = make_table(), make_roles()
    parts = assign_parts(table, roles, DATASET)
    age = make_encoding(table, roles, parts)["columns"][0]
    train = [
        value for value, part in zip(table.column("age").numbers.tolist(), parts.tolist(), strict=True) if part == 0
    ]
    assert (age["low"], age["high"]) == (np.nanmin(train), np.nanmax(train))
    assert age["source"] == "read from the data"


def test_an_encoding_is_json_and_reads_back_the_same():
    table, roles = make_table(), make_roles()
    parts = assign_parts(table, roles, DATASET)
    encoding = make_encoding(table, roles, parts)
    again = json.loads(json.dumps(encoding, allow_nan=False))
    one, two = (encode(table, roles, parts, each, ["everyone"]) for each in (encoding, again))
    assert np.array_equal(one.features, two.features)


def test_other_rows_do_not_change_a_row():
    table, roles = make_table(), make_roles()
    parts = assign_parts(table, roles, DATASET)
    encoding = make_encoding(table, roles, parts)
    whole = encode(table, roles, parts, encoding, ["everyone"])
    keep = np.arange(600) % 3 != 0
    fewer = encode(table.take(keep), roles, parts[keep], encoding, ["everyone"])
    assert np.array_equal(fewer.features, whole.features[keep])
    assert np.array_equal(fewer.unit_ids, whole.unit_ids[keep])
    assert fewer.universe == whole.universe


def test_labels_are_as_the_target_says():
    table = table_of(
        category("c", ["a", "b", "c", None]),
        number("n", [1.0, 2.0, 3.0, None]),
        number("x", [0.0, 1, 2, 3]),
        category("g", ["f", "m", "f", "m"]),
    )
    parts = np.array([0, 1, 2, -1], dtype=np.int8)

    def labels(**target):
        roles = Roles(Target(**target), ("g",), ("x",))
        data = encode(table, roles, parts, make_encoding(table, roles, parts), [])
        return data.labels.tolist(), data.classes

    assert labels(column="c", one_vs_rest="b") == ([0, 1, 0], 2)
    assert labels(column="n", threshold=2.0) == ([0, 1, 1], 2)
    assert labels(column="n", favourable="3") == ([0, 2, 1], 3)


def test_persons_are_numbered_by_their_first_row_so_that_others_do_not_matter():
    who = [f"p{(i * 7) % 60}" for i in range(600)]
    table = table_of(*make_table().columns, category("who", who))
    roles = make_roles(person_id="who")
    parts = assign_parts(table, roles, DATASET)
    encoding = make_encoding(table, roles, parts)
    data = encode(table, roles, parts, encoding, [])
    assert len(set(data.unit_ids.tolist())) == 60
    assert data.unit_ids.max() < data.universe
    keep = np.array([name != "p0" for name in who])
    fewer = encode(table.take(keep), roles, parts[keep], encoding, [])
    assert np.array_equal(fewer.unit_ids, data.unit_ids[keep])
    assert summary(data, table, roles, encoding)["unit"] == "person"


def test_a_table_survives_its_bytes():
    table = make_table()
    again = from_bytes(to_bytes(table))
    assert again.names == table.names
    assert np.array_equal(again.row_ids, table.row_ids)
    for column in table.columns:
        assert again.column(column.name).values_as_text() == column.values_as_text()


# -- groups ---------------------------------------------------------------------------------------------------------------


def test_groups_are_counted_as_a_loop_would():
    table, roles = make_table(), make_roles()
    parts = assign_parts(table, roles, DATASET)
    found = {group.key: group for group in count_groups(table, roles, parts, {}, Thresholds())}
    sex, race, income = (table.column(name).values_as_text() for name in ("sex", "race", "income"))
    rows = list(zip(sex, race, income, parts.tolist(), strict=True))
    women = [row for row in rows if row[0] == "Female" and row[1] == "Black"]
    group = found["sex=Female&race=Black"]
    assert (group.train, group.validation, group.test) == tuple(
        sum(row[3] == part for row in women) for part in (0, 1, 2)
    )
    assert group.base_rate == pytest.approx(sum(row[2] == ">50K" for row in women) / len(women))
    assert group.label_counts["test"]["1"] == sum(row[2] == ">50K" and row[3] == 2 for row in women)
    assert next(iter(found)) == "everyone"
    for name in ("sex", "race"):
        parts_of = [g for g in found.values() if set(g.attributes) == {name}]
        assert sum(g.test for g in parts_of) == found["everyone"].test


def test_members_agree_with_counts():
    data, table, roles = make_data(), make_table(), make_roles()
    counts = count_groups(table, roles, assign_parts(table, roles, DATASET), {}, Thresholds())
    assert [group.key for group in data.groups] == [group.key for group in counts]
    for rows, count in zip(data.groups, counts, strict=True):
        assert (rows.member & (data.parts == 2)).sum() == count.test


def test_missing_values_are_a_group_and_ranges_are_cut_from_below():
    table = table_of(number("age", [24.0, 25.0, 59.5, 60.0, None]), category("y", ["0", "1", "0", "1", "0"]))
    roles = Roles(Target("y", favourable="1"), ("age",), ("age",), cuts={"age": (25.0, 60.0)})
    members = {group.key: group.member.tolist() for group in group_members(table, roles)}
    assert members == {
        "everyone": [True] * 5,
        "age=under 25": [True, False, False, False, False],
        "age=25 to under 60": [False, True, True, False, False],
        "age=60 and over": [False, False, False, True, False],
        "age=not stated": [False, False, False, False, True],
    }


def test_small_groups_are_withheld_or_not_judged():
    cells = ["X"] * 3 + ["M"] * 297
    table = table_of(category("sex", cells), category("y", ["0", "1"] * 150))
    roles = Roles(Target("y", favourable="1"), ("sex",), ("sex",))
    parts = np.full(300, 2, dtype=np.int8)
    found = {group.key: group for group in count_groups(table, roles, parts, {}, Thresholds())}
    assert found["sex=X"].base_rate is None
    assert not found["sex=X"].estimable
    assert "withheld" in found["sex=X"].reason
    assert found["sex=M"].estimable
    few = {g.key: g for g in count_groups(table, roles, parts, {}, Thresholds(estimable_rows=298))}
    assert "not enough to judge" in few["sex=M"].reason


def test_under_twenty_persons_nothing_can_be_estimated():
    who = category("who", [f"p{i % 19}" for i in range(400)])
    table = table_of(who, category("sex", ["m"] * 400), category("y", ["0", "1"] * 200))
    roles = Roles(Target("y", favourable="1"), ("sex",), ("sex",), person_id="who")
    everyone = count_groups(table, roles, np.full(400, 2, dtype=np.int8), {}, Thresholds())[0]
    assert "19 persons" in everyone.reason


def test_keys_cannot_be_confused_by_marks_in_names():
    assert group_key({"a": "b&c=d"}) == "a=b%26c%3Dd"
    assert group_key({"a": "100%"}) == "a=100%25"
    assert group_key({}) == "everyone"


def test_labels_are_those_of_the_recipe():
    reading = {"labels": {"columns": {"SEX": "Sex"}, "values": {"SEX": {"2": "female"}}}}
    assert group_label({"SEX": "2", "age": "under 25"}, reading) == "Sex: female, age: under 25"


def test_training_groups_are_the_values_of_the_first_protected_column():
    data, table = make_data(), make_table()
    sex = np.array(table.column("sex").categories)[table.column("sex").filled_codes()]
    assert data.training_group_count == 2
    for code in (0, 1):
        assert len(set(sex[data.training_groups == code])) == 1
    assert data.training_groups[np.argmin(data.row_ids)] == 0
    assert make_data(protected=("race", "sex")).training_group_count == 3
    roles = make_roles()
    found = summary(data, table, roles, make_encoding(table, roles, data.parts))
    assert found["training_groups"] == {"column": "sex", "count": 2}


def test_training_groups_do_not_depend_on_the_names_of_values_nor_on_the_order_of_rows():
    rows = ["b", None, "a", "b", "c", None]
    for names in ({"a": "a", "b": "b", "c": "c"}, {"a": "z", "b": "y", "c": "x"}):
        for order in (range(6), [5, 3, 1, 0, 2, 4]):
            cells = [names.get(rows[at]) if rows[at] else None for at in order]
            table = table_of(
                category("g", cells),
                number("x", list(map(float, order))),
                category("y", ["p", "q"] * 3),
                row_ids=list(order),
            )
            roles = Roles(Target("y", favourable="p"), ("g",), ("x",))
            parts = np.zeros(6, dtype=np.int8)
            data = encode(table, roles, parts, make_encoding(table, roles, parts), [])
            found = dict(zip(data.row_ids.tolist(), data.training_groups.tolist(), strict=True))
            assert found == {0: 0, 1: 1, 2: 2, 3: 0, 4: 3, 5: 1}
