import numpy as np
import pytest
import torch
from crowds import TRAINED_ONCE, blobs, digits, dominant_flippers
from torch import nn

import annotrace as at
from annotrace.diagnosis import confusion_error
from annotrace.errors import InputError, RunError
from annotrace.methods import trace_regularized
from annotrace.simulate import simulate_labels


def test_five_flippers_are_recovered_from_one_label_per_item():
    train, test = digits()
    accuracy, error = [], []
    for seed, crowd in dominant_flippers(0.35, 2):
        table = simulate_labels(train.y, crowd, labels_per_item=1, random_state=seed)
        model = at.TraceRegularized(random_state=seed).fit(train.X, table)
        accuracy.append(model.score(test.X, test.y))
        error.append(100 * confusion_error(model.confusion_, crowd))
        assert model.chosen_["mixup"] == 1
    assert min(accuracy) >= 0.93
    assert max(error) <= 6


def test_the_penalty_lowers_the_trace():
    X, _, table, _ = blobs(skill=0.6)
    skills = [
        at.TraceRegularized(lam=lam, epochs=20, random_state=0).fit(X, table).confusion_
        for lam in (0.0, 0.3)
    ]
    traces = [np.trace(matrices, axis1=1, axis2=2).mean() for matrices in skills]
    assert traces[1] < traces[0] - 0.05


def test_posterior_is_classifier_times_labels():
    X, _, table, _ = blobs(n_items=60)
    model = at.TraceRegularized(epochs=5, random_state=0).fit(X, table)
    joint = model.predict_proba(X)
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        joint[item] *= model.confusion_[annotator, :, label]
    np.testing.assert_allclose(
        model.posterior_, joint / joint.sum(axis=1, keepdims=True), atol=1e-5
    )


def test_many_annotators_are_learned_by_sparse_steps():
    X, truth, table, _ = blobs(n_items=3000, n_annotators=7000, labels_per_item=5)
    model = at.TraceRegularized(
        epochs=10, structure="full", recipe=at.Recipe(n_init=1), random_state=0
    ).fit(X, table)
    assert model.annotator_model_.sparse
    assert model.score(X, truth) > 0.95
    seen = table.labels_per_annotator() >= 6
    assert seen.sum() > 50
    estimated = np.diagonal(model.confusion_, axis1=1, axis2=2).mean(axis=1)
    assert estimated[seen].mean() == pytest.approx(0.8, abs=0.12)


def test_your_own_network_is_copied_and_given_again_to_load(tmp_path):
    X, truth, table, _ = blobs()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
    before = network[0].weight.detach().clone()
    model = at.TraceRegularized(
        backbone=network, epochs=20, lr=1e-2, recipe=at.Recipe(n_init=1), random_state=0
    ).fit(X, table)
    torch.testing.assert_close(network[0].weight.detach(), before)
    assert model.score(X, truth) > 0.9
    model.save(tmp_path)
    with pytest.raises(RunError, match=r"load\(..., backbone=...\)"):
        at.load(tmp_path)
    with pytest.raises(RunError, match="another network than `backbone`"):
        at.load(tmp_path, backbone=nn.Linear(2, 3))
    loaded = at.load(tmp_path, backbone=network)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("labels_per_item", "same"), [(1, True), (2, False)])
def test_taking_labels_together_matters_where_items_have_several(labels_per_item, same):
    X, _, table, _ = blobs(labels_per_item=labels_per_item)
    recipe = at.Recipe(n_init=1, repair=False)
    settings = {"epochs": 3, "structure": "full", "recipe": recipe, "random_state": 0}
    apart, together = (
        at.TraceRegularized(joint=joint, **settings).fit(X, table).confusion_
        for joint in (False, True)
    )
    assert np.array_equal(apart, together) is same


def test_images_go_to_the_papers_network_as_uint8():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    X = (rng.integers(0, 60, (120, 12, 12)) + 150 * truth[:, None, None]).astype(np.uint8)
    X[:, :6] //= 2
    table = simulate_labels(truth, np.array([[[0.9, 0.1], [0.1, 0.9]]]), random_state=0)
    model = at.TraceRegularized(epochs=4, random_state=0).fit(X, table)
    assert isinstance(model.network_[2][0], nn.Conv2d)
    assert model.score(X, truth) > 0.9


