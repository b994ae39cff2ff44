import pytest

from annotrace.errors import InputError
from annotrace.labels.formats.base import Answer, Questions, Record, Skipped

RECORD = Record(3, "a.json, record 3", {"id": "7", "name": "", "tags": [{"x": 1}, 2], "data": {}})


def test_a_part_has_the_kind_that_is_expected():
    assert RECORD.part("data", dict) == {}
    assert RECORD.part("missing", list, optional=True) == []
    with pytest.raises(InputError, match=r"a\.json, record 3: field 'id' is not a list"):
        RECORD.part("id", list)
    with pytest.raises(InputError, match="not all of 'tags' are objects"):
        RECORD.objects("tags")


def test_an_item_is_named_by_the_first_field_with_text():
    assert RECORD.item(None, ["name", "id"]) == "7"
    with pytest.raises(InputError, match=r"'name' cannot name the item.* Fields with text: 'id'"):
        RECORD.item("name", ["id"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("cat", Answer(3, "7", "kim", "cat")),
        (["cat"], Answer(3, "7", "kim", "cat")),
        (True, Answer(3, "7", "kim", "true")),
        ([], Skipped("empty")),
        (None, Skipped("empty")),
    ],
)
def test_an_answer_has_one_label_or_is_skipped(values, expected):
    assert RECORD.answer("7", "kim", values) == expected


def test_the_only_question_is_chosen():
    questions = Questions()
    assert questions.choose({"mood": "good"}, "x") == "good"
    assert questions.choose({}, "x") is None
    with pytest.raises(InputError, match=r"x: there are several questions \('mood', 'style'\)"):
        questions.choose({"style": "plain"}, "x")


def test_a_named_question_is_chosen_and_must_occur():
    questions = Questions("mood")
    assert questions.choose({"style": "plain", "mood": "good"}, "x") == "good"
    questions.check_found("a.json")
    with pytest.raises(InputError, match=r"a\.json has no question 'tone'; it has 'mood'"):
        Questions("tone", ["mood"]).check_found("a.json")
