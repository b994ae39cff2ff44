import pytest

from annotrace.errors import InputError
from annotrace.labels.columns import ColumnNames, check_distinct, find_column, find_layout


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["item", "annotator", "label"], ("item", "annotator", "label")),
        (["id", "task", "worker", "answer"], ("task", "worker", "answer")),
        (["id", "user", "class"], ("id", "user", "class")),
        (["Image Name", "Rater ID", "Category"], ("Image Name", "Rater ID", "Category")),
        (["WorkerId", "HITId", "Answer"], ("HITId", "WorkerId", "Answer")),
        (["annotation_id", "file_name", "coder", "judgement"], ("file_name", "coder", "judgement")),
        (["label", "class_id", "document_id", "reader"], ("document_id", "reader", "label")),
    ],
)
def test_columns_are_found_by_the_names_people_use(columns, expected):
    layout = find_layout(columns, ColumnNames(), "x")
    assert (layout.item, layout.annotator, layout.label) == expected
    assert not layout.wide


@pytest.mark.parametrize("name", ["truth", "gold", "Ground Truth", "gt", "true_label"])
def test_truth_is_found(name):
    assert find_layout(["item", "worker", "label", name], ColumnNames(), "x").truth == name


def test_a_given_name_takes_precedence():
    layout = find_layout(["item", "id", "worker", "label"], ColumnNames(item="id"), "x")
    assert layout.item == "id"


def test_wide_has_an_item_and_answers():
    layout = find_layout(["image", "kim", "lee", "gold"], ColumnNames(), "x")
    assert layout.wide
    assert (layout.item, layout.answers, layout.truth) == ("image", ("kim", "lee"), "gold")


@pytest.mark.parametrize("first", ["", "Unnamed: 0"])
def test_wide_takes_the_index_that_pandas_wrote(first):
    assert find_layout([first, "kim", "lee"], ColumnNames(), "x").item == first


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (["a", "b"], {"item": "c"}, "x has no column 'c'; it has 'a', 'b'."),
        (["item", "label", "n"], {}, "x: found no annotator column; it has 'item', 'label', 'n'."),
        (["a", "b", "c"], {}, "found no item and no annotator and no label column"),
        (["item"], {}, "found no annotator and no label column; it has 'item'"),
        (["item", "worker", "worker", "label"], {}, "columns 2 and 3 are both named 'worker'"),
        (
            ["photo", "who", "label"],
            {"item": "photo", "annotator": "photo"},
            "x: 'photo' cannot be both the item and the annotator column",
        ),
        (["item", "worker", "label"], {"truth": "label"}, "both the label and the truth column"),
        (["task_id", "task_name", "worker", "label"], {}, "both 'task_id' and 'task_name' may be"),
    ],
)
def test_undetected_columns_are_an_error_that_lists_the_columns(columns, given, message):
    with pytest.raises(InputError, match=r".") as caught:
        find_layout(columns, ColumnNames(**given), "x")
    assert message in str(caught.value)


def test_the_error_names_the_options():
    with pytest.raises(InputError, match=r"annotator= \(--annotator on the command line\)"):
        find_layout(["item", "label", "n"], ColumnNames(), "x")


def test_the_error_cuts_long_names():
    with pytest.raises(InputError, match="found no item") as caught:
        find_layout(["x" * 10_000, "worker", "label"], ColumnNames(), "x")
    assert len(str(caught.value)) < 500


def test_an_id_of_a_row_is_no_label():
    assert find_column(["annotation_id", "answer_id"], "label", "x") is None


def test_each_of_many_columns_is_looked_at_once():
    compared = []

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    check_distinct([Name(f"person {k}") for k in range(1000)], "x")
    assert len(compared) < 1000
