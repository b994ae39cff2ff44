from annotrace.connect import Pulled
from annotrace.labels import LabelTable


def pulled(rows, truth=None, items="abc"):
    item, annotator, label = zip(*rows, strict=True)
    columns = {"item": item, "annotator": annotator, "label": label}
    table = LabelTable.from_long(columns, classes=["x", "y"]).with_items(list(items))
    if truth is not None:
        table = table.replace(truth=truth)
    return Pulled(table, None, {item: {} for item in items})


ROWS = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bo", "y")]


def test_answers_are_counted_with_gold():
    found = pulled([*ROWS, ROWS[0]], truth=[0, -1, -1]).answers()
    assert found[("a", "ann", "x")] == 2
    assert found[("a", "", "x")] == 1
    assert found.total() == 5


def test_changes():
    before = pulled(ROWS)
    assert before.n_changes(before) == 0
    assert pulled([*ROWS, ("c", "bo", "x")]).n_changes(before) == 1
    assert pulled([("a", "ann", "y"), *ROWS[1:]]).n_changes(before) == 1
    assert pulled(ROWS[1:]).n_changes(before) == 1
    assert pulled(ROWS, truth=[0, -1, -1]).n_changes(before) == 1
    assert pulled(ROWS, items="abcd").n_changes(before) == 1
    assert before.n_changes(Pulled(None, None, {item: {} for item in "abc"})) == 3
