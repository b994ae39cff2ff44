import numpy as np
import pytest
from scipy.special import ndtri

from annotrace.crowd.gold_accuracy import gold_accuracy
from annotrace.labels import LabelTable


def panel(rng, accuracy, n_items=1500, n_classes=2, share=1.0):
    """Labels by annotators of some accuracies, who label a share of the items each."""
    truth = rng.integers(0, n_classes, n_items)
    item, who = np.nonzero(rng.random((n_items, len(accuracy))) < share)
    wrong = (truth[item] + 1 + rng.integers(0, n_classes - 1, len(item))) % n_classes
    label = np.where(rng.random(len(item)) < np.asarray(accuracy)[who], truth[item], wrong)
    sizes = {"n_items": n_items, "n_annotators": len(accuracy), "n_classes": n_classes}
    return LabelTable.from_codes(item, who, label, **sizes), truth


def some_gold(rng, truth, size):
    gold = np.full(len(truth), -1, np.int32)
    chosen = rng.choice(len(truth), size, replace=False)
    gold[chosen] = truth[chosen]
    return gold


def shares_correct(table, truth):
    correct = table.label == truth[table.item]
    return np.bincount(table.annotator, correct, table.n_annotators) / table.labels_per_annotator()


def predictions(rng, truth, accuracy, confidence):
    """Class probabilities that are right with some accuracy and claim another."""
    likely = np.where(rng.random(len(truth)) < accuracy, truth, 1 - truth)
    return np.where(np.eye(2)[likely] > 0, confidence, 1 - confidence)


@pytest.mark.parametrize("confidence", [0.85, 0.999, 0.5])
def test_intervals_cover_whatever_the_model_claims(confidence):
    """Predictions may be calibrated, far too confident, or say nothing."""
    covered, wider = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table, truth = panel(rng, rng.uniform(0.6, 0.95, 8))
        gold = some_gold(rng, truth, 100)
        found = gold_accuracy(table, gold, predictions(rng, truth, 0.85, confidence))
        (low, high), true = found.interval(), shares_correct(table, truth)
        covered.append(np.mean((low <= true) & (true <= high)))
        alone = 2 * ndtri(0.95) * np.sqrt(true * (1 - true) / 100)
        wider.append(np.median(high - low) / np.median(alone))
    assert 0.86 <= np.mean(covered) <= 0.98
    assert np.mean(wider) < 1


def test_intervals_cover_with_few_gold_labels_of_each_annotator():
    covered, width = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table, truth = panel(rng, rng.uniform(0.6, 0.98, 30), n_items=600, share=0.1)
        found = gold_accuracy(table, some_gold(rng, truth, 50), predictions(rng, truth, 0.8, 0.95))
        assert found.n_gold.mean() < 6
        (low, high), true = found.interval(), shares_correct(table, truth)
        covered.append(np.mean((low <= true) & (true <= high)))
        width.append(np.median(high - low))
    assert np.mean(covered) > 0.86
    assert np.mean(width) < 0.45


def test_an_annotator_without_gold_labels_has_the_bias_of_the_others():
    rng = np.random.default_rng(0)
    table, truth = panel(rng, [0.9] * 6)
    gold = some_gold(rng, truth, 300)
    # The last annotator has labelled no gold item.
    kept = (table.annotator < 5) | (gold[table.item] < 0)
    codes = (column[kept] for column in (table.item, table.annotator, table.label))
    table = LabelTable.from_codes(*codes, n_items=1500, n_annotators=7, n_classes=2)
    predicted = np.where(np.eye(2)[truth] > 0, 0.7, 0.3)
    found = gold_accuracy(table, gold, predicted)
    assert found.n_gold.tolist()[5:] == [0, 0]
    # Predictions say .9 * .7 + .1 * .3 = .66 for annotators who are right nine times in ten.
    assert found.value[5] == pytest.approx(0.9, abs=0.03)
    assert found.value[6] == pytest.approx(0.9, abs=0.03)
    low, high = found.interval()
    assert high[5] - low[5] > 1.5 * (high[0] - low[0])


def test_gold_labels_of_all_items_are_the_truth():
    rng = np.random.default_rng(1)
    table, truth = panel(rng, [0.9, 0.7], n_items=400)
    found = gold_accuracy(table, truth.astype(np.int32), np.full((400, 2), 0.5))
    assert found.value == pytest.approx(shares_correct(table, truth), abs=0.005)
    low, high = found.interval()
    assert np.all(high - low < 0.01)


def test_two_correct_labels_do_not_make_an_annotator_perfect():
    table = LabelTable.from_codes([0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1], n_classes=2)
    found = gold_accuracy(table, np.array([0, 1, 0, 1], np.int32), np.full((4, 2), 0.5))
    assert np.all(found.value < 1)
    low, high = found.interval()
    assert np.all((low < found.value) & (found.value < high))
