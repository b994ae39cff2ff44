import numpy as np
import pytest
import torch
from crowds import blobs, digits, dominant_flippers, few_features, on_a_line
from torch import nn

import annotrace as at
from annotrace.diagnosis import confusion_error
from annotrace.experiments.settings import TRAINED_ONCE
from annotrace.methods import trace_regularized
from annotrace.simulate import simulate_labels
from annotrace.training import best_epoch


def test_recovers_five_flippers_from_one_label_an_item():
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


def test_the_paper_protocol_is_the_published_one():
    model = at.TraceRegularized(protocol="paper")
    settings = model._settings(seed=0)
    assert (settings.epochs, settings.batch_size, settings.lr) == (200, 50, 1e-3)
    assert (settings.schedule, settings.weight_decay, model.lam) == ("constant", 0.0, 0.01)
    assert [model._or_protocol(name) for name in ("joint", "mend", "pool", "calibrate")] == [
        False
    ] * 4
    assert model._or_protocol("mixup") == 0
    X, _, table, _ = blobs()
    layer = model.set_params(epochs=1, lr=1e-12).fit(X, table).confusion_layer_
    assert layer.lr_scale == 1
    expected = 6 * torch.eye(3) - 5
    torch.testing.assert_close(layer.weight.detach(), expected.expand(6, 3, 3), atol=1e-6, rtol=0)
    assert at.TraceRegularized(protocol="paper", epochs=3)._settings(0).epochs == 3


def test_the_trace_makes_annotators_less_trusted():
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


def test_a_temperature_keeps_the_posterior_from_trusting_labels_too_much():
    X, truth, table = few_features()
    settings = {"pool": False, "mixup": 1.0, "restarts": 1, "random_state": 0}
    plain, model = (
        at.TraceRegularized(calibrate=calibrate, **settings).fit(X, table)
        for calibrate in (False, True)
    )
    assert plain.temperature_ == 1
    assert model.temperature_ < 0.8
    right = [np.mean(fitted.posterior_.argmax(axis=1) == truth) for fitted in (plain, model)]
    assert right[1] > right[0] + 0.03
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_array_equal(model.confusion_, plain.confusion_)


def test_the_temperature_is_saved_and_found_anew_by_the_next_fit(tmp_path):
    X, _, table = few_features()
    settings = {"pool": False, "restarts": 1, "epochs": 5, "random_state": 0}
    model = at.TraceRegularized(**settings).fit(X, table)
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    assert loaded.temperature_ == model.temperature_ != 1
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.posterior(X, table), model.posterior(X, table))
    np.testing.assert_allclose(loaded.posterior(X, table), model.posterior_, atol=1e-6)
    loaded.set_params(warm_start=True, calibrate=False).fit(X, table)
    assert loaded.temperature_ == 1


def test_without_held_out_labels_there_is_no_temperature():
    X, _, table, _ = blobs(n_items=60)
    for settings in ({"protocol": "paper"}, {"validation": 0}):
        model = at.TraceRegularized(epochs=1, random_state=0, **settings).fit(X, table)
        assert model.temperature_ == 1


def test_many_annotators_are_learned_by_sparse_steps():
    X, truth, table, _ = blobs(n_items=3000, n_annotators=7000, labels_per_item=5)
    model = at.TraceRegularized(epochs=10, restarts=1, pool=False, random_state=0).fit(X, table)
    assert model.confusion_layer_.sparse
    assert model.score(X, truth) > 0.95
    seen = table.labels_per_annotator() >= 6
    assert seen.sum() > 50
    estimated = np.diagonal(model.confusion_, axis1=1, axis2=2).mean(axis=1)
    assert estimated[seen].mean() == pytest.approx(0.8, abs=0.12)


def test_a_network_of_ones_own_is_copied_and_reloaded_by_hand(tmp_path):
    X, truth, table, _ = blobs()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
    before = network[0].weight.detach().clone()
    model = at.TraceRegularized(
        backbone=network, epochs=20, lr=1e-2, restarts=1, random_state=0
    ).fit(X, table)
    torch.testing.assert_close(network[0].weight.detach(), before)
    assert model.score(X, truth) > 0.9
    model.save(tmp_path)
    with pytest.raises(at.methods.runs.RunError, match=r"load\(..., backbone=...\)"):
        at.load(tmp_path)
    with pytest.raises(at.methods.runs.RunError, match="another network than `backbone`"):
        at.load(tmp_path, backbone=nn.Linear(2, 3))
    loaded = at.load(tmp_path, backbone=network)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("labels_per_item", "same"), [(1, True), (2, False)])
def test_taking_labels_together_matters_where_items_have_several(labels_per_item, same):
    X, _, table, _ = blobs(labels_per_item=labels_per_item)
    settings = {"epochs": 3, "restarts": 1, "pool": False, "mend": False, "random_state": 0}
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


def test_an_interrupted_fit_goes_on_from_its_checkpoint(tmp_path):
    X, _, table, _ = blobs()
    whole = at.TraceRegularized(epochs=6, random_state=0).fit(X, table)

    def stop(epoch):
        if epoch.number == 3:
            import signal

            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "checkpoint.pt"
    with pytest.raises(KeyboardInterrupt, match="Stopped after 3 of 6 epochs"):
        at.TraceRegularized(epochs=6, random_state=0, checkpoint=path, callbacks=[stop]).fit(
            X, table
        )
    resumed = at.TraceRegularized(epochs=6, random_state=0, checkpoint=path).fit(X, table)
    np.testing.assert_array_equal(resumed.confusion_, whole.confusion_)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert not path.exists()


