import signal

import numpy as np
import pytest
import torch
from crowds import blobs, digits, dominant_flippers, on_a_line

import annotrace as at
from annotrace.diagnosis import confusion_error
from annotrace.errors import InputError
from annotrace.methods.search import Candidate
from annotrace.simulate import hammer_spammers, simulate_labels


def quick(**settings):
    return at.CrossFittedEM(**{"init": "votes", "n_iter": 3, "random_state": 0} | settings)


def test_flippers_are_recovered_where_votes_mislead():
    train, test = digits()
    (seed, crowd), *_ = dominant_flippers(0.35, 1)
    table = simulate_labels(train.y, crowd, labels_per_item=1, random_state=seed)
    model = at.CrossFittedEM(random_state=seed).fit(train.X, table)
    assert model.score(test.X, test.y) >= 0.95
    assert np.mean(model.posterior_.argmax(1) == train.y) >= 0.97
    assert 100 * confusion_error(model.confusion_, crowd) <= 4


def test_iterations_improve_on_the_votes():
    train, test = digits()
    crowd = hammer_spammers(5, 10, 0.4, random_state=0)
    table = simulate_labels(train.y, crowd, labels_per_item=1, random_state=0)
    plain = at.make("vanilla", random_state=0).fit(train.X, table)
    model = quick(n_iter=4).fit(train.X, table)
    assert model.score(test.X, test.y) > plain.score(test.X, test.y) + 0.03
    (start,) = [each for each in model.search_ if each["chosen"]]
    assert model.label_loss_[-1] < start["label_loss"]
    confident = model.posterior_.max(1).mean()
    assert confident == pytest.approx(np.mean(model.posterior_.argmax(1) == train.y), abs=0.06)


def test_items_without_labels_get_the_mean_of_all_networks():
    X, _, table, _ = blobs(n_items=120)
    some = table.select_items(np.arange(100)).with_items(np.arange(120))
    model = quick().fit(X, some)
    np.testing.assert_allclose(model.posterior_[100:], model.predict_proba(X[100:]), atol=1e-6)


def test_an_interrupted_fit_resumes_in_the_iteration_where_it_stopped(tmp_path):
    X, _, table, _ = blobs(n_items=120)
    whole = quick(init="trace", epochs=2).fit(X, table)
    n_epochs = len(whole.history_)

    def stop_after(n_epochs):
        left = iter(range(n_epochs, -1, -1))
        return lambda epoch: signal.raise_signal(signal.SIGINT) if next(left) == 1 else None

    path = tmp_path / "checkpoint.bin"
    settings = {"init": "trace", "epochs": 2, "checkpoint": path}
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


class Normalized(at.CrossFittedEM):
    """Tries networks with batch normalisation alone."""

    def _candidates(self, tried, inner, alone, scaling):
        yield Candidate("trace", batch_norm=True), 8


def test_networks_with_batch_normalisation_are_saved_and_loaded(tmp_path):
    X, truth, table, _ = blobs()
    model = Normalized(n_iter=2, epochs=8, random_state=0).fit(X, table)
    assert model.chosen_["batch_norm"]
    assert model.score(X, truth) > 0.9
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    assert any("running_mean" in name for name in loaded.network_.state_dict())
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_thorough_search_tries_batch_normalisation_where_there_is_a_hidden_layer():
    X, _, table, _ = blobs(n_items=60)
    settings = {"effort": "thorough", "n_iter": 1, "epochs": 1}
    trials = quick(**settings).fit(X, table).search_
    assert [trial["batch_norm"] for trial in trials].count(True) == 1
    trials = quick(**settings, backbone="linear").fit(X, table).search_
    assert not any(trial["batch_norm"] or trial["width"] != 128 for trial in trials)


def test_a_warm_start_learns_new_labels_without_starting_over():
    X, truth, table, _ = blobs(n_items=300, skill=0.6, labels_per_item=3)
    first = at.LabelTable.from_codes(
        table.item[::3],
        table.annotator[::3],
        table.label[::3],
        n_items=300,
        n_annotators=6,
        n_classes=3,
    )
    model = quick(warm_start=True, n_iter=2).fit(X, first)
    folds, epochs = model.fold_, len(model.history_)
    model.fit(X, table)
    np.testing.assert_array_equal(model.fold_, folds)
    assert len(model.history_) < epochs
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.9


