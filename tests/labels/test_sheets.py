import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable


@pytest.fixture
def write(tmp_path):
    def write(**contents):
        for name, content in contents.items():
            (tmp_path / f"{name}.csv").write_text(content)
        return tmp_path

    return write


def test_tables_in_a_folder_are_read_as_one(write):
    folder = write(a="item,worker,label\na,kim,x\n", b="worker,item,label\nlee,a,y\nlee,b,y\n")
    table = LabelTable.read(folder)
    assert table.to_frame().rows() == [("a", "kim", "x"), ("a", "lee", "y"), ("b", "lee", "y")]
    assert LabelTable.read([folder / "a.csv", folder / "b.csv"]) == table


def test_a_bad_cell_is_named_by_its_own_file(write):
    folder = write(a="item,worker,label\na,kim,x\n", b="item,worker,label\na,lee,y\n,lee,y\n")
    with pytest.raises(InputError, match=r"b\.csv, row 3, column 'item' is empty"):
        LabelTable.read(folder)


def test_other_columns_are_rejected(write):
    folder = write(a="item,worker,label\na,kim,x\n", b="item,worker,said\na,lee,y\n")
    with pytest.raises(
        InputError, match=r"b\.csv and .*a\.csv have different columns \('label', 's"
    ):
        LabelTable.read(folder)


def test_the_truth_of_an_unlabelled_item_of_a_wide_frame_is_kept():
    wide = {"item": ["a", "b"], "kim": ["x", ""], "lee": ["y", ""], "truth": ["x", "y"]}
    assert LabelTable.from_wide(wide).truth.tolist() == [0, 1]
