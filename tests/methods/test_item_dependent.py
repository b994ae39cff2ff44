import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.crowd import RegionalAnnotators
from annotrace.simulate import (
    failing_regions,
    gaussian_features,
    hammer_spammers,
    simulate_regional_labels,
)

QUICK = {"init": "votes", "n_iter": 2, "epochs": 10, "mixup": 1.0, "random_state": 0}
N_TRAIN = 600


@pytest.fixture(scope="module")
def crowd():
    """Five annotators who guess on half of the items: X, truth, regions, table."""
    truth = np.arange(900) % 3
    X = gaussian_features(truth, 3, accuracy=0.8, random_state=0)
    able, guesses = (hammer_spammers(5, 3, skill, random_state=0) for skill in (0.9, 0.0))
    regions = failing_regions(X, 5, random_state=0)
    drawn = {"labels_per_item": 3, "random_state": 0}
    return X, truth, regions, simulate_regional_labels(truth, able, guesses, regions, **drawn)


@pytest.fixture(scope="module")
def models(crowd):
    """The constant and the item-dependent model of the first items, and the table of the others."""
    X, _, _, table = crowd
    known = table.select_items(np.arange(N_TRAIN)).replace(truth=None)
    fitted = [
        at.make(name, **QUICK).fit(X[:N_TRAIN], known) for name in ("crossfit", "item-dependent")
    ]
    return *fitted, table.select_items(np.arange(N_TRAIN, 900))


def accuracy(posterior, truth):
    return np.mean(posterior.argmax(axis=1) == truth)


def test_the_posterior_is_better_where_errors_depend_on_the_item(crowd, models):
    constant, dependent, _ = models
    truth = crowd[1][:N_TRAIN]
    assert dependent.strength_ is not None
    assert dependent.gain_ > 0.02
    gain = accuracy(dependent.posterior_, truth) - accuracy(constant.posterior_, truth)
    assert gain > 0.02


def test_networks_learn_the_posterior_that_depends_on_the_item(models):
    constant, dependent, _ = models
    assert dependent.n_rounds_ == constant.n_rounds_ == QUICK["n_iter"]
    again = len(dependent.history_) - len(constant.history_)
    assert again == QUICK["n_iter"] * QUICK["epochs"]
    assert not np.allclose(dependent.oof_proba_, constant.oof_proba_)
    assert dependent.oof_proba_.argmax(1).tolist() != constant.oof_proba_.argmax(1).tolist()


def test_new_items_are_judged_by_their_features(crowd, models):
    X, truth, _, _ = crowd
    constant, dependent, new = models
    by_features = dependent.posterior(X[N_TRAIN:], new)
    gain = accuracy(by_features, truth[N_TRAIN:]) - accuracy(
        constant.posterior(X[N_TRAIN:], new), truth[N_TRAIN:]
    )
    assert gain > 0.01
    assert dependent.score(X[N_TRAIN:], new) > constant.score(X[N_TRAIN:], new)


def test_matrices_of_items_show_where_annotators_fail(crowd, models):
    inside, dependent = crowd[2][:, :N_TRAIN], models[1]
    assert isinstance(dependent.annotator_model_, RegionalAnnotators)
    for annotator in range(5):
        skill = [
            dependent.annotator_model_.matrices(items=torch.from_numpy(np.flatnonzero(part)))[
                annotator
            ]
            .diagonal()
            .mean()
            for part in (inside[annotator], ~inside[annotator])
        ]
        assert skill[0] < skill[1] - 0.25


def test_an_unknown_annotator_has_the_pools_matrix_everywhere(crowd, models):
    X, dependent = crowd[0], models[1]
    labels = at.LabelTable.from_codes([0, 1], [99, 99], [2, 2], n_items=2, n_classes=3)
    found = dependent.posterior(X[:2], labels)
    pool = np.average(dependent.confusion_, axis=0, weights=dependent.table_.labels_per_annotator())
    expected = dependent.predict_proba(X[:2]) * pool[:, 2]
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


def test_a_saved_run_judges_new_items_alike(crowd, models, tmp_path):
    X, (_, dependent, new) = crowd[0], models
    dependent.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert loaded.strength_ == dependent.strength_
    np.testing.assert_array_equal(
        loaded.posterior(X[N_TRAIN:], new), dependent.posterior(X[N_TRAIN:], new)
    )


def test_nothing_changes_where_errors_do_not_depend_on_the_item():
    X, _, table, _ = blobs()
    constant, dependent = (
        at.make(name, **QUICK).fit(X, table) for name in ("crossfit", "item-dependent")
    )
    assert dependent.strength_ is dependent.item_space_ is None
    np.testing.assert_array_equal(dependent.posterior_, constant.posterior_)
    np.testing.assert_array_equal(dependent.confusion_, constant.confusion_)


def test_a_second_fit_forgets_the_dependence(crowd):
    X, _, _, table = crowd
    model = at.make("item-dependent", **QUICK).fit(X, table)
    assert model.item_space_ is not None
    other_X, _, other, _ = blobs()
    model.fit(other_X, other)
    assert model.strength_ is model.item_space_ is None
    assert "item_space" not in model.learned_modules()


def test_gold_items_stay_certain(crowd):
    X, truth, _, table = crowd
    gold = {item: int(truth[item]) for item in range(100)}
    model = at.make("item-dependent", **QUICK).fit(X, table.replace(truth=None), gold=gold)
    assert model.strength_ is not None
    np.testing.assert_array_equal(model.posterior_[:100], np.eye(3)[truth[:100]])


def test_errors_in_texts_may_depend_on_what_the_classifier_makes_of_them():
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    words = np.array(["red rose", "blue sea", "green tree"])
    texts = [f"{words[k]} {' '.join(rng.choice(['a', 'b', 'c', 'd'], 3))}" for k in truth]
    able = hammer_spammers(4, 3, 0.9, random_state=0)
    regions = np.zeros((4, 300), bool)
    table = simulate_regional_labels(truth, able, able, regions, random_state=0)
    model = at.make("item-dependent", **QUICK).fit(texts, table)
    assert accuracy(model.posterior_, truth) > 0.95