def test_an_interrupted_fit_resumes_from_its_checkpoint(tmp_path):
    X, _, table, _ = blobs()
    whole = at.TraceRegularized(epochs=6, random_state=0).fit(X, table)

    def stop(epoch):
        if epoch.number == 3:
            import signal

            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "checkpoint.bin"
    with pytest.raises(KeyboardInterrupt, match="Stopped after 3 of 6 epochs"):
        at.TraceRegularized(epochs=6, random_state=0, checkpoint=path, callbacks=[stop]).fit(
            X, table
        )
    resumed = at.TraceRegularized(epochs=6, random_state=0, checkpoint=path).fit(X, table)
    np.testing.assert_array_equal(resumed.confusion_, whole.confusion_)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert not path.exists()


def test_annotators_with_few_labels_borrow_from_the_pool():
    X, truth, _, _ = blobs(n_items=400)
    confusion = np.repeat(np.array([[[0.9, 0.1, 0], [0, 0.9, 0.1], [0.5, 0, 0.5]]]), 200, axis=0)
    table = simulate_labels(truth, confusion, labels_per_item=2, random_state=0)
    settings = {"epochs": 20, "recipe": at.Recipe(n_init=1), "random_state": 0}
    errors = [
        confusion_error(
            at.TraceRegularized(structure=structure, **settings).fit(X, table).confusion_, confusion
        )
        for structure in ("full", "pooled")
    ]
    assert errors[1] < 0.6 * errors[0]


def with_unlabelled(X, table, times):
    """Add copies of the rows, without labels."""
    return np.tile(X, (times, 1)), table.with_items(np.arange(times * len(X)))


def test_rows_without_labels_do_not_change_the_penalty(monkeypatch):
    monkeypatch.setattr(trace_regularized, "SPARSE_ABOVE", 0)
    X, _, table, _ = blobs(n_annotators=12, labels_per_item=1)
    settings = {"lam": 0.3, "epochs": 6, "batch_size": 8, "random_state": 0, **TRAINED_ONCE}
    alone = at.TraceRegularized(**settings).fit(X, table)
    assert alone.annotator_model_.sparse
    among = at.TraceRegularized(**settings).fit(*with_unlabelled(X, table, 10))
    np.testing.assert_allclose(among.confusion_, alone.confusion_, atol=0.01)


def test_few_annotators_of_many_classes_are_updated_densely():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 100, 200)
    crowd = np.broadcast_to(0.9 * np.eye(100) + 0.001, (6, 100, 100))
    table = simulate_labels(truth, crowd, random_state=0)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    model = at.TraceRegularized(epochs=1, random_state=0, **TRAINED_ONCE).fit(X, table)
    assert not model.annotator_model_.sparse


def test_an_unknown_structure_is_rejected():
    X, _, table, _ = blobs(n_items=30)
    with pytest.raises(InputError, match="no structure 'magic'; there are full, pooled"):
        at.TraceRegularized(structure="magic", epochs=1).fit(X, table)


@pytest.mark.parametrize("joint", [False, True])
def test_the_loss_is_eq_4(joint):
    X, _, table, _ = blobs(n_items=40)
    model = at.TraceRegularized(
        joint=joint,
        lam=0.2,
        epochs=1,
        batch_size=40,
        lr=1e-9,
        validation_fraction=0,
        random_state=0,
        **TRAINED_ONCE,
    ).fit(X, table)
    p, matrices = model.predict_proba(X), model.confusion_
    if joint:
        likelihood = np.ones_like(p)
        for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
            likelihood[item] *= matrices[annotator, :, label]
        loss = -np.log((p * likelihood).sum(1)).sum() / 40
    else:
        of_labels = (p[table.item] * matrices[table.annotator, :, table.label]).sum(1)
        loss = -np.log(of_labels).sum() / 40
    loss += 0.2 * np.trace(matrices, axis1=1, axis2=2).mean()
    assert model.history_[0].loss == pytest.approx(loss, abs=1e-4)
