import pytest

from annotrace.labels.pandas_objects import frame_rows, wide_orient


@pytest.mark.parametrize(
    ("record", "orient"),
    [
        ({"ann": {"0": "x", "1": None}, "bob": {"0": "x", "1": "y"}}, "columns"),
        ({"0": {"ann": "x", "bob": None}, "1": {"ann": "x", "bob": "y"}}, "index"),
        ({"0": {"0": "x", "1": "y"}, "1": {"0": "x", "1": "y"}}, "unclear"),
        ({"t1": {"ann": "x"}, "t2": {"ann": "y"}}, "unclear"),
        ({"0": {"ann": "x"}, "1": {"bob": "y"}}, None),
        ({"0": {"ann": "x", "bob": "x"}, "1": {"bob": "y", "ann": "y"}}, None),
        ({"0": {}, "1": {}}, None),
        ({"0": "x"}, None),
        ({}, None),
    ],
)
def test_how_pandas_may_have_written_a_wide_frame(record, orient):
    assert wide_orient(record) == orient


def test_the_index_is_added_if_no_column_names_the_items():
    columns = {"ann": {"p": "x", "q": None}, "bob": {"p": "y", "q": "x"}}
    assert frame_rows(columns) == {
        "p": {"": "p", "ann": "x", "bob": "y"},
        "q": {"": "q", "ann": None, "bob": "x"},
    }
    named = {"item": {"p": "1"}, "ann": {"p": "x"}}
    assert frame_rows(named) == {"p": {"item": "1", "ann": "x"}}
    assert frame_rows({"p": named["item"], "q": {"other": "x"}}) == {}
