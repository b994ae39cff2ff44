import torch
from crowds import blobs

import annotrace as at
from annotrace.methods.protocols import PROTOCOLS


def test_the_paper_protocol_is_the_published_one():
    model = at.TraceRegularized(protocol="paper")
    settings = model._settings(seed=0)
    assert (settings.epochs, settings.batch_size, settings.lr) == (200, 50, 1e-3)
    assert (settings.schedule, settings.weight_decay, model.lam) == ("constant", 0.0, 0.01)
    assert (PROTOCOLS["paper"].joint, PROTOCOLS["paper"].structure) == (False, "full")
    assert PROTOCOLS["paper"].recipe is None
    X, _, table, _ = blobs()
    layer = model.set_params(epochs=1, lr=1e-12).fit(X, table).annotator_model_
    assert layer.lr_scale == 1
    assert model.chosen_ == {"lam": 0.01, "structure": "full", "mixup": 0.0, "init": 0}
    expected = 6 * torch.eye(3) - 5
    torch.testing.assert_close(layer.weight.detach(), expected.expand(6, 3, 3), atol=1e-6, rtol=0)
    assert at.TraceRegularized(protocol="paper", epochs=3)._settings(0).epochs == 3


def test_parameters_take_precedence_over_the_protocol():
    X, _, table, _ = blobs(n_items=60)
    model = at.TraceRegularized(
        protocol="paper", epochs=1, confusion_lr=7.0, diagonal=0.6, structure="pooled", lr=1e-12
    ).fit(X, table)
    assert model.annotator_model_.lr_scale == 7
    assert model.annotator_model_.shared is not None
    torch.testing.assert_close(
        model.annotator_model_.matrices()[0].diagonal(), torch.full((3,), 0.6)
    )
