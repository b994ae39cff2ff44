"""The best epoch by likelihood, by agreement with labels, by the truth."""

import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.errors import InputError
from annotrace.labels.codes import split_positions
from annotrace.training import Batch


def held_out_predictions(model, X, n_items):
    """Predictions of the selected epoch for the held-out items, and which these are."""
    _, held_out = split_positions(n_items, 0.1, 3)
    return model.predict(X[held_out]), held_out


def test_by_truth_the_kept_epoch_has_the_best_accuracy_on_the_held_out_items():
    X, truth, table, _ = blobs()
    model = at.make("vanilla", epochs=6, random_state=3, select="truth").fit(X, table)
    predicted, held_out = held_out_predictions(model, X, len(X))
    best = min(epoch.held_out for epoch in model.history_)
    assert np.mean(predicted != truth[held_out]) == pytest.approx(best)


def test_by_labels_the_score_is_the_share_of_held_out_labels_not_predicted():
    X, _, table, _ = blobs()
    model = at.make("trace", epochs=6, random_state=3, select="labels").fit(X, table)
    predicted, held_out = held_out_predictions(model, X, len(X))
    guess = dict(zip(held_out, predicted, strict=True))
    judged = np.isin(table.item, held_out)
    wrong = [guess[i] != y for i, y in zip(table.item[judged], table.label[judged], strict=True)]
    assert np.mean(wrong) == pytest.approx(min(epoch.held_out for epoch in model.history_))


@pytest.mark.parametrize("name", ["trace", "mbem", "single-cm", "wdn", "soft-bootstrap"])
def test_methods_of_each_kind_can_be_selected_by_truth(name):
    X, truth, table, _ = blobs()
    model = at.make(name, epochs=20, lr=1e-2, select="truth", random_state=0)
    assert model.fit(X, table).score(X, truth) > 0.9


def test_the_truth_must_be_there_to_be_selected_by():
    X, _, table, _ = blobs()
    blind = at.LabelTable.from_codes(
        table.item, table.annotator, table.label, n_items=240, n_annotators=6, n_classes=3
    )
    with pytest.raises(InputError, match="needs a table with the truth"):
        at.make("vanilla", epochs=1, select="truth").fit(X, blind)
    with pytest.raises(InputError, match="'labels' or 'truth', but got 'luck'"):
        at.make("vanilla", epochs=1, select="luck").fit(X, table)


def test_training_stops_when_patience_runs_out():
    X, _, table, _ = blobs()
    model = at.make("vanilla", epochs=200, patience=3, lr=1e-1, random_state=0).fit(X, table)
    held_out = [epoch.held_out for epoch in model.history_]
    assert len(held_out) < 200
    assert np.argmin(held_out) == len(held_out) - 4


def test_gold_items_have_certain_logits_and_their_own_loss():
    X, truth, table, _ = blobs(n_items=40)
    gold = {0: int(truth[0]), 2: int(truth[2])}
    model = at.GeneralizedEM(epochs=4, random_state=0).fit(X, table, gold=gold)
    logits = torch.randn(4, 3)
    none = torch.zeros(0, dtype=torch.long)
    batch = Batch(torch.from_numpy(X[:4]), torch.arange(4), none, none, none)
    given = []
    loss = model._with_gold(batch, logits, lambda passed: given.append(passed) or torch.zeros(()))
    certain = torch.softmax(given[0], 1)
    for row in (0, 2):
        assert certain[row, truth[row]] >= 1 - 1e-6
    torch.testing.assert_close(given[0][[1, 3]], logits[[1, 3]])
    log_p = torch.log_softmax(logits, 1)
    expected = -(log_p[0, truth[0]] + log_p[2, truth[2]]) / 4
    torch.testing.assert_close(loss, expected)


def test_holding_out_every_item_raises():
    X, _, table, _ = blobs(n_items=8)
    with pytest.raises(InputError, match=r"0\.95 of 8 labelled items leaves none: use 0"):
        at.make("vanilla", epochs=1, validation_fraction=0.95).fit(X, table)
