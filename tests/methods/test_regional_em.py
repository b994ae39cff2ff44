import numpy as np
import pytest
import torch
from scipy.special import softmax

from annotrace.methods.item_space import ItemSpace
from annotrace.methods.regional_em import Evidence, choose_strength, fit_regional, held_out_fit
from annotrace.simulate import (
    failing_regions,
    gaussian_features,
    hammer_spammers,
    simulate_labels,
    simulate_regional_labels,
)


def evidence(kind, n_items=600, seed=0):
    """Items with the best classifier's predictions, and labels by three of six annotators."""
    truth = np.arange(n_items) % 3
    X = gaussian_features(truth, 3, accuracy=0.75, random_state=seed)
    able, guesses = (hammer_spammers(6, 3, skill, random_state=0) for skill in (0.9, 0.0))
    drawn = {"labels_per_item": 3, "random_state": seed}
    if kind == "regions":
        regions = failing_regions(X, 6, random_state=seed)
        table = simulate_regional_labels(truth, able, guesses, regions, **drawn)
    else:
        table = simulate_labels(truth, (able + guesses) / 2, **drawn)
    logits = torch.from_numpy(2.0 * X.astype(np.float64))
    start = torch.from_numpy(softmax(logits.numpy(), axis=1))
    gold = np.full(n_items, -1, np.int32)
    return Evidence(table, gold, logits, start, torch.from_numpy(X - X.mean(0)).double()), truth


def folds(n_items=600):
    return np.random.default_rng(0).permutation(n_items) % 5


def test_dependence_is_found_where_it_is_and_improves_the_posterior():
    given, truth = evidence("regions")
    choice = choose_strength(given, folds())
    constant = held_out_fit(given, folds(), None)
    assert choice is not None
    found, plain = (
        np.mean(each.posterior.argmax(1).numpy() == truth) for each in (choice, constant)
    )
    assert found > plain + 0.02


@pytest.mark.parametrize("shape", ["half-space", "ball"])
def test_the_regions_in_which_annotators_were_made_to_fail_are_recovered(shape):
    truth = np.arange(900) % 3
    X = gaussian_features(truth, 3, accuracy=0.75, random_state=1)
    able, guesses = (hammer_spammers(4, 3, skill, random_state=1) for skill in (0.9, 0.0))
    regions = failing_regions(X, 4, shape=shape, random_state=1)
    table = simulate_regional_labels(
        truth, able, guesses, regions, labels_per_item=3, random_state=1
    )
    logits, rows = torch.from_numpy(2.0 * X.astype(np.float64)), torch.from_numpy(X)
    items = ItemSpace(3).fit(rows)(rows)
    gold = np.full(900, -1, np.int32)
    given = Evidence(table.replace(truth=None), gold, logits, logits.softmax(1), items)
    model = fit_regional(given, 0.1).annotators
    annotator, item = (
        torch.from_numpy(each).long() for each in np.indices((4, 900)).reshape(2, -1)
    )
    fails = (model.gate_logits(annotator, item) < 0).numpy().reshape(4, 900)
    assert np.mean(fails == regions) > 0.85


@pytest.mark.parametrize("seed", range(3))
def test_no_dependence_is_found_where_there_is_none(seed):
    given, _ = evidence("constant", seed=seed)
    assert choose_strength(given, folds()) is None


def test_the_held_out_loss_is_that_of_labels_the_model_has_not_seen():
    given, _ = evidence("regions", n_items=150)
    fold = folds(150)
    total = 0.0
    for k in range(5):
        fitted = fit_regional(given.select(fold != k), 0.5)
        able, failing = (
            log.exp().numpy() for log in (fitted.annotators.log_able, fitted.annotators.log_failing)
        )
        gates = fitted.annotators.gates.numpy()
        for item in np.flatnonzero(fold == k):
            z = given.items[item].numpy()
            joint = softmax(given.logits[item].numpy() / fitted.temperature)
            for row in np.flatnonzero(given.table.item == item):
                r, label = given.table.annotator[row], given.table.label[row]
                g = 1 / (1 + np.exp(-gates[r, 0] - gates[r, 1:] @ z))
                joint = joint * (g * able[r, :, label] + (1 - g) * failing[r, :, label])
            total -= np.log(joint.sum())
    found = held_out_fit(given, fold, 0.5).label_loss
    assert found == pytest.approx(total / given.table.n_labels, rel=1e-9)


def test_an_infinite_strength_leaves_one_matrix_per_annotator():
    given, _ = evidence("constant", n_items=150)
    model = fit_regional(given, None).annotators
    one, other = (model.matrices(items=torch.tensor([k])) for k in (0, 99))
    torch.testing.assert_close(one, other)
