import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.methods.coin_net import COINNet
from annotrace.training import Batch

ITEM, ANNOTATOR, LABEL = [0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 2, 2]
LOGITS = torch.tensor([[1.0, 0.2, -1.0], [0.3, 2.0, 0.1], [-0.5, 0.4, 0.9]])


def built(gold=None, scale=0.1, **params):
    """Return an estimator with given matrices and outliers, without a fit."""
    model = COINNet(**params)
    model.table_ = at.LabelTable.from_codes(ITEM, ANNOTATOR, LABEL, n_classes=3)
    model._gold = None if gold is None else torch.tensor(gold)
    model._build_modules(torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    matrices = torch.softmax(torch.randn(2, 3, 3, generator=generator), 2)
    model.annotator_model_.set_matrices(matrices)
    # In the order of items, then annotators.
    outliers = scale * torch.randn(4, 3, generator=generator)
    model.annotator_model_.outliers.weight.data = outliers
    outliers = outliers.double().numpy()
    return model, matrices.double().numpy(), outliers - outliers.mean(axis=1, keepdims=True)


def batch():
    row, annotator, label = (torch.tensor(part) for part in (ITEM, ANNOTATOR, LABEL))
    return Batch(torch.zeros(3, 1), torch.arange(3), row, annotator, label)


def loss_by_hand(p, matrices, outliers, mu1, mu2, power, classes=None):
    """The loss, label by label; `classes` are those by which labels are judged."""
    classes = p if classes is None else classes
    total, squares = 0.0, np.zeros(3)
    for number, (n, r, j) in enumerate(zip(ITEM, ANNOTATOR, LABEL, strict=True)):
        reported = np.clip(matrices[r].T @ classes[n] + outliers[number], 1e-10, 1 - 1e-10)
        total -= np.log(reported[j] / reported.sum()) / 4
        squares[n] += (outliers[number] ** 2).sum()
    total += mu1 * np.mean((squares + 1e-10) ** (power / 2))
    return total - mu2 * np.linalg.slogdet(sum(np.outer(row, row) for row in p))[1]


@pytest.mark.parametrize("scale", [0.1, 2.0], ids=["small", "clipped"])
def test_the_loss_follows_the_formula(scale):
    model, matrices, outliers = built(scale=scale, mu1=0.3, mu2=0.2, p=0.5)
    p = torch.softmax(LOGITS.double(), 1).numpy()
    expected = loss_by_hand(p, matrices, outliers, 0.3, 0.2, 0.5)
    assert model._loss(batch(), LOGITS).item() == pytest.approx(expected, rel=1e-3)


def test_gold_items_have_their_own_cross_entropy_and_judge_annotators():
    model, matrices, outliers = built(gold=[2, -1, -1], mu1=0.3, mu2=0.2, p=0.5)
    p = torch.softmax(LOGITS.double(), 1).numpy()
    known = p.copy()
    known[0] = [0, 0, 1]
    expected = loss_by_hand(p, matrices, outliers, 0.3, 0.2, 0.5, known) - np.log(p[0, 2]) / 3
    assert model._loss(batch(), LOGITS).item() == pytest.approx(expected, rel=1e-3)


def test_it_learns_annotators_and_is_restored(tmp_path):
    train, test = at.data.load_digits().split(500)
    crowd = at.simulate.hammer_spammers(5, 10, 0.6, random_state=0)
    table = at.simulate.simulate_labels(train.y, crowd, labels_per_item=2, random_state=0)
    model = at.make("coin-net", random_state=0).fit(train.X, table)
    assert model.score(test.X, test.y) > 0.8
    assert at.diagnosis.confusion_error(model.confusion_, crowd) < 0.1
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert np.array_equal(loaded.predict_proba(test.X), model.predict_proba(test.X))
    assert np.array_equal(loaded.confusion_, model.confusion_)
    assert np.array_equal(loaded.posterior_, model.posterior_)


def test_items_on_which_good_annotators_fail_have_the_largest_outliers():
    X, truth, _, _ = blobs(n_items=300)
    rng = np.random.default_rng(0)
    failed = np.arange(300) < 30
    right = rng.random((300, 5)) < 0.95
    wrong = (truth + 1 + rng.integers(0, 2, 300))[:, None] % 3
    labels = np.where(right & ~failed[:, None], truth[:, None], wrong)
    model = at.make("coin-net", validation_fraction=0, outlier_lr=10.0, random_state=0)
    model.fit(X, labels)
    item, annotator = (
        torch.from_numpy(part).long() for part in np.indices((300, 5)).reshape(2, -1)
    )
    outliers = model.annotator_model_.outliers(item, annotator).detach().view(300, -1)
    largest = outliers.norm(dim=1).argsort(descending=True)[:30].numpy()
    assert failed[largest].mean() > 0.8


def test_the_volume_of_a_batch_without_labels_is_finite():
    model, _, _ = built(gold=[0, 1, 2])
    none = torch.zeros(0, dtype=torch.long)
    only_gold = Batch(torch.zeros(3, 1), torch.arange(3), none, none, none)
    logits = LOGITS.clone().requires_grad_()
    loss = model._loss(only_gold, logits)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("recipe", ["none", "default"])
def test_images(recipe):
    X, truth, table, _ = blobs(n_items=90)
    images = np.repeat(np.repeat(X[:, :, None], 4, 2), 2, 1)
    settings = {"epochs": 20, "lr": 1e-2, "recipe": recipe, "augment": "none", "random_state": 0}
    model = at.make("coin-net", **settings).fit(images, table)
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.6