def test_there_may_be_more_folds_than_items():
    X, _, table, _ = blobs(n_items=8, labels_per_item=5)
    model = quick(n_folds=20).fit(X, table)
    assert model.posterior_.shape == (8, 3)


def test_mixup_is_left_out_where_mixtures_lie_among_other_classes():
    X, truth, table = on_a_line()
    settings = {"init": "votes", "n_iter": 2, "random_state": 0}
    model = at.CrossFittedEM(**settings).fit(X, table)
    mixed = at.CrossFittedEM(mixup=1.0, **settings).fit(X, table)
    assert (model.chosen_["mixup"], mixed.chosen_["mixup"]) == (0, 1)
    assert model.score(X, truth) > mixed.score(X, truth) + 0.1


def test_rows_without_labels_do_not_shorten_the_initial_training():
    X, _, table, _ = blobs(n_items=200)
    settings = {"init": "trace", "n_iter": 1, "epochs": 1, "mixup": 0.0}
    alone = quick(**settings).fit(X, table)
    among = quick(**settings).fit(np.tile(X, (8, 1)), table.with_items(np.arange(1600)))
    assert len(among.history_) == len(alone.history_)


def test_callbacks_are_called_with_every_epoch():
    X, _, table, _ = blobs(n_items=120)
    seen = []
    settings = {"init": "trace", "n_iter": 2, "epochs": 1, "mixup": 0.0}
    model = quick(**settings, callbacks=[seen.append]).fit(X, table)
    assert len(seen) >= len(model.history_)


def test_a_warm_start_with_other_folds_is_rejected():
    X, _, table, _ = blobs(n_items=60)
    model = quick(n_folds=2, n_iter=1, epochs=1, warm_start=True).fit(X, table)
    with pytest.raises(InputError, match="`n_folds` to be 2, as in the last fit, but got 3"):
        model.set_params(n_folds=3).fit(X, table)


def test_out_of_fold_predictions_are_by_the_network_that_did_not_see_the_item(tmp_path):
    X, _, table, _ = blobs(n_items=100)
    model = quick(n_iter=1, epochs=2, mixup=0.0).fit(X, table)
    with torch.no_grad():
        each = model.network_.by_place(model.network_.stage(torch.from_numpy(X)))
    own = each[torch.from_numpy(model.fold_), torch.arange(100)] / model.temperature_
    np.testing.assert_allclose(model.oof_proba_, torch.softmax(own, 1), atol=1e-5)
    np.testing.assert_array_equal(model.result_.prior, model.oof_proba_)
    model.save(tmp_path)
    np.testing.assert_array_equal(at.load(tmp_path).oof_proba_, model.oof_proba_)


def test_gold_items_choose_whom_to_follow(tmp_path):
    """Four copies of a poor annotator outvote a good one, and mislead the networks."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 2)).astype(np.float32)
    good = np.where(rng.random(300) < 0.95, truth, 1 - truth)
    poor = np.where(rng.random(300) < 0.65, truth, 1 - truth)
    table = at.LabelTable.from_wide(np.column_stack([good, poor, poor, poor, poor]))
    gold = np.where(np.arange(300) < 80, truth, -1)
    model = quick().fit(X, table, gold=gold)
    assert np.mean(model.result_.estimate[80:] == truth[80:]) > 0.9
    assert np.all(model.result_.estimate[:80] == truth[:80])
    assert [c["name"] for c in model.gold_candidates_][-1] == "combination"
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert loaded.gold_candidates_ == model.gold_candidates_
    assert np.array_equal(loaded.result_.held_out, model.result_.held_out)
    assert quick().fit(X, table).gold_candidates_ == []


def test_the_aggregation_that_it_starts_from_need_not_converge(monkeypatch):
    X, _, table, _ = blobs(120)
    stopped = at.aggregation.make("dawid-skene", max_iter=1)
    with pytest.warns(match="had not converged"):
        stopped.fit(table)
    monkeypatch.setattr("annotrace.methods.fold_search.make", lambda random_state: stopped)
    quick(init="labels", epochs=1).fit(X, table)  # A warning would be an error.
