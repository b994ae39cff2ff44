import signal

import numpy as np
import pytest
import torch
from crowds import blobs, digits, dominant_flippers, on_a_line

import annotrace as at
from annotrace.diagnosis import confusion_error
from annotrace.errors import InputError
from annotrace.simulate import hammer_spammers, simulate_labels


def quick(**settings):
    return at.CrossFittedEM(**{"start": "votes", "rounds": 3, "random_state": 0} | settings)


def test_recovers_flippers_whom_votes_mislead():
    train, test = digits()
    (seed, crowd), *_ = dominant_flippers(0.35, 1)
    table = simulate_labels(train.y, crowd, labels_per_item=1, random_state=seed)
    model = at.CrossFittedEM(random_state=seed).fit(train.X, table)
    assert model.score(test.X, test.y) >= 0.95
    assert np.mean(model.posterior_.argmax(1) == train.y) >= 0.97
    assert 100 * confusion_error(model.confusion_, crowd) <= 4


def test_rounds_mend_what_the_votes_begin():
    train, test = digits()
    crowd = hammer_spammers(5, 10, 0.4, random_state=0)
    table = simulate_labels(train.y, crowd, labels_per_item=1, random_state=0)
    plain = at.make("vanilla", random_state=0).fit(train.X, table)
    model = quick(rounds=4).fit(train.X, table)
    assert model.score(test.X, test.y) > plain.score(test.X, test.y) + 0.03
    assert model.label_loss_[-1] < model.label_loss_[0]
    confident = model.posterior_.max(1).mean()
    assert confident == pytest.approx(np.mean(model.posterior_.argmax(1) == train.y), abs=0.06)


def test_no_network_learns_from_the_items_it_judges():
    X, _, table, _ = blobs(n_items=100, labels_per_item=1)
    settings = {"rounds": 1, "epochs": 3, "mixup": 1.0}
    model = quick(**settings).fit(X, table)
    judged = model.fold_ == 3
    swapped = at.LabelTable.from_codes(
        table.item,
        table.annotator,
        np.where(judged[table.item], (table.label + 1) % 3, table.label),
        n_items=100,
        n_annotators=6,
        n_classes=3,
    )
    other = quick(**settings).fit(X, swapped)
    own = model.network_.each(model.network_.stage(torch.from_numpy(X)))
    theirs = other.network_.each(other.network_.stage(torch.from_numpy(X)))
    np.testing.assert_array_equal(own[3].detach(), theirs[3].detach())
    assert not np.allclose(own[1].detach(), theirs[1].detach())


def test_items_without_labels_get_the_mean_of_all_networks():
    X, _, table, _ = blobs(n_items=120)
    some = table.select_items(np.arange(100)).with_items(np.arange(120))
    model = quick().fit(X, some)
    np.testing.assert_allclose(model.posterior_[100:], model.predict_proba(X[100:]), atol=1e-6)


def test_a_fit_that_was_stopped_goes_on_in_the_round_where_it_was(tmp_path):
    X, _, table, _ = blobs(n_items=120)
    whole = quick(start="trace", restarts=2, epochs=2).fit(X, table)
    n_epochs = len(whole.history_)

    def stop_after(n_epochs):
        left = iter(range(n_epochs, -1, -1))
        return lambda epoch: signal.raise_signal(signal.SIGINT) if next(left) == 1 else None

    path = tmp_path / "checkpoint.pt"
    settings = {"start": "trace", "restarts": 2, "epochs": 2, "checkpoint": path}
    for n_more in (3, 1, 4):
        with pytest.raises(KeyboardInterrupt):
            quick(**settings, callbacks=[stop_after(n_more)]).fit(X, table)
    resumed = quick(**settings).fit(X, table)
    np.testing.assert_array_equal(resumed.posterior_, whole.posterior_)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert len(resumed.history_) == n_epochs
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_saved_and_loaded(tmp_path):
    X, _, table, _ = blobs()
    model = quick().fit(X, table)
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)


def test_labels_that_come_later_are_learned_without_starting_over():
    X, truth, table, _ = blobs(n_items=300, skill=0.6, labels_per_item=3)
    first = at.LabelTable.from_codes(
        table.item[::3],
        table.annotator[::3],
        table.label[::3],
        n_items=300,
        n_annotators=6,
        n_classes=3,
    )
    model = quick(warm_start=True, rounds=2).fit(X, first)
    folds, epochs = model.fold_, len(model.history_)
    model.fit(X, table)
    np.testing.assert_array_equal(model.fold_, folds)
    assert len(model.history_) < epochs
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.9


def test_more_folds_than_items_leave_some_empty():
    X, _, table, _ = blobs(n_items=8, labels_per_item=5)
    model = quick(folds=20).fit(X, table)
    assert model.posterior_.shape == (8, 3)


def test_the_front_door_is_the_recommended_recipe(tmp_path):
    X, truth, table, _ = blobs()
    model = at.CrowdClassifier(random_state=0, restarts=1).fit(X, table)
    assert model.score(X, truth) > 0.9
    assert model.method == "auto"
    model.save(tmp_path)
    assert isinstance(at.load(tmp_path), at.CrowdClassifier)


def test_mixup_is_left_out_where_mixtures_lie_among_other_classes():
    X, truth, table = on_a_line()
    settings = {"start": "votes", "rounds": 2, "random_state": 0}
    model = at.CrossFittedEM(**settings).fit(X, table)
    mixed = at.CrossFittedEM(mixup=1.0, **settings).fit(X, table)
    assert (model.mixup_, mixed.mixup_) == (0, 1)
    assert model.score(X, truth) > mixed.score(X, truth) + 0.1


def test_rows_without_labels_do_not_shorten_the_start():
    X, _, table, _ = blobs(n_items=200)
    settings = {"start": "trace", "restarts": 1, "rounds": 1, "epochs": 1, "mixup": 0.0}
    alone = quick(**settings).fit(X, table)
    among = quick(**settings).fit(np.tile(X, (8, 1)), table.with_items(np.arange(1600)))
    assert len(among.history_) == len(alone.history_)


def test_callbacks_are_told_of_every_epoch():
    X, _, table, _ = blobs(n_items=120)
    seen = []
    settings = {"start": "trace", "restarts": 1, "rounds": 2, "epochs": 1, "mixup": 0.0}
    model = quick(**settings, callbacks=[seen.append]).fit(X, table)
    assert len(seen) >= len(model.history_)


def test_a_warm_start_with_other_folds_is_refused():
    X, _, table, _ = blobs(n_items=60)
    model = quick(folds=2, rounds=1, epochs=1, warm_start=True).fit(X, table)
    with pytest.raises(InputError, match="Expected `folds` to be 2, as in the last fit, but got 3"):
        model.set_params(folds=3).fit(X, table)
