import pytest
from fake_label_studio import choice

from annotrace.connect.label_studio.tasks import (
    find_control,
    has_label,
    prepare_task,
    with_marked_labels,
)
from annotrace.errors import ConnectError

CONFIG = {
    "kind": {"type": "Choices", "to_name": ["text"]},
    "stars": {"type": "Rating", "to_name": ["text"]},
    "better": {"type": "Pairwise", "to_name": ["left", "right"]},
    "boxes": {"type": "RectangleLabels", "to_name": ["image"]},
}


def annotation(number, user, name, **fields):
    given = {"id": number, "completed_by": user, "result": choice(name)}
    return {**given, "was_cancelled": False, "ground_truth": False, **fields}


@pytest.mark.parametrize(
    ("name", "label", "kind", "value"),
    [
        ("kind", "a", "choices", {"choices": ["a"]}),
        ("stars", "4", "rating", {"rating": 4}),
        ("better", "left", "pairwise", {"selected": "left"}),
    ],
)
def test_a_class_becomes_an_answer_and_back(name, label, kind, value):
    control = find_control(CONFIG, name, "project")
    answer = control.answer(label)
    assert (answer["type"], answer["value"]) == (kind, value)
    assert control.class_of({"was_cancelled": False, "result": [answer]}) == label
    assert control.class_of({"was_cancelled": True, "result": [answer]}) is None
    assert control.class_of({"was_cancelled": False, "result": [answer, answer]}) is None
    assert control.class_of({"was_cancelled": False, "result": []}) is None


def test_the_only_control_of_choices_is_found():
    only = {name: CONFIG[name] for name in ("kind", "boxes")}
    assert find_control(only, None, "project").name == "kind"


@pytest.mark.parametrize("name", [None, "boxes", "other"])
def test_a_control_must_be_named_and_have_classes(name):
    with pytest.raises(ConnectError, match="Name one with --question"):
        find_control(CONFIG, name, "project")


def test_annotators_have_their_address_and_annotations_their_order():
    raw = {
        "id": 3,
        "data": {"text": "a"},
        "annotations": [annotation(9, 2, "b"), annotation(4, 5, "a")],
    }
    task = prepare_task(raw, {2: "ann@example.com"})
    assert [a["id"] for a in task["annotations"]] == [4, 9]
    assert [a["completed_by"] for a in task["annotations"]] == ["5", "ann@example.com"]


def test_labels_are_answers_that_are_neither_cancelled_nor_truth():
    for fields in ({"was_cancelled": True}, {"ground_truth": True}, {"result": []}):
        assert not has_label({"annotations": [annotation(1, 2, "a", **fields)]})
    assert has_label({"annotations": [annotation(1, 2, "a")]})


def test_truth_counts_as_a_label_of_those_who_label():
    """Else the correct answer of an annotator, marked, would count for nobody."""
    marked = annotation(1, "ann", "a", ground_truth=True)
    by_expert = annotation(2, "expert", "b", ground_truth=True)
    tasks = [{"annotations": [marked, by_expert]}, {"annotations": [annotation(3, "ann", "a")]}]
    found = with_marked_labels(tasks)
    assert found[0]["annotations"] == [marked, by_expert, marked | {"ground_truth": False}]
    assert found[1] == tasks[1]
