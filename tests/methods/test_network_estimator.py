"""The best epoch by likelihood, by agreement with labels, by the truth."""

import numpy as np
import pytest
from crowds import blobs

import annotrace as at
from annotrace.errors import InputError
from annotrace.labels.codes import split_positions


def held_out_predictions(model, X, n_items):
    """What the chosen epoch says of the held-out items, and which these are."""
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
