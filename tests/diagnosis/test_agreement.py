import math
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from annotrace.diagnosis.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_kappa,
)
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.simulate import simulate_labels


def from_wide(answers):
    wide = np.array(answers)
    item, annotator = np.nonzero(wide >= 0)
    return LabelTable.from_codes(item, annotator, wide[item, annotator])


def from_crosstab(crosstab):
    first, second = np.indices(np.shape(crosstab)).reshape(2, -1)
    often = np.ravel(crosstab)
    return from_wide(np.stack([np.repeat(first, often), np.repeat(second, often)], 1))


def test_alpha_of_two_observers_in_krippendorff_2011():
    table = from_wide([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])
    table = from_wide(table.to_wide().T)
    assert krippendorff_alpha(table) == pytest.approx(0.095, abs=5e-4)


def test_alpha_of_four_observers_with_gaps_in_krippendorff_2011():
    answers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, -1, -1, -1],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, -1, 3],
        [-1, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, -1],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, -1],
    ]
    assert krippendorff_alpha(from_wide(np.transpose(answers))) == pytest.approx(0.743, abs=5e-4)


def test_kappa_of_fourteen_raters_of_ten_subjects():
    votes = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    answers = [np.repeat(np.arange(5), row) for row in votes]
    assert fleiss_kappa(from_wide(answers)) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize(
    ("crosstab", "kappa"),
    [([[20, 5], [10, 15]], 0.4), ([[45, 15], [25, 15]], 0.1304), ([[25, 35], [5, 35]], 0.2593)],
)
def test_kappa_of_two_by_hand(crosstab, kappa):
    assert cohen_kappa(from_crosstab(crosstab), 0, 1) == pytest.approx(kappa, abs=5e-5)


def test_every_pair_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    wide = np.where(rng.random((60, 7)) < 0.5, rng.integers(3, size=(60, 7)), -1)
    pairs = pairwise_kappa(from_wide(wide))
    assert len(pairs.kappa) == 21
    for first, second, shared, kappa in zip(
        pairs.first, pairs.second, pairs.n_shared, pairs.kappa, strict=True
    ):
        both = (wide[:, first] >= 0) & (wide[:, second] >= 0)
        assert shared == both.sum()
        assert kappa == pytest.approx(cohen_kappa_score(wide[both, first], wide[both, second]))
    assert pairs.mean(1) == pytest.approx(np.average(pairs.kappa, weights=pairs.n_shared))


def test_the_order_of_rows_and_class_names_do_not_matter():
    rng = np.random.default_rng(1)
    item, annotator, label = rng.integers((20, 5, 3), size=(200, 3)).T
    rows = rng.permutation(200)
    before = LabelTable.from_codes(item, annotator, label)
    after = LabelTable.from_codes(item[rows], annotator[rows], (label[rows] + 1) % 3)
    for measure in (krippendorff_alpha, fleiss_kappa, lambda table: pairwise_kappa(table).mean(1)):
        assert measure(after) == pytest.approx(measure(before))


@pytest.mark.parametrize("n_others", [0, 40, 500])
def test_the_mean_kappa_is_near_alpha_if_many_annotators_share_an_item_or_two(n_others):
    rng = np.random.default_rng(0)
    confusion = np.repeat((0.9 * np.eye(4) + 0.025)[None], 4 + n_others, axis=0)
    together = simulate_labels(rng.integers(0, 4, 800), confusion[:4], random_state=rng)
    truth, sparse = rng.integers(0, 4, 800), []
    if n_others:
        sparse = [simulate_labels(truth, confusion[4:], labels_per_item=3, random_state=rng)]
    table = LabelTable.from_codes(
        np.concatenate([together.item, *(800 + part.item for part in sparse)]),
        np.concatenate([together.annotator, *(4 + part.annotator for part in sparse)]),
        np.concatenate([together.label, *(part.label for part in sparse)]),
    )
    assert pairwise_kappa(table).mean() == pytest.approx(krippendorff_alpha(table), abs=0.02)


def test_no_mean_kappa_if_no_two_share_enough():
    rng = np.random.default_rng(0)
    confusion = np.repeat((0.9 * np.eye(4) + 0.025)[None], 300, axis=0)
    table = simulate_labels(rng.integers(0, 4, 900), confusion, labels_per_item=3, random_state=rng)
    assert math.isnan(pairwise_kappa(table).mean())


def test_memory_grows_with_labels_and_not_with_pairs_by_classes():
    rng = np.random.default_rng(0)
    item, annotator = np.repeat(np.arange(10_000), 3), rng.integers(0, 5000, 30_000)
    table = LabelTable.from_codes(
        item, annotator, rng.integers(0, 3000, 30_000), n_annotators=5000, n_classes=3000
    )
    tracemalloc.start()
    pairwise_kappa(table)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One array of pairs by classes would take 700 MB.
    assert peak < 30e6


