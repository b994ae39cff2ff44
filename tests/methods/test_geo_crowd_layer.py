import numpy as np
import pytest
import torch
from crowds import whole_batch

import annotrace as at
from annotrace.methods.geo_crowd_layer import GeoCrowdLayer, log_determinant


def small_model(**params):
    """Return an estimator whose matrices are set, without a fit."""
    model = GeoCrowdLayer(**params)
    model.table_ = at.LabelTable.from_codes([0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 2, 2], n_classes=3)
    model._gold = None
    model._build_modules(torch.device("cpu"))
    matrices = torch.softmax(torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0)), 2)
    model.annotator_model_.set_matrices(matrices)
    return model, matrices.double().numpy()


@pytest.mark.parametrize("volume", ["F", "W"])
def test_the_loss_is_cross_entropy_minus_the_log_volume(volume):
    model, matrices = small_model(volume=volume, lam=0.5)
    logits = torch.tensor([[1.0, 0.2, -1.0], [0.3, 2.0, 0.1], [-0.5, 0.4, 0.9]])
    p = np.exp(logits.double().numpy())
    p /= p.sum(axis=1, keepdims=True)
    table = model.table_
    likelihoods = [
        p[n] @ matrices[r][:, j]
        for n, r, j in zip(table.item, table.annotator, table.label, strict=True)
    ]
    gram = sum(np.outer(row, row) for row in p)
    if volume == "W":
        gram = sum(matrix @ matrix.T for matrix in matrices)
    expected = -np.log(likelihoods).sum() / 3 - 0.5 * np.linalg.slogdet(gram)[1]
    loss = model._loss(whole_batch(table), logits)
    assert loss.item() == pytest.approx(expected, abs=1e-3)


def test_the_log_determinant_of_a_singular_matrix_is_finite():
    assert torch.isfinite(log_determinant(torch.zeros(3, 3)))


@pytest.mark.parametrize("volume", ["F", "W"])
def test_the_loss_is_the_same_in_half_precision(volume):
    model, _ = small_model(volume=volume, lam=0.5)
    # At the start predictions are nearly equal, and their product is nearly singular.
    logits = 0.01 * torch.tensor([[1.0, 0.2, -1.0], [0.3, 2.0, 0.1], [-0.5, 0.4, 0.9]])
    batch = whole_batch(model.table_)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model._loss(batch, logits)
    assert loss.item() == pytest.approx(model._loss(batch, logits).item(), abs=1e-5)


@pytest.mark.parametrize("volume", ["F", "W"])
def test_it_learns_annotators_from_one_label_per_item(volume, tmp_path):
    train, test = at.data.load_digits().split(600)
    crowd = at.simulate.hammer_spammers(5, 10, 0.6, random_state=0)
    table = at.simulate.simulate_labels(train.y, crowd, labels_per_item=1, random_state=0)
    model = at.make("geo-crowd-layer", volume=volume, random_state=0).fit(train.X, table)
    assert model.score(test.X, test.y) > 0.85
    assert at.diagnosis.confusion_error(model.confusion_, crowd) < 0.1
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert np.array_equal(loaded.predict_proba(test.X), model.predict_proba(test.X))
