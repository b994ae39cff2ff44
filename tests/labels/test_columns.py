import pytest

from annotrace.errors import InputError
from annotrace.labels.columns import (
    ColumnNames,
    as_columns,
    check_distinct,
    find_column,
    find_roles,
    is_other,
    is_weak_item,
)


def roles(columns, **given):
    return find_roles(columns, ColumnNames(**given), "x")


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
        (["Bild", "Bearbeiter", "Klasse"], ("Bild", "Bearbeiter", "Klasse")),
        (["Tâche", "Évaluateur", "Étiquette"], ("Tâche", "Évaluateur", "Étiquette")),
        (["imagen", "anotador", "anotación"], ("imagen", "anotador", "anotación")),
    ],
)
def test_columns_are_found_by_the_names_people_use(columns, expected):
    found = roles(columns)
    assert (found["item"], found["annotator"], found["label"]) == expected


@pytest.mark.parametrize(
    "name", ["truth", "gold", "Ground Truth", "gt", "true_label", "Wahrheit", "vérité", "verdad"]
)
def test_truth_is_found(name):
    assert roles(["item", "worker", "label", name])["truth"] == name


def test_a_given_name_takes_precedence():
    assert roles(["item", "id", "worker", "label"], item="id")["item"] == "id"


def test_accents_may_be_composed_or_not():
    assert find_column(["re\u0301ponse"], "label", "x") == "re\u0301ponse"
    assert find_column(["r\u00e9ponse"], "label", "x") == "r\u00e9ponse"


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (["a", "b"], {"item": "c"}, "x has no column 'c'; it has 'a', 'b'."),
        (
            ["photo", "who", "label"],
            {"item": "photo", "annotator": "photo"},
            "x: 'photo' cannot be both the item and the annotator column",
        ),
        (["item", "worker", "label"], {"truth": "label"}, "both the label and the truth column"),
        (["task_id", "task_name", "worker", "label"], {}, "both 'task_id' and 'task_name' may be"),
    ],
)
def test_names_that_cannot_be_used(columns, given, message):
    with pytest.raises(InputError) as caught:
        roles(columns, **given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "text", "item"),
    [
        (["id", "Tweet"], "Tweet", "id"),
        (["review_id", "review", "stars"], "review", "review_id"),
        (["sentence_id", "worker"], None, "sentence_id"),
        (["item", "comment_id", "content"], "content", "item"),
        (["title", "text"], "text", None),
        (["name", "value"], None, None),
    ],
)
def test_an_id_of_a_text_is_the_item_and_no_text(columns, text, item):
    assert find_column(columns, "text", "x") == text
    assert find_column(columns, "item", "x") == item


def test_an_id_of_a_row_is_no_label():
    assert find_column(["annotation_id", "answer_id"], "label", "x") is None
    assert find_column(["Klasse_ID"], "label", "x") == "Klasse_ID"


def test_names_that_say_little_or_something_else():
    assert is_weak_item("ID")
    assert not is_weak_item("task_id")
    assert is_other("Durée")
    assert is_other("created_at")
    assert not is_other("label")


def test_several_columns_are_a_list():
    assert as_columns(["a", "b"]) == ("a", "b")
    assert as_columns(None) == ()
    with pytest.raises(InputError, match=r"Use annotators=\['ann'\]"):
        as_columns("ann")


def test_each_of_many_columns_is_looked_at_once():
    compared = []

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    check_distinct([Name(f"person {k}") for k in range(1000)], "x")
    assert len(compared) < 1000
    with pytest.raises(InputError, match="columns 2 and 3 are both named 'worker'"):
        check_distinct(["item", "worker", "worker"], "x")
