import numpy as np
import pytest

from annotrace.aggregation import make
from annotrace.diagnosis import copies, diagnose
from annotrace.diagnosis.copies import find_copies
from annotrace.labels.table import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels

N_CLASSES, N_ITEMS = 4, 600
NOTHING_KNOWN = np.zeros((N_ITEMS, N_CLASSES))


@pytest.fixture
def truth():
    return np.random.default_rng(1).integers(0, N_CLASSES, N_ITEMS)


@pytest.fixture
def confusion():
    return hammer_spammers(12, N_CLASSES, 0.7, 0)


def copied(table, of, by, share=1.0):
    """Give one annotator the labels of another on the items of both, or a share of them."""
    label = table.label.copy()
    said = dict(zip(*(part[table.annotator == of] for part in (table.item, label)), strict=True))
    copying = np.random.default_rng(2).random(len(label)) < share
    for row in np.flatnonzero((table.annotator == by) & copying):
        label[row] = said.get(table.item[row], label[row])
    return table.replace(label=label)


def repeated(table, of):
    """Give every label of one annotator a second time, by another name."""
    rows = np.append(np.arange(table.n_labels), np.flatnonzero(table.annotator == of))
    annotator = table.annotator[rows]
    annotator[table.n_labels :] = table.n_annotators
    sizes = {"n_items": table.n_items, "n_classes": table.n_classes}
    codes = table.item[rows], annotator, table.label[rows]
    return LabelTable.from_codes(*codes, n_annotators=table.n_annotators + 1, **sizes)


def pairs(found):
    return list(zip(found.first.tolist(), found.second.tolist(), strict=True))


@pytest.mark.parametrize("share", [0.8, 1.0])
def test_who_copies_is_found_with_the_share_of_answers_copied(truth, confusion, share):
    table = simulate_labels(truth, confusion, labels_per_item=6, random_state=0)
    table = copied(table, of=7, by=3, share=share)
    found = find_copies(table, NOTHING_KNOWN, confusion)
    assert pairs(found) == [(3, 7)]
    both = np.intersect1d(*(table.item[table.annotator == who] for who in (3, 7)))
    assert found.n_shared.tolist() == [len(both)]
    assert found.share[0] == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("method", ["hierarchical", "dawid-skene", "pooled"])
def test_copies_that_are_believed_against_all_others_are_found(method):
    """Two equal labels of five decide what is taken for right, and who gave them seems to know."""
    truth = np.random.default_rng(3).choice(N_CLASSES, 800, p=[0.4, 0.3, 0.2, 0.1])
    often_first = np.tile([0.7, 0.1, 0.1, 0.1], (1, N_CLASSES, 1))
    confusion = np.concatenate([hammer_spammers(8, N_CLASSES, 0.75, 1), often_first])
    table = repeated(simulate_labels(truth, confusion, labels_per_item=4, random_state=0), of=2)
    model = make(method).fit(table)
    assert model.skill_[[2, 9]].min() > 0.9 > confusion[2].diagonal().max()
    assert pairs(model.diagnosis_.copies) == [(2, 9)]


