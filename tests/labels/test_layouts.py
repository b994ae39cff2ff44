import pandas as pd
import pytest
from tables import crowd, sheet_of

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.columns import ColumnNames
from annotrace.labels.layouts import find_layout, long_layout, wide_layout

WIDE = {
    "image": [f"i{k}" for k in range(20)],
    "kim": ["cat", "dog"] * 10,
    "lee": ["cat", "dog", "dog", "dog"] * 5,
}


def layout(columns, find=find_layout, **names):
    return find(sheet_of(columns), ColumnNames(**names))


def refusal(columns, find=find_layout, **names):
    with pytest.raises(InputError) as caught:
        layout(columns, find, **names)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def renamed(columns, *names):
    return dict(zip(names, columns.values(), strict=True))


def test_usual_names_need_no_content():
    columns = {"id": ["a"], "worker": ["b"], "answer": ["c"], "gold": ["d"]}
    found = layout(columns)
    assert (found.item, found.annotator, found.label) == ("id", "worker", "answer")
    assert (found.truth, found.by_content, found.wide) == ("gold", (), False)


def test_columns_of_the_long_form_by_content():
    columns = renamed(crowd()[0], "cliché", "qui", "espèce")
    found = layout(columns)
    assert (found.item, found.annotator, found.label) == ("cliché", "qui", "espèce")
    assert found.by_content == ("item", "annotator", "label")


def test_known_columns_are_completed_by_content():
    columns = renamed(crowd()[0], "image", "wer", "tier")
    found = layout(columns)
    assert (found.item, found.annotator, found.label) == ("image", "wer", "tier")
    assert found.by_content == ("annotator", "label")
    assert layout(columns, label="tier").by_content == ("annotator",)


def test_options_override_content():
    columns, rows = crowd()
    columns["link"] = [f"https://example.org/{k}" for k in rows["item"]]
    assert layout(columns, item="link", annotator="who").item == "link"
    swapped = layout(columns, item="who", annotator="photo", label="animal")
    assert (swapped.item, swapped.annotator, swapped.by_content) == ("who", "photo", ())


def test_an_id_of_rows_is_not_taken_for_the_item_by_its_name():
    columns, _ = crowd()
    found = layout({"id": range(300)} | renamed(columns, "toma", "quién", "animal"))
    assert (found.item, found.annotator, found.label) == ("toma", "quién", "animal")


def test_the_index_that_pandas_wrote_beside_long_columns(tmp_path):
    columns = renamed(crowd()[0], "toma", "quién", "animal")
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv")
    table = LabelTable.read(tmp_path / "a.csv")
    assert (table.n_items, table.n_annotators, table.n_classes) == (100, 8, 3)


def test_columns_named_as_remarks_and_confidence_are_not_guessed():
    columns, _ = crowd()
    grades = [k * k % 7 for k in range(300)]
    columns |= {"Bemerkung": [f"k{k % 3}" for k in range(300)], "certitude": grades}
    assert layout(columns).label == "animal"
    columns["urgency"] = columns.pop("certitude")
    assert "--label animal, or " in refusal(columns)


def test_the_error_shows_the_readings_to_paste():
    columns = renamed(crowd(per_item=1)[0], "the photo", "wer", "tier")
    assert refusal(columns) == (
        "x: it is unclear which columns are items, annotators and labels. Name them: "
        "--item 'the photo' --annotator wer --label tier, or "
        "--item 'the photo' --annotator tier --label wer (item=, annotator=, label= in Python)."
    )


def test_the_error_for_a_table_that_is_neither_long_nor_wide():
    message = refusal({"a": ["x"], "b": ["y"], "c": ["z"]})
    assert "x: found no item and no annotator and no label column; it has 'a', 'b', 'c'." in message
    assert "(--item, --annotator, --label on the command line)" in message
    plain = {"item": ["a", "b"], "label": ["x", "y"], "note": ["one long remark", "and another"]}
    assert "found no annotator column" in refusal(plain)
    assert "found no annotator and no label column; it has 'item'" in refusal({"item": ["a"]})


