"""From columns to a table: classes, truth, skipped and repeated rows."""

import polars as pl
import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.building import TableOptions

LONG = {
    "item": ["a", "a", "b", "c"],
    "worker": ["kim", "lee", "kim", "lee"],
    "label": ["x", "y", "unsure", "x"],
}


def test_skipped_answers_leave_their_item_and_annotator():
    table = LabelTable.from_long(LONG | {"worker": ["kim", "lee", "max", "lee"]}, skip=["unsure"])
    assert table.classes.tolist() == ["x", "y"]
    assert table.items.tolist() == ["a", "b", "c"]
    assert table.annotators.tolist() == ["kim", "lee", "max"]
    assert table.labels_per_item().tolist() == [2, 0, 1]


def test_numbers_can_be_skipped():
    table = LabelTable.from_long(LONG | {"label": [1, 0, 2, 1]}, skip=[0])
    assert table.classes.tolist() == [1, 2]
    assert table.n_labels == 3


def test_an_answer_to_skip_that_nobody_gave_is_reported():
    message = (
        "No label is 'Unsure', so `skip` has no effect for it; the most similar label is 'unsure'"
    )
    with pytest.warns(UserWarning, match=message):
        table = LabelTable.from_long(LONG, skip=["Unsure"])
    assert "unsure" in table.classes.tolist()


def test_only_similar_answers_are_suggested():
    rows = {"item": [1, 2], "annotator": [1, 1], "label": ["0", "9"]}
    with pytest.warns(UserWarning, match=r"has no effect for it\.$"):
        LabelTable.from_long(rows, skip=["Unsure"])


def test_the_number_minus_one_as_a_class_is_reported():
    rows = LONG | {"label": [0, -1, 1, 1]}
    with pytest.warns(UserWarning, match="-1 is read as a class. If it means"):
        assert LabelTable.from_long(rows).classes.tolist() == [-1, 0, 1]
    assert LabelTable.from_long(rows, skip=[-1]).n_labels == 3
    assert LabelTable.from_long(rows, classes=[-1, 0, 1]).n_labels == 4
    with pytest.warns(UserWarning, match="-1 is read as a class"):
        LabelTable.from_wide(pl.DataFrame({"item": ["x", "y"], "ann": [0, -1], "bob": [1, 0]}))


def test_empty_answers_can_be_skipped():
    table = LabelTable.from_long(LONG | {"label": ["x", "", None, "y"]}, skip=[""])
    assert table.labels_per_item().tolist() == [1, 0, 1]


def test_given_classes_fix_the_order_and_may_be_unreported():
    table = LabelTable.from_long(LONG, classes=["z", "y", "x", "unsure"])
    assert table.classes.tolist() == ["z", "y", "x", "unsure"]
    assert table.labels_per_class().tolist() == [0, 1, 2, 1]


def test_truth_is_kept_aside_by_item():
    table = LabelTable.from_long(LONG | {"gold": ["x", "", None, "unsure"]}, skip=["unsure"])
    assert table.truth.tolist() == [0, -1, -1]


def test_a_truth_column_without_any_truth_is_none():
    assert LabelTable.from_long(LONG | {"gold": ["", "", "", ""]}).truth is None


@pytest.mark.parametrize(
    ("repeats", "expected"), [("keep", [0, 1, 1]), ("first", [0, 1]), ("last", [1, 1])]
)
def test_repeats(repeats, expected):
    twice = {"item": ["a", "b", "a"], "worker": ["kim"] * 3, "label": ["x", "y", "y"]}
    table = LabelTable.from_long(twice, repeats=repeats)
    assert sorted(table.label.tolist()) == expected


def test_names_that_look_joined_but_are_not_are_fine():
    labels = ["rock, paper", "scissors", "x|y", "[sic]"]
    assert LabelTable.from_long(LONG | {"label": labels}).n_classes == 4


def test_given_classes_admit_scores_and_combinations():
    scores = ["1.5", "2", "2", "1.5"]
    assert LabelTable.from_long(LONG | {"label": scores}, classes=scores[:2]).n_classes == 2
    joined = ["x|y", "x", "y", "x"]
    assert LabelTable.from_long(LONG | {"label": joined}, classes=["x", "y", "x|y"]).n_classes == 3


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"label": ["x", "", "y", "y"]}, {}, "row index 1, column 'label' is empty"),
        ({"label": ["x"] * 4}, {}, "all labels are 'x', but at least two classes"),
        ({"label": ["u"] * 4}, {"skip": ["u"]}, "has no labels except those to skip"),
        ({"label": [""] * 4}, {"skip": ["", "u"]}, "has no labels except those to skip"),
        ({}, {"classes": ["x", "y"]}, "row index 2, column 'label': 'unsure' is not among the"),
        ({}, {"classes": ["x", "x"]}, "Expected `classes` to be at least two distinct names"),
        ({}, {"classes": ["x"]}, "Expected `classes` to be at least two distinct names"),
        ({}, {"classes": ["x", "y", "unsure", "y"]}, "to be at least two distinct names"),
        ({"label": ["x", "y", "x|y", "x"]}, {}, "column 'label': 'x|y' contains several labels"),
        (
            {"label": ["x", "y", "y; x", "x"]},
            {},
            "row index 2, column 'label': 'y; x' contains several labels",
        ),
        ({"label": ["x", "y", '["x"]', "x"]}, {}, "contains several labels"),
        ({"label": ["1", "2.5", "2", "1"]}, {}, "row index 1, column 'label': '2.5' is a score"),
        ({"label": [1.0, 2.5, 2.0, 1.0]}, {}, "'2.5' is a score"),
        (
            {"label": ["1", "2", "2", "1"], "truth": ["1.5", "1.5", "2", "1"]},
            {},
            "row index 0, column 'truth': '1.5' is a score",
        ),
        ({"truth": ["x", "y", "x", "x"]}, {}, "item 'a' is 'x' here and 'y' in another row"),
        ({"truth": ["q", "q", "x", "x"]}, {}, "column 'truth': the truth 'q' is not a class"),
        ({"item": ["a"] * 4}, {"repeats": "error"}, "pair at most once, but 2 labels repeat one"),
        ({"item": ["a"] * 4}, {"repeats": "error"}, "first at the dict, row index 2"),
        ({}, {"repeats": "never"}, "Expected `repeats` to be"),
    ],
)
def test_labels_that_cannot_be_used(changes, options, message):
    with pytest.raises(InputError) as caught:
        LabelTable.from_long(LONG | changes, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_taken_for_labels_is_rejected():
    texts = [f"sentence {k}" for k in range(200)]
    frame = {"item": range(200), "worker": ["kim"] * 200, "label": texts}
    with pytest.raises(InputError, match="200 distinct labels among 200"):
        LabelTable.from_long(frame)


def test_a_skipped_answer_does_not_hide_scores():
    with pytest.raises(InputError, match=r"row index 3, column 'label': '2\.5' is a score"):
        LabelTable.from_long(LONG | {"label": ["1", "unsure", "2", "2.5"]}, skip=["unsure"])


@pytest.mark.parametrize("option", ["skip", "classes"])
def test_text_in_place_of_a_list_is_an_error(option):
    with pytest.raises(InputError, match=rf"Use {option}=\['unsure'\]"):
        TableOptions(**{option: "unsure"})