def test_many_labels_of_one_item_are_no_burden():
    rng = np.random.default_rng(0)
    wide = rng.integers(3, size=(40, 5))
    crowded = from_wide(wide)
    table = LabelTable.from_codes(
        np.r_[crowded.item, np.zeros(30_000, int)],
        np.r_[crowded.annotator, np.arange(5, 30_005)],
        np.r_[crowded.label, rng.integers(3, size=30_000)],
    )
    tracemalloc.start()
    pairs = pairwise_kappa(table)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
    assert pairs.mean() == pytest.approx(pairwise_kappa(crowded).mean())


def test_nothing_to_agree_on():
    same = from_wide([[0, 0], [0, 0]])
    assert math.isnan(krippendorff_alpha(same))
    assert math.isnan(fleiss_kappa(same))
    assert math.isnan(cohen_kappa(same, 0, 1))
    assert math.isnan(pairwise_kappa(same).mean())
    assert math.isnan(cohen_kappa(from_wide([[0, -1], [-1, 1]]), 0, 1))
    with pytest.raises(InputError, match="two labels or more"):
        fleiss_kappa(from_wide([[0, -1], [-1, 1]]))


def test_perfect_agreement_is_one():
    table = from_wide([[0, 0, 0], [1, 1, 1], [2, 2, -1]])
    assert krippendorff_alpha(table) == fleiss_kappa(table) == cohen_kappa(table, 0, 1) == 1


def test_unknown_or_equal_annotators_raise():
    table = from_wide([[0, 1], [1, 1]])
    with pytest.raises(InputError, match="no annotator '7'"):
        cohen_kappa(table, 0, 7)
    with pytest.raises(InputError, match="'1' twice"):
        cohen_kappa(table, 1, 1)


def crowd(n_items, n_annotators, each, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    item = np.repeat(np.arange(n_items), each)
    annotator = rng.random((n_items, n_annotators)).argsort(axis=1)[:, :each].ravel()
    correct = rng.random(len(item)) < np.linspace(0.5, 0.95, n_annotators)[annotator]
    label = np.where(correct, truth[item], rng.integers(0, 3, len(item)))
    return LabelTable.from_codes(item, annotator, label)


def columns_of(pairs):
    return pairs.first, pairs.second, pairs.n_shared, pairs.kappa


@pytest.mark.parametrize("least", [9, 20, 60])
def test_pairs_who_share_few_items_can_be_left_out(least):
    rng = np.random.default_rng(0)
    # The first annotators label most: pairs share from one item to many.
    annotator = np.minimum(rng.geometric(0.2, 900) - 1, 11)
    table = LabelTable.from_codes(rng.integers(0, 90, 900), annotator, rng.integers(0, 3, 900))
    everyone, some = pairwise_kappa(table), pairwise_kappa(table, min_shared=least)
    enough = everyone.n_shared >= least
    assert 0 < enough.sum() < len(enough)
    for name in ("first", "second", "n_shared", "kappa"):
        np.testing.assert_array_equal(getattr(some, name), getattr(everyone, name)[enough])


def test_of_many_annotators_some_are_drawn_with_all_items_that_they_share():
    table = crowd(3000, 60, 5)
    every = pairwise_kappa(table, max_pairs=None)
    assert (every.sampled, len(every.kappa)) == ("", 60 * 59 // 2)
    some = pairwise_kappa(table, max_pairs=10_000)
    assert some.sampled == "annotators"
    assert some.n_compared == len(np.union1d(some.first, some.second)) < 50
    known, drawn = (
        {(a, b): (n, k) for a, b, n, k in np.array(columns_of(each)).T.tolist()}
        for each in (every, some)
    )
    assert drawn.items() <= known.items()
    assert some.mean(10) == pytest.approx(every.mean(10), abs=0.05)
    np.testing.assert_array_equal(pairwise_kappa(table, max_pairs=10_000).kappa, some.kappa)


def test_of_few_annotators_items_are_drawn():
    table = crowd(8000, 4, 3)
    every, some = pairwise_kappa(table), pairwise_kappa(table, max_pairs=12_000)
    assert (some.sampled, len(some.kappa)) == ("items", 6)
    assert some.n_shared.sum() == pytest.approx(12_000, rel=0.1)
    assert some.n_compared == pytest.approx(4000, rel=0.1)
    np.testing.assert_allclose(some.kappa, every.kappa, atol=0.06)
