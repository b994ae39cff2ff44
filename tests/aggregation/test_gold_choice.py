import numpy as np
import pytest

import annotrace as at
from annotrace.aggregation.gold_choice import (
    MIN_GOLD,
    N_FOLDS,
    assign_folds,
    choose_by_gold,
    has_enough_gold,
    hold_out_gold,
)
from annotrace.labels import LabelTable


def shared_errors(n_items=600, seed=0):
    """A good judge and five who copy a poor one."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_items)
    good = np.where(rng.random(n_items) < 0.9, truth, 1 - truth)
    poor = np.where(rng.random(n_items) < 0.7, truth, 1 - truth)
    copies = np.where(rng.random((n_items, 5)) < 0.95, poor[:, None], 1 - poor[:, None])
    return LabelTable.from_wide(np.column_stack([good, copies])), truth


def independent(n_items=600, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    right = rng.random((n_items, 7)) < rng.uniform(0.55, 0.8, 7)
    wrong = (truth[:, None] + rng.integers(1, 3, right.shape)) % 3
    return LabelTable.from_wide(np.where(right, truth[:, None], wrong)), truth


def some_gold(truth, size, seed=0):
    chosen = np.random.default_rng(seed).choice(len(truth), size, replace=False)
    return {int(item): int(truth[item]) for item in chosen}


def accuracy(model, truth):
    rest = model.gold_ < 0
    return np.mean((model.result_.estimate == truth)[rest])


def test_gold_items_expose_shared_errors():
    table, truth = shared_errors()
    without = at.aggregation.make(random_state=0).fit(table)
    model = at.aggregation.make(random_state=0).fit(table, gold=some_gold(truth, 60))
    clamped = at.aggregation.make("dawid-skene").fit(table, gold=some_gold(truth, 60))
    assert accuracy(without, truth) < 0.75
    assert accuracy(clamped, truth) < 0.8
    assert accuracy(model, truth) > 0.86
    assert clamped.gold_candidates_ == []


@pytest.mark.parametrize("size", [20, 50])
def test_gold_items_do_no_harm_where_errors_are_independent(size):
    with_gold, without = [], []
    for seed in range(4):
        table, truth = independent(seed=seed)
        gold = some_gold(truth, size, seed)
        model = at.aggregation.make(random_state=0).fit(table, gold=gold)
        with_gold.append(accuracy(model, truth))
        rest = model.gold_ < 0
        alone = at.aggregation.make(random_state=0).fit(table).result_.estimate
        without.append(np.mean((alone == truth)[rest]))
    assert np.mean(with_gold) > np.mean(without) - 0.01


def test_the_combination_is_calibrated_and_gold_items_are_certain():
    table, truth = shared_errors(1000)
    model = at.aggregation.make(random_state=0).fit(table, gold=some_gold(truth, 200))
    rest = model.gold_ < 0
    assert model.confidence_[rest].mean() == pytest.approx(accuracy(model, truth), abs=0.05)
    assert np.all(model.posterior_[~rest, truth[~rest]] == 1)
    assert np.all(model.result_.held_out[~rest].max(axis=1) < 1)
    names = [candidate["name"] for candidate in model.gold_candidates_]
    assert names == ["annotator model", "regression", "best annotators", "combination"]
    scores = {candidate["name"]: candidate["accuracy"] for candidate in model.gold_candidates_}
    assert scores["combination"] > scores["annotator model"] + 0.1


def test_few_gold_items_are_clamped_only():
    table, truth = shared_errors()
    model = at.aggregation.make(random_state=0)
    assert model.fit(table, gold=some_gold(truth, MIN_GOLD - 1)).gold_candidates_ == []
    assert model.result_.held_out is None
    ones = {int(item): 1 for item in np.flatnonzero(truth == 1)[:40]}
    assert model.fit(table, gold=ones).gold_candidates_ == []
    assert model.fit(table, gold=some_gold(truth, MIN_GOLD)).gold_candidates_


def test_gold_items_without_labels_do_not_count():
    table = LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1], n_items=60, n_classes=2)
    gold = np.arange(60).astype(np.int32) % 2
    assert not has_enough_gold(table, gold)
    assert np.flatnonzero(assign_folds(table, gold) >= 0).tolist() == [0, 1]


def test_one_gold_item_of_each_of_many_classes():
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 25
    right = rng.random((400, 5)) < 0.8
    table = LabelTable.from_wide(np.where(right, truth[:, None], rng.integers(0, 25, (400, 5))))
    gold = {item: int(truth[item]) for item in range(25)}
    model = at.aggregation.make(random_state=0).fit(table, gold=gold)
    alone = at.aggregation.make(random_state=0).fit(table).result_.estimate
    assert accuracy(model, truth) >= np.mean((alone == truth)[25:]) - 0.01


def test_folds_spread_classes_evenly():
    table, truth = independent()
    gold = np.where(np.arange(600) < 90, truth, -1).astype(np.int32)
    fold = assign_folds(table, gold)
    counts = np.array([np.bincount(gold[fold == k], minlength=3) for k in range(N_FOLDS)])
    assert np.all(np.ptp(counts, axis=0) <= 1)
    assert np.all(fold[90:] == -1)


def test_held_out_gold_items_have_not_been_seen():
    table, truth = independent()
    gold = np.where(np.arange(600) < 50, truth, -1).astype(np.int32)
    seen = []

    def refit(some):
        seen.append(some)
        return np.eye(3)[np.maximum(some, 0)]

    posterior = np.full((600, 3), 1 / 3)
    held_out = hold_out_gold(table, gold, posterior, refit)
    assert np.all(held_out[:50, 0] == 1)
    assert np.all(held_out[50:] == 1 / 3)
    assert sum((some >= 0).sum() for some in seen) == 4 * 50


def test_items_without_labels_keep_the_class_shares():
    table, truth = shared_errors()
    wider = table.replace(items=np.arange(601))
    held_out = np.vstack([np.eye(2)[truth] * 0.8 + 0.1, [[0.3, 0.7]]])
    gold = np.append(np.where(np.arange(600) < 60, truth, -1), -1).astype(np.int32)
    choice = choose_by_gold(wider, gold, held_out)
    assert choice.posterior[600].tolist() == [0.3, 0.7]


def test_more_labels_are_added_and_chosen_by_gold_again():
    table, truth = shared_errors()
    model = at.aggregation.make(random_state=0).fit(table, gold=some_gold(truth, 60))
    rng = np.random.default_rng(5)
    answers = np.where(rng.random(600) < 0.8, truth, 1 - truth)
    more = LabelTable.from_codes(np.arange(600), np.full(600, 6), answers, n_classes=2)
    before = accuracy(model, truth)
    model.partial_fit(more)
    assert len(model.gold_candidates_) == 4
    assert accuracy(model, truth) > before - 0.02


def test_a_choice_is_saved(tmp_path):
    table, truth = shared_errors()
    model = at.aggregation.make(random_state=0).fit(table, gold=some_gold(truth, 60))
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert loaded.gold_candidates_ == model.gold_candidates_
    assert np.array_equal(loaded.result_.held_out, model.result_.held_out)
    assert np.array_equal(loaded.posterior_, model.posterior_)