@pytest.mark.parametrize("n_alone", [0, N_ITEMS // 2])
def test_two_who_know_better_and_are_believed_are_not_accused(truth, n_alone):
    """Two experts among people who are often mistaken, and on items that nobody else has seen."""
    expert = np.tile(0.97 * np.eye(N_CLASSES) + 0.0075, (2, 1, 1))
    confusion = np.concatenate([expert, hammer_spammers(8, N_CLASSES, 0.6, 0)])
    activity = np.where(np.arange(10) < 2, 5, 1)
    for seed in range(5):
        table = simulate_labels(
            truth, confusion, labels_per_item=4, activity=activity, random_state=seed
        )
        seen = (table.annotator < 2) | (table.item >= n_alone)
        codes = (part[seen] for part in (table.item, table.annotator, table.label))
        sizes = {"n_items": N_ITEMS, "n_annotators": 10, "n_classes": N_CLASSES}
        model = make("pooled").fit(LabelTable.from_codes(*codes, **sizes))
        assert model.skill_[:2].min() > 0.9
        assert pairs(model.diagnosis_.copies) == []


def test_those_who_work_by_themselves_are_not_accused(truth, confusion):
    for seed in range(10):
        table = simulate_labels(truth, confusion, labels_per_item=6, random_state=seed)
        assert pairs(find_copies(table, NOTHING_KNOWN, confusion)) == []


def test_items_that_mislead_everybody_accuse_nobody(truth, confusion):
    rng = np.random.default_rng(3)
    seems = np.where(rng.random(N_ITEMS) < 0.4, rng.integers(0, N_CLASSES, N_ITEMS), truth)
    for seed in range(5):
        clear, misled = (
            simulate_labels(seen, confusion, labels_per_item=6, random_state=seed)
            for seen in (truth, seems)
        )
        label = np.where(rng.random(clear.n_labels) < 0.5, clear.label, misled.label)
        table = clear.replace(label=label)
        assert pairs(find_copies(table, NOTHING_KNOWN, confusion)) == []


def test_the_same_answer_to_everything_is_no_copy(truth, confusion):
    always = np.tile([0.97, 0.01, 0.01, 0.01], (2, N_CLASSES, 1))
    confusion = np.concatenate([confusion, always])
    table = simulate_labels(truth, confusion, labels_per_item=6, random_state=0)
    assert pairs(find_copies(table, NOTHING_KNOWN, confusion)) == []
    drawn_to_others = 0.7 * confusion + 0.3 * confusion.mean(axis=0)
    assert pairs(find_copies(table, NOTHING_KNOWN, drawn_to_others)) == []


def test_two_who_are_right_against_the_others_are_cleared_by_the_known_truth(truth):
    """Two experts look like one person where the others are mistaken about half of a class."""
    expert = 0.96 * np.eye(N_CLASSES) + 0.01
    confusion = np.concatenate([np.tile(expert, (2, 1, 1)), hammer_spammers(10, N_CLASSES, 0.9, 0)])
    seems = np.where((truth == 2) & (np.arange(N_ITEMS) % 2 == 0), 3, truth)
    right, misled = (
        simulate_labels(seen, confusion, labels_per_item=6, random_state=0)
        for seen in (truth, seems)
    )
    table = right.replace(label=np.where(right.annotator < 2, right.label, misled.label))
    prior = np.full(N_CLASSES, 1 / N_CLASSES)
    given = table, np.eye(N_CLASSES)[seems], confusion
    assert pairs(diagnose(*given, prior=prior).copies) == [(0, 1)]
    assert pairs(diagnose(*given, prior=prior, gold=truth).copies) == []


def test_a_few_items_in_common_prove_nothing(truth, confusion):
    table = simulate_labels(truth[:60], confusion, labels_per_item=6, random_state=0)
    table = copied(table, of=7, by=3)
    both = np.intersect1d(*(table.item[table.annotator == who] for who in (3, 7)))
    assert 5 < len(both) < copies.LEAST_SHARED
    assert pairs(find_copies(table, NOTHING_KNOWN[:60], confusion)) == []


def test_of_many_labels_some_items_are_looked_at(monkeypatch, truth, confusion):
    table = simulate_labels(truth, confusion, labels_per_item=9, random_state=0)
    table = copied(table, of=7, by=3)
    whole = find_copies(table, NOTHING_KNOWN, confusion)
    monkeypatch.setattr(copies, "_CELLS", 36 * N_ITEMS * N_CLASSES / 2)
    half = find_copies(table, NOTHING_KNOWN, confusion)
    assert pairs(half) == pairs(whole) == [(3, 7)]
    assert half.n_shared[0] == pytest.approx(whole.n_shared[0] / 2, rel=0.2)


@pytest.mark.parametrize("n_labels", [0, 1])
def test_nobody_to_compare(n_labels):
    item = np.zeros(n_labels, np.int32)
    sizes = {"n_items": 3, "n_annotators": 2, "n_classes": N_CLASSES}
    table = LabelTable.from_codes(item, item, item, **sizes)
    found = find_copies(table, NOTHING_KNOWN[:3], np.full((2, N_CLASSES, N_CLASSES), 0.25))
    assert pairs(found) == []


def test_each_is_told_of_the_other(truth, confusion):
    table = simulate_labels(truth, confusion, labels_per_item=6, random_state=0)
    table = copied(table, of=7, by=3).replace(
        annotators=np.array([f"spammer {k}" for k in range(12)])
    )
    prior = np.full(N_CLASSES, 1 / N_CLASSES)
    found = diagnose(table, np.eye(N_CLASSES)[truth], confusion, prior=prior)
    assert found.flags[3] == ("copies: answers like spammer 7, even against all others",)
    assert found.flags[7] == ("copies: answers like spammer 3, even against all others",)
    assert found.verdict == "identified"
    said = str(found).splitlines()
    assert said[-1] == (
        "  - Same answers as another, even against all others (one person, or answers shared): "
        "'spammer 3', 'spammer 7'."
    )
    assert "leave them out" not in str(found)
