import numpy as np
import pytest
import torch
from crowds import blobs, built, whole_batch

import annotrace as at
from annotrace.methods import fitted_classifier


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def embedded(model, inputs):
    """The embeddings of rows by the second network, of length 1, in numpy."""
    with torch.no_grad():
        u = model.learned_modules()["embedding"](torch.as_tensor(inputs)).double().numpy()
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def rates(model, u):
    """The sigmoid of the cosine of every item's and every annotator's embedding."""
    embed = model.annotator_model_.embed
    v = (embed.weight.T + embed.bias).detach().double().numpy()
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    return 1 / (1 + np.exp(-u @ v.T))


def weights(model):
    """The common and the individual weights, in numpy."""
    noise = model.annotator_model_
    return noise.common.detach().double().numpy(), noise.individual.detach().double().numpy()


def test_the_loss_is_the_cross_entropy_less_the_distances():
    table = at.LabelTable.from_codes([0, 0, 1, 2], [0, 1, 1, 0], [0, 1, 2, 2], n_classes=3)
    model = built("conal", table, lam=0.1)
    model._gold = None
    inputs = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    model.network_ = model._network_for(inputs)
    for parameter in model.annotator_model_.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(1))
    (common, individual), rate = weights(model), rates(model, embedded(model, inputs))
    logits = torch.tensor([[1.0, 0.2, -1.0], [0.3, 2.0, 0.1], [-0.5, 0.4, 0.9]])
    nll = 0.0
    for n, r, j in zip(table.item, table.annotator, table.label, strict=True):
        p, c = softmax(logits[n].double().numpy()), rate[n, r]
        nll -= np.log(softmax(c * (p @ common) + (1 - c) * (p @ individual[r]))[j])
    distance = sum(np.sqrt(((own - common) ** 2).sum()) for own in individual)
    batch = whole_batch(table, inputs)
    assert model._loss(batch, logits).item() == pytest.approx(nll / 3 - 0.1 * distance, abs=1e-5)
    total, n_labels = model._score(batch, logits)
    assert (total.item(), n_labels) == (pytest.approx(nll, abs=1e-5), 4)


def test_all_weights_start_as_twice_the_identity():
    table = at.LabelTable.from_codes([0, 1], [0, 1], [0, 1])
    noise = built("conal", table).annotator_model_
    torch.testing.assert_close(noise.common.data, 2 * torch.eye(2))
    torch.testing.assert_close(noise.individual.data, 2 * torch.eye(2).repeat(2, 1, 1))


@pytest.mark.parametrize("recipe", ["none", "default"])
def test_the_posterior_judges_each_item_by_its_own_rate(recipe):
    X, _, table, _ = blobs()
    params = {"epochs": 10, "lr": 1e-2, "confusion_lr": 3.0, "recipe": recipe}
    model = at.CoNAL(random_state=0, **params).fit(X, table)
    (common, individual), rate = weights(model), rates(model, embedded(model, X))
    assert rate.std(axis=0).max() > 0.01
    log_p = np.log(model.predict_proba(X))
    for n, r, j in zip(table.item, table.annotator, table.label, strict=True):
        cells = rate[n, r] * common + (1 - rate[n, r]) * individual[r]
        log_p[n] += [np.log(softmax(row)[j]) for row in cells]
    expected = np.stack([softmax(row) for row in log_p])
    np.testing.assert_allclose(model.posterior_, expected, atol=1e-5)


