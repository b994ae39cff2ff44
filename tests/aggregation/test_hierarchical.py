import numpy as np
import pytest
from references import random_table

from annotrace.aggregation import DawidSkene, Hierarchical
from annotrace.labels import LabelTable


def crowd_that_errs_together(seed, n_items=1500):
    """On a third of the items annotators guess, most of them in the same direction."""
    rng = np.random.default_rng(seed)
    item, annotator, label, truth = random_table(rng, n_items, 12, 2, labels_each=6, skill=0.8)
    lean = np.where(np.arange(12) < 8, 0.15, 0.6)
    guess = (rng.random(len(item)) < lean[annotator]).astype(int)
    doubtful = rng.random(n_items) < 0.35
    return item, annotator, np.where(doubtful[item], guess, label), truth, doubtful


@pytest.mark.parametrize("seed", range(3))
def test_items_on_which_annotators_err_together_do_not_pass_for_a_class(seed):
    item, annotator, label, truth, doubtful = crowd_that_errs_together(seed)
    table = LabelTable.from_codes(item, annotator, label)
    model, plain = Hierarchical().fit(table), DawidSkene().fit(table)
    clear = ~doubtful
    assert (model.predict() == truth)[clear].mean() > 0.96
    assert model.doubt_[doubtful].mean() > model.doubt_[clear].mean() + 0.15
    assert 0 < model.guess_rate_ < 1
    assert (model.predict() == truth).mean() >= (plain.predict() == truth).mean() - 0.005


def test_strength_distinguishes_one_coin_from_matrices():
    rng = np.random.default_rng(3)
    item, annotator, label, truth = random_table(rng, 2000, 20, 3, labels_each=6, skill=0.7)
    alike = Hierarchical().fit(LabelTable.from_codes(item, annotator, label))
    mixes = (annotator < 10) & (truth[item] == 1)
    label = np.where(mixes, 2, label)
    unlike = Hierarchical().fit(LabelTable.from_codes(item, annotator, label))
    assert alike.strength_ > 5 * unlike.strength_


def test_matrices_are_found():
    item, annotator, label, truth = random_table(np.random.default_rng(4), 3000, 10, 3)
    model = Hierarchical().fit(LabelTable.from_codes(item, annotator, label))
    counts = np.zeros((10, 3, 3))
    np.add.at(counts, (annotator, truth[item], label), 1)
    known = counts / counts.sum(2, keepdims=True)
    assert np.abs(model.confusion_ - known).max() < 0.12
