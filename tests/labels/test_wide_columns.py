import numpy as np
import pytest

from annotrace.labels.vocabulary import encode_values
from annotrace.labels.wide_columns import find_answers

N_ROWS = 60
NAMES = ("kim", "lee", "sam", "ada", "eve")


def panel(n_annotators=4, names=NAMES, classes=("cat", "dog"), seed=0):
    """Draw answers of annotators who are right four times in five."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(classes), N_ROWS)
    guesses = rng.integers(0, len(classes), (n_annotators, N_ROWS))
    answers = np.where(rng.random((n_annotators, N_ROWS)) < 0.8, truth, guesses)
    return {names[k]: [classes[c] for c in answers[k]] for k in range(n_annotators)}


def find(columns, is_wide=False):
    encoded = {name: encode_values(list(values)) for name, values in columns.items()}
    return find_answers(encoded, is_wide=is_wide)


RANDOM = np.random.default_rng(1)
NOT_LABELS = {
    "text": [f"some text about {k}" for k in range(N_ROWS)],
    "created_at": [f"2024-01-{1 + k % 28:02}" for k in range(N_ROWS)],
    "url": [f"https://example.org/{k}" for k in range(N_ROWS)],
    "length": RANDOM.normal(50, 10, N_ROWS).round(1).astype(str),
    "row": list(map(str, range(N_ROWS))),
    "year": RANDOM.integers(2015, 2020, N_ROWS).astype(str),
    "version": ["v1"] * N_ROWS,
    "notes": ["blurry" if k % 20 == 0 else "" for k in range(N_ROWS)],
    "empty": [""] * N_ROWS,
    "email": ["a@example.org"] * N_ROWS,
}


@pytest.mark.parametrize("classes", [("cat", "dog"), ("0", "1", "2")])
@pytest.mark.parametrize("name", NOT_LABELS)
def test_other_columns_are_never_annotators(name, classes):
    answers = panel(classes=classes)
    found = find({name: NOT_LABELS[name], **answers})
    assert found.columns == tuple(answers)
    assert found.set_aside == (name,)
    assert found.problem is None


def test_columns_that_share_values_with_each_other_only():
    answers = panel()
    others = {
        "created": NOT_LABELS["created_at"],
        "changed": NOT_LABELS["created_at"],
        "title": NOT_LABELS["text"],
        "heading": NOT_LABELS["text"],
    }
    found = find(answers | others)
    assert (found.columns, found.set_aside) == (tuple(answers), tuple(others))
    assert found.problem is None


def test_two_groups_of_columns_are_unclear():
    countries = {name: RANDOM.choice(["FR", "DE"], N_ROWS) for name in ("sender", "receiver")}
    assert find(panel() | countries).problem == (
        "'kim', 'lee', 'sam', ... share values, and so do 'sender', 'receiver'"
    )


def test_annotators_with_few_labels_some_classes_or_a_misspelling():
    answers = panel(n_annotators=5)
    answers["kim"] = [""] * (N_ROWS - 1) + ["dog"]
    answers["lee"] = ["cat" if value == "cat" else "" for value in answers["lee"]]
    answers["sam"] = ["cta", *answers["sam"][1:]]
    answers["ada"] = [""] * (N_ROWS - 2) + ["dog", "dgo"]
    found = find(answers)
    assert found.columns == tuple(answers)
    assert found.problem is None


def test_annotators_without_labels_are_known_by_their_names():
    answers = panel(names=("w1", "w2", "w3", "w4")) | {"w5": [""] * N_ROWS, "notes": [""] * N_ROWS}
    found = find(answers)
    assert found.columns == ("w1", "w2", "w3", "w4", "w5")
    assert found.set_aside == ("notes",)


def test_many_annotators_with_one_label_each():
    columns = {f"w{k}": [""] * k + [["cat", "dog"][k % 2]] + [""] * (99 - k) for k in range(100)}
    found = find(columns)
    assert len(found.columns) == 100
    assert found.problem is None


def test_many_classes_of_which_each_annotator_uses_other_ones():
    rng = np.random.default_rng(0)
    columns = {f"w{k}": rng.integers(0, 100, 200).astype(str) for k in range(6)}
    found = find(columns)
    assert found.columns == tuple(columns)
    assert found.problem is None


def test_numbers_that_are_partly_those_of_labels_are_unclear():
    columns = panel(classes=("0", "1", "2")) | {
        "n_votes": RANDOM.integers(0, 30, N_ROWS).astype(str)
    }
    assert find(columns).problem == (
        "only some of the values of 'n_votes' are shared with other columns"
    )


@pytest.mark.parametrize("classes", [("1", "2", "3"), ("yes", "no")])
def test_a_column_with_the_codes_of_labels_that_agrees_with_nobody_is_unclear(classes):
    columns = panel(classes=classes) | {"level": RANDOM.choice(classes, N_ROWS)}
    assert find(columns).problem == (
        "'level' has the values of the other columns, but agrees with none"
    )


def test_an_annotator_who_answers_at_random_is_one():
    words = panel() | {"eve": RANDOM.choice(["cat", "dog"], N_ROWS)}
    numbered = panel(names=("w1", "w2", "w3", "w4"), classes=("0", "1"))
    for columns in (words, numbered | {"w5": RANDOM.choice(["0", "1"], N_ROWS)}):
        found = find(columns)
        assert found.columns == tuple(columns)
        assert found.problem is None


def test_columns_without_a_common_value():
    columns = {"who": ["ann", "bob"] * 30, "animal": ["cat", "dog", "hen"] * 20}
    found = find(columns)
    assert found.columns == ()
    assert found.repeated == ("who", "animal")
    assert (
        found.problem
        == "no two columns share a value that is repeated, as annotators share classes"
    )


def test_a_few_rows_that_are_said_to_be_wide():
    columns = {"kim": ["x", ""], "lee": ["y", ""]}
    assert find(columns).columns == ()
    assert find(columns, is_wide=True).columns == ("kim", "lee")
    assert find({"kim": ["x"] * 9, "lee": ["y"] * 9}, is_wide=True).columns == ()


def test_a_single_column_is_an_annotator():
    assert find({"kim": ["a", "b"]}).columns == ("kim",)


def test_what_is_set_aside_may_be_repeated():
    found = find(panel() | {"topic": ["sea", "sky"] * 30, "text": NOT_LABELS["text"]})
    assert found.set_aside == ("topic", "text")
    assert found.repeated == ("topic",)
