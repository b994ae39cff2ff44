import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable


def test_codes_are_positional():
    table = LabelTable.from_codes([1, 0], [0, 0], [2, 0], n_items=4, truth=[2, -1, 0, 1])
    assert table.positional
    assert (table.n_items, table.n_annotators, table.n_classes) == (4, 1, 3)
    assert table.item.tolist() == [0, 1]
    assert table.label.tolist() == [0, 2]
    with pytest.raises(InputError, match="Expected `label` codes from 0 to 1, but entry 0 is 2"):
        LabelTable.from_codes([0], [0], [2], n_classes=2)


@pytest.mark.parametrize("label", [["a", "b"], [[0, 1], [1]], [0.5, 1]])
def test_codes_that_are_no_integers_are_refused(label):
    with pytest.raises(InputError, match="Expected `label` to be integers in one dimension"):
        LabelTable.from_codes([0, 1], [0, 0], label)
