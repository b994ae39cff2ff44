import numpy as np
import pytest
from tables import crowd, sheet_of

from annotrace.labels.profiles import Profiles
from annotrace.labels.recognition import Recognition

TRUE = ("photo", "who", "animal")


def recognition(columns, **known):
    return Recognition(Profiles(sheet_of(columns), list(columns), list(known.values())), known)


def find(columns, **known):
    found = recognition(columns, **known).find()
    return None if found is None else tuple(part.name for part in found)


def listed(columns, **known):
    readings = recognition(columns, **known).readings()
    return [tuple(part.name for part in reading) for reading in readings]


FURTHER = {
    "time": lambda rows, rng: [
        f"2024-01-{d:02} 10:{m:02}" for d, m in rng.integers(1, 29, (300, 2))
    ],
    "seconds": lambda rows, rng: rng.integers(1, 25, 300),
    "remark": lambda rows, rng: np.where(rng.random(300) < 0.2, "blurry", ""),
    "address": lambda rows, rng: [f"https://example.org/{k}" for k in rows["item"]],
    "description": lambda rows, rng: [f"this is what photo {k} shows us" for k in rows["item"]],
    "row": lambda rows, rng: rng.permutation(300),
    "version": lambda rows, rng: ["v1"] * 300,
    "sureness": lambda rows, rng: rng.random(300).round(2),
    "truth": lambda rows, rng: [f"c{k}" for k in rows["truth"]],
    "some truth": lambda rows, rng: [f"c{k}" if k else "" for k in rows["truth"]],
    "batch": lambda rows, rng: rows["item"] // 10,
    "name": lambda rows, rng: [f"Kim Lee {k}" for k in rows["annotator"]],
    "email": lambda rows, rng: [f"a{k}@example.org" for k in rows["annotator"]],
    "country": lambda rows, rng: np.array(["FR", "ES", "DE"])[rows["annotator"] % 3],
    "token": lambda rows, rng: [f"{k:08x}-0000-0000-0000-000000000000" for k in range(300)],
    "class number": lambda rows, rng: rows["label"],
}


@pytest.mark.parametrize("name", FURTHER)
def test_further_columns_do_not_mislead(name):
    columns, rows = crowd()
    columns = {name: FURTHER[name](rows, np.random.default_rng(1)), **columns}
    assert find(columns) == TRUE


def test_all_of_them_together_do_not_either():
    columns, rows = crowd()
    rng = np.random.default_rng(1)
    columns |= {name: make(rows, rng) for name, make in FURTHER.items()}
    assert find(columns) == TRUE


@pytest.mark.parametrize("seed", range(3))
def test_numbers_alone_are_enough(seed):
    """Items, annotators and classes are numbers of the same range."""
    columns, rows = crowd(n_items=60, n_annotators=6, n_classes=5, per_item=4, seed=seed)
    columns = {role: rows[role] for role in ("label", "item", "annotator")}
    assert find(columns) == ("item", "annotator", "label")


@pytest.mark.parametrize(
    "changes",
    [
        {"per_item": 8},
        {"n_items": 500, "n_annotators": 2, "per_item": 2},
        {"n_items": 400, "n_classes": 40, "per_item": 5},
        {"n_classes": 2, "accuracy": 0.9},
        {"n_items": 1000, "n_annotators": 100},
    ],
)
def test_designs_that_are_recognised(changes):
    columns, _ = crowd(**changes)
    assert find(columns) == TRUE


@pytest.mark.parametrize(
    "changes",
    [
        {"per_item": 1},
        {"n_items": 20, "n_annotators": 100, "per_item": 50},
        {"n_items": 6},
        {"accuracy": 0.2},
        {"n_annotators": 1, "per_item": 1},
    ],
    ids=["one label per item", "few items", "few rows", "no agreement", "one annotator"],
)
def test_designs_that_are_left_to_the_user(changes):
    columns, _ = crowd(**changes)
    assert find(columns) is None
    assert TRUE in listed(columns)[:4]


def test_two_questions_are_two_readings():
    columns, rows = crowd()
    rng = np.random.default_rng(1)
    columns["colour"] = np.where(rng.random(300) < 0.8, rows["item"] % 4, rng.integers(0, 4, 300))
    assert find(columns) is None
    assert sorted(listed(columns)) == [TRUE, (*TRUE[:2], "colour")]
    assert find(columns, label="animal") == TRUE


def test_a_truth_column_is_never_taken_for_labels():
    columns, rows = crowd(accuracy=0.3)
    columns["species"] = [f"c{k}" for k in rows["truth"]]
    assert find(columns) is None
    del columns["animal"]
    assert find(columns) is None
    assert find(columns, item="photo", annotator="who") is None


def test_labels_of_unanimous_annotators_are_not_told_from_truth():
    columns, _ = crowd(accuracy=1)
    assert find(columns) is None
    assert find(columns, label="animal") == TRUE


@pytest.mark.parametrize("role", ["item", "annotator", "label"])
def test_content_completes_what_is_known(role):
    columns, _ = crowd(n_items=40, n_annotators=45, per_item=6)
    known = dict(zip(("item", "annotator", "label"), TRUE, strict=True))
    assert find(columns) is None or role == "label"
    del known[role]
    assert find(columns, **known) == TRUE


def test_the_third_column_of_items_with_one_label_each():
    columns, rows = crowd(per_item=1)
    assert find(columns, annotator="who", label="animal") == TRUE
    assert find(columns, item="photo", annotator="who") == TRUE
    assert find(columns, item="photo", label="animal") is None
    columns["batch"] = rows["item"] // 20
    assert find(columns, item="photo", annotator="who") is None


def test_a_row_number_is_no_item():
    columns, _ = crowd()
    columns = {"nr": range(300), "who": columns["who"], "animal": columns["animal"]}
    assert find(columns, annotator="who", label="animal") is None


def test_opinions_that_depend_on_annotators_alone_do_not_turn_the_table_around():
    """Annotators of a real crowd, bluebirds, differ more than items do."""
    columns, rows = crowd(n_items=100, n_annotators=30, n_classes=2, per_item=20, accuracy=0.6)
    rng = np.random.default_rng(0)
    is_biased = rng.random(30)[rows["annotator"]] < 0.4
    columns["animal"] = np.where(is_biased, rows["annotator"] % 2, rows["label"])
    assert find(columns) in (None, TRUE)


def test_a_column_about_annotators_with_true_classes_turns_the_table_around():
    columns, rows = crowd(n_items=60, n_annotators=10, per_item=5)
    assert find(columns) == TRUE
    columns["taught"] = [f"c{k % 3}" for k in rows["annotator"]]
    assert find(columns) is None


def test_the_order_of_columns_and_rows_does_not_matter():
    columns, rows = crowd()
    rng = np.random.default_rng(1)
    columns |= {"row": range(300), "batch": rows["item"] // 10}
    order, names = rng.permutation(300), rng.permutation(list(columns))
    assert find({name: np.array(columns[name])[order] for name in names}) == TRUE
