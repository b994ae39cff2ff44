from collections import Counter

import numpy as np
import pytest
from variants_crowds import SETS, digits_annotators
from variants_labels import VARIANTS, keep_labels

from annotrace.errors import InputError
from annotrace.labels import LabelTable


@pytest.fixture(scope="module")
def crowd():
    """Items with 0 to 6 labels, about half of them wrong, an annotator being a label's number."""
    rng = np.random.default_rng(0)
    n_labels = rng.integers(7, size=400)
    item = np.repeat(np.arange(400), n_labels)
    truth = rng.integers(4, size=400)
    wrong = rng.random(len(item)) < 0.5
    label = (truth[item] + wrong * rng.integers(1, 4, len(item))) % 4
    table = LabelTable.from_codes(
        item, np.arange(len(item)), label, n_items=400, n_classes=4, truth=truth
    )
    return table, truth


def triplets(table):
    return list(
        zip(table.item.tolist(), table.annotator.tolist(), table.label.tolist(), strict=True)
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_labels_are_kept_and_nothing_else_changes(crowd, variant):
    table, truth = crowd
    kept = keep_labels(table, truth, variant, seed=3)
    assert not Counter(triplets(kept)) - Counter(triplets(table))
    assert (kept.n_items, kept.n_annotators, kept.n_classes) == (400, table.n_annotators, 4)
    assert kept.truth is None
    assert np.array_equal(kept.labels_per_item() > 0, table.labels_per_item() > 0)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("kind", ["rand", "worst"])
def test_each_item_keeps_that_number_or_all_it_has(crowd, kind, number):
    table, truth = crowd
    kept = keep_labels(table, truth, f"{kind}-{number}", seed=0)
    assert kept.labels_per_item().tolist() == [min(number, n) for n in table.labels_per_item()]


def test_full_keeps_everything(crowd):
    assert triplets(keep_labels(*crowd, "full", seed=0)) == triplets(crowd[0])


def test_a_variable_number_is_uniform_from_one_to_all():
    table = LabelTable.from_codes(np.arange(6000).repeat(3), np.tile([0, 1, 2], 6000), [0] * 18000)
    numbers = keep_labels(table, np.zeros(6000, int), "rand-var", seed=0).labels_per_item()
    # 2,000 of each are expected, with a standard deviation of 37.
    assert np.unique(numbers).tolist() == [1, 2, 3]
    assert np.abs(np.bincount(numbers)[1:] - 2000).max() < 150


def test_any_label_may_be_the_one_that_stays():
    table = LabelTable.from_codes(np.arange(6000).repeat(3), np.tile([0, 1, 2], 6000), [0] * 18000)
    kept = keep_labels(table, np.zeros(6000, int), "rand-1", seed=0)
    assert np.abs(np.bincount(kept.annotator) - 2000).max() < 150


@pytest.mark.parametrize("variant", ["worst-1", "worst-2", "worst-var"])
def test_wrong_labels_are_kept_first(crowd, variant):
    table, truth = crowd
    kept = keep_labels(table, truth, variant, seed=1)
    for item in range(table.n_items):
        n_wrong = np.sum(table.label[table.item == item] != truth[item])
        own = kept.label[kept.item == item]
        assert np.sum(own != truth[item]) == min(len(own), n_wrong)


def test_variants_of_a_seed_are_nested(crowd):
    table, truth = crowd
    kept = {variant: keep_labels(table, truth, variant, seed=5) for variant in VARIANTS}
    assert set(triplets(kept["rand-1"])) < set(triplets(kept["rand-2"]))
    assert set(triplets(kept["worst-1"])) < set(triplets(kept["worst-2"]))
    random, worst = (kept[name].labels_per_item() for name in ("rand-var", "worst-var"))
    assert np.array_equal(random, worst)


def test_the_seed_alone_decides(crowd):
    first, again, other = (keep_labels(*crowd, "rand-2", seed) for seed in (1, 1, 2))
    assert triplets(first) == triplets(again) != triplets(other)


def test_unknown_variants_are_refused(crowd):
    with pytest.raises(InputError, match="but got 'best-1'"):
        keep_labels(*crowd, "best-1", seed=0)


def test_digits_are_labelled_by_annotators_of_the_documented_skills(tmp_path):
    crowd = SETS["digits"](tmp_path, 0)
    numbers = crowd.table.labels_per_item()
    assert (numbers.min(), numbers.max(), crowd.table.n_annotators) == (1, 5, 20)
    assert numbers.mean() == pytest.approx(3, abs=0.15)
    right = crowd.table.label == crowd.y[crowd.table.item]
    shares = [right[crowd.table.annotator == r].mean() for r in range(20)]
    expected = [0.955] * 6 + [0.73] * 6 + [0.6] * 4 + [0.1] * 2 + [0.15] * 2
    # About 210 labels each: a standard error of .034 at most.
    assert np.abs(np.array(shares) - expected).max() < 0.13
    assert np.mean(expected) == pytest.approx(0.65, abs=0.005)


def test_both_sets_of_digits_are_the_same_crowd(tmp_path):
    rows, images = SETS["digits"](tmp_path, 1), SETS["digits-images"](tmp_path, 1)
    assert rows.table == images.table
    assert np.array_equal(images.X.reshape(-1, 64), rows.X)
    assert np.array_equal(images.y_test, rows.y_test)


def test_the_seed_draws_the_annotators():
    first, again, other = (digits_annotators(np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.allclose(first.sum(axis=2), 1)