def test_matrices_of_some_items_are_at_their_mean_rate():
    X, _, table, _ = blobs()
    model = at.CoNAL(epochs=10, lr=1e-2, random_state=0).fit(X, table)
    (common, individual), rate = weights(model), rates(model, embedded(model, X))
    for items, found in (
        (np.arange(len(X)), model.confusion_),
        ([3, 8], model.annotator_model_.matrices(items=torch.tensor([3, 8])).numpy()),
    ):
        c = rate[items].mean(axis=0)
        expected = [
            [softmax(row) for row in c[r] * common + (1 - c[r]) * individual[r]] for r in range(6)
        ]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_errors_that_all_share_are_learned_as_common_and_own_errors_as_individual():
    """All take class 1 for 0 at times, and annotator 2 also class 2 for 0."""
    X, truth, _, _ = blobs(n_items=900)
    crowd = np.tile(np.array([[1, 0, 0], [0.3, 0.7, 0], [0, 0, 1]]), (3, 1, 1))
    crowd[2, 2] = [0.3, 0, 0.7]
    table = at.simulate.simulate_labels(truth, crowd, random_state=0)
    model = at.CoNAL(epochs=40, confusion_lr=3.0, random_state=0).fit(X, table)
    assert np.abs(model.confusion_ - crowd).max() < 0.2
    common, individual = weights(model)
    assert softmax(common[1])[0] > 0.15
    own = individual[:, 2, 0] - individual[:, 2, 2]
    assert own[2] > max(own[:2]) + 2


@pytest.mark.parametrize(("labels_per_item", "at_least"), [(1, 0.7), (3, 0.85)])
def test_it_learns_digits_from_hammer_spammers(labels_per_item, at_least):
    train, test = at.data.load_digits().split(600)
    crowd = at.simulate.hammer_spammers(5, 10, 0.6, random_state=0)
    table = at.simulate.simulate_labels(
        train.y, crowd, labels_per_item=labels_per_item, random_state=0
    )
    model = at.CoNAL(random_state=0).fit(train.X, table)
    assert model.score(test.X, test.y) > at_least


def texts(truth):
    rng = np.random.default_rng(0)
    words = ["film", "plot", "scene", "actor", "music"]
    return [" ".join([*rng.choice(words, 4), ("bad", "fine", "great")[k]]) for k in truth]


@pytest.mark.parametrize("kind", ["texts", "images"])
def test_texts_and_images_are_embedded_too(kind, tmp_path):
    X, truth, table, _ = blobs()
    rows = texts(truth) if kind == "texts" else np.tile(X[:, :, None], (1, 4, 8))
    backbone = "linear" if kind == "texts" else "mlp"
    model = at.CoNAL(epochs=40, backbone=backbone, random_state=0).fit(rows, table)
    assert model.score(rows, truth) > 0.9
    assert model.annotator_model_.items.norm(dim=1).min() > 0.99
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)
    assert torch.equal(loaded.annotator_model_.items, model.annotator_model_.items)


def test_a_large_run_is_loaded_with_the_network_of_the_items(tmp_path, monkeypatch):
    X, _, table, _ = blobs(n_items=60)
    model = at.CoNAL(epochs=2, random_state=0).fit(X, table)
    model.save(tmp_path)
    # Larger modules are built on the meta device first.
    monkeypatch.setattr(fitted_classifier, "SMALL", 1)
    loaded = at.load(tmp_path)
    np.testing.assert_array_equal(embedded(loaded, X), embedded(model, X))
    loaded.set_params(warm_start=True, epochs=1).fit(X, table)


def test_an_interrupted_fit_resumes_with_all_its_networks(tmp_path):
    X, _, table, _ = blobs(n_items=60)
    params = {"epochs": 4, "random_state": 0, "recipe": at.Recipe(n_init=2, mixup=1.0)}
    whole = at.CoNAL(**params).fit(X, table)
    epochs = []

    def stop(epoch):
        epochs.append(epoch)
        if len(epochs) == 6:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "c.bin"
    with pytest.raises(KeyboardInterrupt):
        at.CoNAL(**params, callbacks=[stop], checkpoint=checkpoint).fit(X, table)
    resumed = at.CoNAL(**params, checkpoint=checkpoint).fit(X, table)
    np.testing.assert_array_equal(resumed.posterior_, whole.posterior_)
    np.testing.assert_array_equal(embedded(resumed, X), embedded(whole, X))
