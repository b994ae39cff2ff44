import signal

import numpy as np
import pytest
import torch
from crowds import blobs, digits

import annotrace as at
from annotrace.errors import InputError, RunError
from annotrace.networks import Ensemble
from annotrace.simulate import hammer_spammers, simulate_labels


def quick(**settings):
    defaults = {"init": "votes", "n_iter": 2, "epochs": 10, "random_state": 0, "distill": True}
    return at.CrossFittedEM(**defaults | settings)


def n_weights(model):
    return sum(weight.numel() for weight in model.network_.parameters())


@pytest.fixture(scope="module")
def both():
    """An ensemble and the network distilled from it, of digits with one label each."""
    train, test = digits()
    crowd = hammer_spammers(5, 10, 0.6, random_state=0)
    table = simulate_labels(train.y, crowd, labels_per_item=1, random_state=0)
    ensemble = at.CrowdClassifier(effort="fast", random_state=0).fit(train.X, table)
    one = at.CrowdClassifier(effort="fast", random_state=0, distill=True).fit(train.X, table)
    return ensemble, one, test


def test_one_network_is_about_as_accurate_as_the_ensemble(both):
    ensemble, one, test = both
    assert isinstance(one.network_, torch.nn.Sequential)
    n_networks = ensemble.network_.size
    assert n_networks == 5 * ensemble.n_rounds_
    assert n_weights(one) * n_networks == n_weights(ensemble)
    assert one.score(test.X, test.y) >= ensemble.score(test.X, test.y) - 0.015


def test_the_posterior_stays_that_of_the_networks_on_folds(both):
    ensemble, one, _ = both
    np.testing.assert_array_equal(one.posterior_, ensemble.posterior_)
    np.testing.assert_array_equal(one.oof_proba_, ensemble.oof_proba_)


def test_one_network_is_as_confident_as_the_ensemble(both):
    _, one, test = both
    confident = [model.predict_proba(test.X).max(1).mean() for model in both[:2]]
    assert confident[1] == pytest.approx(confident[0], abs=0.02)
    # Of new items: without its temperature it would be as uncertain as mixtures have made it.
    assert abs(np.log(one.temperature_)) > 0.1


def test_a_distilled_run_is_saved_and_loaded(tmp_path):
    X, _, table, _ = blobs()
    model = quick().fit(X, table)
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    assert not isinstance(loaded.network_, Ensemble)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)
    np.testing.assert_array_equal(loaded.posterior(X, table), model.posterior(X, table))


def test_a_run_cannot_say_that_an_ensemble_was_distilled(tmp_path):
    X, _, table, _ = blobs(n_items=40)
    quick(distill=False).fit(X, table).save(tmp_path)
    text = (tmp_path / "run.json").read_text().replace('"distill": false', '"distill": true')
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match="network"):
        at.load(tmp_path)


def test_an_interrupted_distillation_resumes(tmp_path):
    X, _, table, _ = blobs(n_items=120)
    whole = quick(epochs=3).fit(X, table)
    seen = []

    def stop_at_the_last(epoch):
        seen.append(epoch)
        if len(seen) == len(all_epochs) - 1:
            signal.raise_signal(signal.SIGINT)

    all_epochs = []
    quick(epochs=3, callbacks=[lambda epoch: all_epochs.append(epoch)]).fit(X, table)
    settings = {"epochs": 3, "checkpoint": tmp_path / "checkpoint.bin"}
    with pytest.raises(KeyboardInterrupt):
        quick(**settings, callbacks=[stop_at_the_last]).fit(X, table)
    resumed = quick(**settings).fit(X, table)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("change", [{}, {"distill": False}])
def test_a_warm_start_learns_new_items_without_a_search(change, tmp_path):
    X, truth, table, _ = blobs(n_items=300, labels_per_item=2)
    some = table.select_items(np.arange(200)).with_items(np.arange(200))
    quick().fit(X[:200], some).save(tmp_path)
    model = at.load(tmp_path).set_params(warm_start=True, **change)
    folds = model.fold_.copy()
    model.fit(X, table)
    np.testing.assert_array_equal(model.fold_[:200], folds)
    assert model.search_ == []
    assert isinstance(model.network_, Ensemble) == ("distill" in change)
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.9


def test_a_warm_start_with_fewer_folds_is_rejected():
    X, _, table, _ = blobs(n_items=60)
    model = quick(n_folds=3, n_iter=1, epochs=1, warm_start=True).fit(X, table)
    with pytest.raises(InputError, match="`n_folds` to be 3, as in the last fit, but got 2"):
        model.set_params(n_folds=2).fit(X, table)


def test_one_network_on_images_and_on_texts():
    X, truth, table, _ = blobs(n_items=60)
    settings = {"n_iter": 1, "epochs": 1, "init": "trace", "mixup": 0.0}
    images = np.resize(X, (60, 8, 8))
    words = [" ".join([["cat", "dog", "hen"][k]] * 3) for k in truth]
    for rows in (images, words):
        model = quick(**settings).fit(rows, table)
        assert not isinstance(model.network_, Ensemble)
        assert model.predict_proba(rows).shape == (60, 3)


def test_items_without_labels_get_the_prediction_of_the_one_network():
    X, _, table, _ = blobs(n_items=120)
    some = table.select_items(np.arange(100)).with_items(np.arange(120))
    model = quick().fit(X, some)
    np.testing.assert_allclose(model.posterior_[100:], model.predict_proba(X[100:]), atol=1e-6)