def test_the_error_cuts_long_names():
    assert len(refusal({"x" * 10_000: ["a"], "worker": ["b"], "label": ["c"]})) < 500
    columns = renamed(crowd(per_item=1)[0], "x" * 10_000, "wer", "tier")
    assert len(refusal(columns)) < 700


def test_wide_has_an_item_and_answers():
    found = layout(WIDE | {"gold": WIDE["kim"]})
    assert found.wide
    assert (found.item, found.answers, found.truth) == ("image", ("kim", "lee"), "gold")
    assert found.set_aside == ()


def test_other_columns_of_a_wide_table_are_set_aside():
    columns = WIDE | {"text": [f"text number {k} of all" for k in range(20)]}
    for find in (find_layout, wide_layout):
        found = layout(columns, find)
        assert (found.answers, found.set_aside) == (("kim", "lee"), ("text",))


@pytest.mark.parametrize("first", ["", "Unnamed: 0", "id"])
def test_wide_takes_the_index_that_pandas_wrote(first):
    assert layout(renamed(WIDE, first, "kim", "lee")).item == first


def test_a_column_that_is_repeated_may_make_a_table_of_few_columns_long():
    columns = WIDE | {"who": ["ann", "bob", "eve", "kit"] * 5}
    message = refusal(columns)
    assert (
        "as 'who' may name annotators or hold labels. Name them: --annotators kim,lee, or"
        in message
    )
    assert layout(columns, wide_layout).answers == ("kim", "lee")
    more = dict.fromkeys(("ada", "kit"), WIDE["kim"])
    assert layout(columns | more).set_aside == ("who",)


def test_one_label_per_item_is_not_wide():
    columns = renamed(crowd(per_item=1)[0], "image", "wer", "tier")
    message = refusal(columns)
    assert "no two columns share a value" in message
    assert "--item image --annotator wer --label tier" in message


def test_named_annotators_are_columns_of_a_wide_table():
    columns = WIDE | {"n": ["1", "2"] * 10, "a,b": WIDE["kim"]}
    found = layout(columns, annotators=("lee", "a,b"))
    assert (found.item, found.answers, found.set_aside) == ("image", ("lee", "a,b"), ())
    assert "has no column 'zed'" in refusal(columns, annotators=("zed",))
    assert "'image' cannot be both the item column and among" in refusal(
        columns, annotators=("image", "kim")
    )
    del columns["image"]
    assert "found no item column" in refusal(columns, annotators=("kim",))


def test_the_error_names_annotators_as_an_option_takes_them():
    columns = WIDE | {"a, b": [f"{k}" for k in range(0, 40, 2)], "x": ["1", "3"] * 10}
    columns |= {"y": ["1", "3"] * 10}
    assert """--annotators kim,lee""" in refusal(columns)
    message = refusal({"image": WIDE["image"], "a, b": ["p"] * 20, "c": ["q"] * 20})
    assert """--annotators '"a, b",c'""" in message


def test_a_wide_table_whose_item_is_not_known_is_shown():
    message = refusal(renamed(WIDE, "toma", "kim", "lee"))
    assert "Name them: --item toma --annotators kim,lee, or " in message


def test_usual_names_are_columns_of_answers_if_a_frame_is_said_to_be_wide():
    columns = renamed(WIDE, "image", "expert", "novice")
    assert layout(columns, wide_layout).answers == ("expert", "novice")
    assert "--item image --annotators expert,novice" in refusal(columns)


def test_a_long_frame_is_not_searched_for_annotators_in_columns():
    assert "from_wide" in refusal({"item": ["a"], "kim": ["1"], "lee": ["0"]}, long_layout)
    found = layout({"item": ["a"], "worker": ["b"], "label": ["c"]}, wide_layout)
    assert not found.wide


def test_two_columns_of_one_name():
    sheet = sheet_of({"item": ["a"], "worker": ["b"], "label": ["c"]})
    object.__setattr__(sheet, "columns", ["item", "worker", "worker", "label"])
    with pytest.raises(InputError, match="columns 2 and 3 are both named 'worker'"):
        find_layout(sheet, ColumnNames())
