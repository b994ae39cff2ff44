import numpy as np
import pytest
import torch
from crowds import blobs
from scipy.stats import gamma

import annotrace as at
from annotrace.errors import InputError
from annotrace.methods.madl import AnnotatorDensity, MaDL, annotator_weights
from annotrace.training import Batch

ITEM, ANNOTATOR, LABEL = [0, 0, 1, 2], [0, 1, 1, 2], [0, 1, 2, 2]
LOGITS = torch.tensor([[1.0, 0.2, -1.0], [0.3, 2.0, 0.1], [-0.5, 0.4, 0.9]])


def built(gold=None, **params):
    """Return an estimator with random weights, without a fit."""
    model = MaDL(embed_size=4, **params)
    model.table_ = at.LabelTable.from_codes(ITEM, ANNOTATOR, LABEL, n_classes=3)
    model._gold = None if gold is None else torch.tensor(gold)
    model._build_modules(torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    for parameter in model.annotator_model_.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return model


def batch():
    row, annotator, label = (torch.tensor(part) for part in (ITEM, ANNOTATOR, LABEL))
    return Batch(torch.zeros(3, 1), torch.arange(3), row, annotator, label)


def weights_by_hand(embedding, bandwidth):
    squares = ((embedding[:, None] - embedding[None]) ** 2).sum(axis=2)
    inverse = 1 / np.exp(-bandwidth * squares).sum(axis=1)
    return len(embedding) * inverse / inverse.sum()


@pytest.mark.parametrize("by_item", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_loss_is_weighted_cross_entropy_minus_the_log_prior(by_item, weighted):
    model = built(by_item=by_item, weighted=weighted, alpha=1.5, beta=0.5)
    model._density.log_bandwidth.data.fill_(np.log(0.3))
    embedding = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    outputs = torch.cat([LOGITS, embedding], 1) if by_item else LOGITS
    if by_item:
        model.annotator_model_.embed_items(torch.arange(3), embedding)
    p = np.exp(LOGITS.double().numpy())
    p /= p.sum(axis=1, keepdims=True)
    weights = weights_by_hand(model.annotator_model_.embedding.detach().double().numpy(), 0.3)
    expected = 0
    for n, r, j in zip(ITEM, ANNOTATOR, LABEL, strict=True):
        matrix = model.annotator_model_.matrices(torch.tensor([r]), torch.tensor([n]))[0]
        likelihood = p[n] @ matrix.double().numpy()[:, j]
        expected -= (weights[r] if weighted else 1) * np.log(likelihood) / 4
    if weighted:
        expected -= gamma.logpdf(0.3, 1.5, scale=1 / 0.5)
    assert model._loss(batch(), outputs).item() == pytest.approx(expected, rel=1e-4)


def test_gold_items_have_their_own_cross_entropy_and_judge_annotators():
    model = built(gold=[2, -1, -1], by_item=False, weighted=False)
    log_p = torch.log_softmax(LOGITS, 1)
    matrices = model.annotator_model_.matrices()
    expected = -log_p[0, 2] / 3 - (matrices[0, 2, 0] * matrices[1, 2, 1]).log() / 4
    for n, r, j in ((1, 1, 2), (2, 2, 2)):
        expected -= (log_p[n].exp() @ matrices[r, :, j]).log() / 4
    assert model._loss(batch(), LOGITS).item() == pytest.approx(expected.item(), rel=1e-4)


def test_annotators_who_are_alike_count_as_one():
    embedding = torch.tensor([[0.0, 0.0]] * 4 + [[50.0, 0.0], [0.0, 50.0]])
    weights = annotator_weights(embedding, embedding, torch.tensor(1.0))
    torch.testing.assert_close(weights[:4].sum(), weights[4])
    torch.testing.assert_close(weights.mean(), torch.tensor(1.0))


def test_densities_of_many_annotators_are_estimated_from_some():
    density = AnnotatorDensity(torch.arange(2_000), 1.25, 0.25)
    embedding = torch.randn(2_000, 3, generator=torch.Generator().manual_seed(0))
    annotator = torch.arange(0, 2_000, 50)
    found = density.weights(embedding, annotator).detach().numpy()
    expected = weights_by_hand(embedding.double().numpy(), 1.0)[annotator]
    assert len(density.references) == 1_000
    # An annotator among the references is nearer to itself than others are to it.
    assert np.corrcoef(np.log(found), np.log(expected))[0, 1] > 0.9


def test_the_bandwidth_starts_at_the_mode_of_its_prior():
    density = AnnotatorDensity(torch.arange(3), 1.5, 0.25)
    assert density.log_bandwidth.exp().item() == pytest.approx(2.0)
    grid = np.linspace(1.9, 2.1, 201)
    assert grid[gamma.logpdf(grid, 1.5, scale=4).argmax()] == pytest.approx(2.0)


def test_the_prior_needs_a_mode():
    X, _, table, _ = blobs(n_items=20)
    with pytest.raises(InputError, match="`alpha` to be larger than 1"):
        MaDL(alpha=1.0).fit(X, table)


@pytest.mark.parametrize("params", [{"by_item": False}, {}], ids=["constant", "by item"])
def test_it_learns_annotators_and_is_restored(params, tmp_path):
    train, test = at.data.load_digits().split(500)
    crowd = at.simulate.hammer_spammers(5, 10, 0.6, random_state=0)
    table = at.simulate.simulate_labels(train.y, crowd, labels_per_item=2, random_state=0)
    model = at.make("madl", random_state=0, **params).fit(train.X, table)
    assert model.score(test.X, test.y) > 0.8
    assert at.diagnosis.confusion_error(model.confusion_, crowd) < 0.2
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert np.array_equal(loaded.predict_proba(test.X), model.predict_proba(test.X))
    assert np.array_equal(loaded.confusion_, model.confusion_)
    assert loaded.posterior(train.X[:5], table.to_wide()[:5]).shape == (5, 10)


def test_an_item_where_an_annotator_fails_is_seen():
    """Annotator 0 swaps the classes in one half of the feature space."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)).astype(np.float32) * 2
    truth = (X[:, 0] > 0).astype(int)
    right = rng.random((1000, 4)) < 0.9
    right[:, 0] &= X[:, 1] < 0
    labels = np.where(right, truth[:, None], 1 - truth[:, None])
    model = at.make("madl", random_state=0, embed_size=8).fit(X, labels)
    where_good, where_bad = (
        model.annotator_model_.matrices(items=torch.from_numpy(np.flatnonzero(side)))
        .diagonal(dim1=1, dim2=2)
        .mean(1)
        .numpy()
        for side in (X[:, 1] < -0.5, X[:, 1] > 0.5)
    )
    assert where_good[0] > where_bad[0] + 0.3
    assert where_bad[0] < 0.4
    assert where_bad[1:].min() > 0.55
    np.testing.assert_allclose(where_good[1:], where_bad[1:], atol=0.05)


@pytest.mark.parametrize("backbone", ["auto", "own"])
@pytest.mark.parametrize("recipe", ["none", "default"])
def test_images_and_own_networks(backbone, recipe):
    X, truth, table, _ = blobs(n_items=90)
    images = np.repeat(np.repeat(X[:, :, None], 4, 2), 2, 1)[:, :4]
    if backbone == "own":
        network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
        params = {"backbone": network}
    else:
        params = {"average_flips": True}
    settings = {"epochs": 30, "lr": 1e-2, "random_state": 0, "recipe": recipe, "augment": "none"}
    model = at.make("madl", **settings, **params).fit(images, table)
    assert model.predict_proba(images).shape == (90, 3)
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.6


def test_texts():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    words = np.array([["poor", "weak", "dull"], ["good", "great", "fine"]])
    texts = [" ".join(rng.choice(words[k], 3)) for k in truth]
    crowd = at.simulate.hammer_spammers(4, 2, 0.8, random_state=0)
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=2, random_state=0)
    for name in ("madl", "annot-mix", "coin-net"):
        model = at.make(name, random_state=0).fit(texts, table)
        assert np.mean(model.predict(texts) == truth) > 0.9


def test_a_warm_start_keeps_the_embeddings_by_name():
    X, _, table, _ = blobs(n_items=60)
    model = at.make("madl", epochs=5, random_state=0).fit(X, table)
    before = model.annotator_model_.embedding.detach().clone()
    kept = table.annotator != 2
    columns = (part[kept] for part in (table.item, table.annotator, table.label))
    fewer = at.LabelTable.from_long(dict(zip(("item", "annotator", "label"), columns, strict=True)))
    assert fewer.annotators.tolist() == [0, 1, 3, 4, 5]
    model.set_params(warm_start=True, epochs=1, lr=1e-9).fit(X, fewer, items=np.arange(60))
    after = model.annotator_model_.embedding.detach()
    torch.testing.assert_close(after, before[[0, 1, 3, 4, 5]], atol=1e-6, rtol=0)
    with pytest.raises(InputError, match="`embed_size`, `by_item` and `matrices` of the last fit"):
        model.set_params(embed_size=8).fit(X, fewer, items=np.arange(60))


@pytest.mark.parametrize("name", ["madl", "annot-mix", "coin-net"])
def test_losses_of_large_logits_have_finite_gradients(name):
    model = at.make(name)
    model.table_ = at.LabelTable.from_codes(ITEM, ANNOTATOR, LABEL, n_classes=3)
    model._gold = None
    model._build_modules(torch.device("cpu"))
    n_outputs = model._n_outputs()
    outputs = 500 * torch.randn(3, n_outputs, generator=torch.Generator().manual_seed(0))
    outputs.requires_grad_()
    loss = model._loss(batch(), outputs)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(outputs.grad).all()
    for parameter in model.annotator_model_.parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all()