def test_the_best_start_by_held_out_labels_is_kept():
    X, _, table, _ = blobs()
    settings = {"epochs": 3, "pool": False, "mixup": 1.0, "random_state": 0}
    several = at.TraceRegularized(restarts=3, **settings).fit(X, table)
    one = at.TraceRegularized(restarts=1, **settings).fit(X, table)
    assert best_epoch(several.history_).held_out <= best_epoch(one.history_).held_out
    assert several.chosen_["restart"] in (0, 1, 2)
    assert one.chosen_ == {"lam": 0.01, "pool": False, "mixup": 1.0, "restart": 0}


def test_mixup_is_left_out_where_mixtures_lie_among_other_classes():
    X, truth, table = on_a_line()
    settings = {"pool": False, "restarts": 1, "random_state": 0}
    model = at.TraceRegularized(**settings).fit(X, table)
    mixed = at.TraceRegularized(mixup=1.0, **settings).fit(X, table)
    assert (model.chosen_["mixup"], mixed.chosen_["mixup"]) == (0, 1)
    assert model.score(X, truth) > mixed.score(X, truth) + 0.05
    model.set_params(warm_start=True, epochs=2).fit(X, table)
    assert model.chosen_ == {"lam": 0.01, "pool": False, "mixup": 0.0, "restart": 0}


@pytest.mark.parametrize(
    ("settings", "n_trainings"),
    [
        ({}, 3),
        ({"mixup": 1.0}, 2),
        (TRAINED_ONCE, 1),
        ({"protocol": "paper"}, 1),
        ({"validation": 0}, 1),
    ],
)
def test_what_is_left_to_the_data_costs_trainings(settings, n_trainings):
    X, _, table, _ = blobs(n_items=60)
    told = []
    model = at.TraceRegularized(
        epochs=1, mend=False, callbacks=[told.append], random_state=0, **settings
    ).fit(X, table)
    assert len(told) == n_trainings
    given = 0.0 if "protocol" in settings else settings.get("mixup", 1.0)
    assert model.chosen_["mixup"] == given


def test_choices_left_to_the_data_are_all_tried():
    model = at.TraceRegularized(lam="auto", pool="auto", restarts=1)
    model._begin_at = None
    tried = [(choice.lam, choice.pool) for choice in model._choices()]
    assert tried == [(0.01, False), (0.01, True), (0.1, False), (0.1, True)]
    model.validation = 0
    assert len(model._choices()) == 1


def test_few_labels_an_annotator_borrow_from_the_pool():
    X, truth, _, _ = blobs(n_items=400)
    confusion = np.repeat(np.array([[[0.9, 0.1, 0], [0, 0.9, 0.1], [0.5, 0, 0.5]]]), 200, axis=0)
    table = simulate_labels(truth, confusion, labels_per_item=2, random_state=0)
    settings = {"epochs": 20, "restarts": 1, "random_state": 0}
    errors = [
        confusion_error(
            at.TraceRegularized(pool=pool, **settings).fit(X, table).confusion_, confusion
        )
        for pool in (False, True)
    ]
    assert errors[1] < 0.6 * errors[0]


def test_a_penalty_that_swaps_classes_is_taken_back():
    X, truth, table, _ = blobs(skill=0.75, labels_per_item=1)
    settings = {"epochs": 60, "lr": 1e-2, "restarts": 1, "pool": False, "mixup": 0.0}
    model = at.TraceRegularized(lam=3.0, random_state=0, **settings).fit(X, table)
    assert model.chosen_["lam"] < 3.0
    assert model.score(X, truth) > 0.8


def with_unlabelled(X, table, times):
    """Add copies of the rows that nobody labelled."""
    return np.tile(X, (times, 1)), table.with_items(np.arange(times * len(X)))


def test_rows_without_labels_do_not_make_the_penalty_larger(monkeypatch):
    monkeypatch.setattr(trace_regularized, "SPARSE_ABOVE", 0)
    X, _, table, _ = blobs(n_annotators=12, labels_per_item=1)
    settings = {"lam": 0.3, "epochs": 6, "batch_size": 8, "random_state": 0, **TRAINED_ONCE}
    alone = at.TraceRegularized(**settings).fit(X, table)
    assert alone.confusion_layer_.sparse
    among = at.TraceRegularized(**settings).fit(*with_unlabelled(X, table, 10))
    np.testing.assert_allclose(among.confusion_, alone.confusion_, atol=0.01)


def test_few_annotators_of_many_classes_are_not_looked_up_label_by_label():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 100, 200)
    crowd = np.broadcast_to(0.9 * np.eye(100) + 0.001, (6, 100, 100))
    table = simulate_labels(truth, crowd, random_state=0)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    model = at.TraceRegularized(epochs=1, random_state=0, **TRAINED_ONCE).fit(X, table)
    assert not model.confusion_layer_.sparse


def test_restarts_of_a_module_of_ones_own_differ():
    X, _, table, _ = blobs()
    losses = []
    settings = {"pool": False, "mixup": 0.0, "mend": False, "random_state": 0}
    at.TraceRegularized(
        backbone=nn.Linear(2, 3),
        epochs=1,
        restarts=3,
        callbacks=[lambda epoch: losses.append(epoch.loss)],
        **settings,
    ).fit(X, table)
    assert len(set(losses)) == 3
