import numpy as np
import pytest
from tables import crowd, sheet_of

from annotrace.labels.profiles import Profiles


def profiles(columns, known=()):
    return Profiles(sheet_of(columns), list(columns), known)


def profile(values, name="x"):
    (found,) = profiles({name: values}).columns
    return found


def test_columns_that_hold_nothing_of_use_are_left_out():
    columns, rows = crowd()
    n_rows = len(rows["item"])
    columns |= {
        "version": ["v1"] * n_rows,
        "day": [f"2024-01-{1 + k % 28:02}" for k in range(n_rows)],
        "remark": ["?" if k % 3 == 0 else "" for k in range(n_rows)],
    }
    found = profiles(columns)
    assert {part.name for part in found.columns} == {"photo", "who", "animal"}
    assert [part.name for part in found.constant] == ["version"]
    assert {part.name for part in profiles(columns, ["day"]).columns} >= {"day"}


@pytest.mark.parametrize(
    ("values", "roles"),
    [
        ([f"p{k % 30}" for k in range(90)], {"item", "annotator", "label"}),
        ([f"p{k}" for k in range(90)], {"item"}),
        ([f"{k % 30}.jpg" for k in range(90)], {"item"}),
        ([f"https://example.org/{k % 30}" for k in range(90)], {"item"}),
        ([f"a{k % 9}@example.org" for k in range(90)], {"annotator"}),
        ([k % 9 / 10 for k in range(90)], set()),
        ([k // 30 for k in range(90)], {"item", "annotator"}),
    ],
)
def test_roles_that_values_may_have(values, roles):
    found = profile(values)
    assert {
        role for role in ("item", "annotator", "label") if getattr(found, f"may_be_{role}")
    } == (roles)


def test_numbers_of_rows():
    assert profile(range(50)).is_row_number
    assert profile([f"00000000-0000-0000-0000-{k:012}" for k in range(50)]).is_row_number
    assert not profile([k * 37 % 101 for k in range(50)]).is_row_number
    assert not profile([f"p{k}" for k in range(50)]).is_row_number


def test_numbers_are_read_where_there_are_some():
    numbers = profile(["1", "2", "", "1"] * 10).numbers
    np.testing.assert_array_equal(numbers[:4], [1, 2, np.nan, 1])
    assert profile(["a", "b"] * 10).numbers is None


def test_one_of_the_columns_that_determine_each_other_is_kept():
    columns, rows = crowd()
    columns |= {
        "link": [f"https://example.org/{k}" for k in rows["item"]],
        "full name": [f"Dr. No {k}" for k in rows["annotator"]],
        "initials": [f"{k + 10}" for k in rows["annotator"]],
        "code": rows["label"],
        "species": [f"animal number {k}" for k in rows["label"]],
    }
    found = profiles(columns)
    best = {found.named_best(part, "item").name for part in found.columns}
    assert best == {"photo", "who", "animal"}
    del columns["who"], columns["animal"]
    found = profiles(columns)
    by_role = {
        role: {found.named_best(part, role).name for part in found.columns}
        for role in ("annotator", "label")
    }
    assert by_role == {
        "annotator": {"photo", "initials", "code"},
        "label": {"photo", "full name", "species"},
    }


def test_a_known_column_stands_for_those_it_determines():
    columns, rows = crowd()
    columns["number"] = rows["annotator"]
    assert {part.name for part in profiles(columns, ["number"]).columns} == {
        *("photo", "number", "animal")
    }
