import numpy as np
import pytest
from tables import crowd, sheet_of

from annotrace.labels.profiles import Profiles
from annotrace.labels.rivals import Rivals
from annotrace.labels.role_evidence import Evidence, Reading

TRUE = ("photo", "who", "animal")


def rivals(columns, true=TRUE, **known):
    """Return the role and the column of each rival of the true reading."""
    profiles = Profiles(sheet_of(columns), list(columns), list(known.values()))
    by_name = {part.name: part for part in profiles.columns}
    reading = Reading(*(by_name[name] for name in true))
    found = Rivals(Evidence(profiles, known)).find(reading)
    return [
        (role, getattr(rival, role).name)
        for rival in found
        for role in Reading._fields
        if getattr(rival, role) is not getattr(reading, role)
    ]


@pytest.mark.parametrize(
    ("further", "role"),
    [
        (lambda rows, rng: rng.integers(0, 3, 300), "label"),
        (lambda rows, rng: [f"s{a}-{rng.integers(3)}" for a in rows["annotator"]], "annotator"),
        (lambda rows, rng: [f"img-{k}" for k in rng.permutation(300)], "item"),
        (lambda rows, rng: np.where(rng.random(300) < 0.9, rows["truth"], 7), "label"),
        (lambda rows, rng: rows["item"] + 0.1 * rng.normal(size=300).round(1), "label"),
        (lambda rows, rng: [f"{c}{k % 2}" for k, c in enumerate(rows["label"])], "label"),
    ],
    ids=["grades", "sessions", "unique names", "suggestions", "scores", "answers in detail"],
)
def test_columns_that_leave_the_reading_open(further, role):
    columns, rows = crowd()
    columns["further"] = further(rows, np.random.default_rng(1))
    assert rivals(columns) == [(role, "further")]


def test_a_known_column_has_no_rival():
    columns, _ = crowd()
    columns["grade"] = np.random.default_rng(1).integers(0, 3, 300)
    assert rivals(columns, label="animal") == []


def test_numbers_at_random_are_measurements_and_words_are_not():
    columns, _ = crowd()
    rng = np.random.default_rng(1)
    seconds = rng.integers(1, 25, 300)
    assert rivals(columns | {"further": seconds}) == []
    assert rivals(columns | {"further": [f"s{k}" for k in seconds]}) == [("label", "further")]


def test_numbers_that_depend_on_items_are_none():
    columns, rows = crowd()
    rng = np.random.default_rng(1)
    grades = rng.integers(0, 80, 100)[rows["item"]] + rng.integers(0, 20, 300)
    assert rivals(columns | {"further": grades}) == [("label", "further")]


def test_what_describes_items_is_explained_in_files_of_some_size():
    for n_items, expected in ((100, []), (20, [("label", "topic")])):
        columns, rows = crowd(n_items=n_items)
        columns["topic"] = np.array(["sea", "sky", "land"])[rows["item"] % 3]
        assert rivals(columns) == expected
        columns["topic"] = [f"c{k}" for k in rows["truth"]]
        assert rivals(columns) == []


def test_labels_that_follow_the_order_of_rows_may_be_no_labels():
    """Days of the week, where the labels are unanimous and look as if they described items."""
    columns, _ = crowd(accuracy=1)
    rng = np.random.default_rng(0)
    days = (np.arange(300) + rng.normal(0, 20, 300)).clip(0, 299) // 60
    columns["weekday"] = [f"day {day:.0f}" for day in days]
    true = ("photo", "who", "weekday")
    assert rivals(columns, true) == [("label", "animal")]
    order = rng.permutation(300)
    shuffled = {name: np.array(values)[order] for name, values in columns.items()}
    assert rivals(shuffled, true) == []


def test_numbers_of_batches_may_be_no_labels():
    columns, _ = crowd(accuracy=1)
    columns["batch"] = (np.arange(300) + 1) // 25
    order = np.random.default_rng(0).permutation(300)
    shuffled = {name: np.array(values)[order] for name, values in columns.items()}
    assert rivals(shuffled, ("photo", "who", "batch")) == [("label", "animal")]


def test_a_counter_of_labels_beside_annotators_with_one_label_each():
    columns, _ = crowd()
    slot = np.tile([1, 2, 3], 100)
    columns = {"photo": columns["photo"], "slot": slot, "animal": columns["animal"]}
    true = ("photo", "slot", "animal")
    assert rivals(columns, true) == []
    columns["who"] = [f"w{k}" for k in np.random.default_rng(0).permutation(300)]
    assert rivals(columns, true) == [("annotator", "who")]


@pytest.mark.parametrize(
    "describe",
    [
        lambda a: f"https://example.org/{a}",
        lambda a: f"a long text about number {a} and more",
        lambda a: f"c{a % 3}",
    ],
    ids=["address", "text", "class"],
)
def test_annotators_that_are_described_as_items_are(describe):
    columns, rows = crowd()
    columns["further"] = [describe(a) for a in rows["annotator"]]
    assert rivals(columns) == [("item", "who"), ("annotator", "photo")]
    assert rivals(columns, item="photo") == []
