import pytest
from crowds import blobs

import annotrace as at


def test_it_is_the_recommended_method(tmp_path):
    X, truth, table, _ = blobs()
    model = at.CrowdClassifier(random_state=0, n_init=1).fit(X, table)
    assert model.score(X, truth) > 0.9
    assert model.method == "auto"
    model.save(tmp_path)
    assert isinstance(at.load(tmp_path), at.CrowdClassifier)


@pytest.mark.parametrize("epochs", [1, 2])
def test_epochs_bound_the_initial_model_too(epochs):
    X, _, table, _ = blobs(n_items=60)
    numbers = []
    model = at.CrowdClassifier(
        epochs=epochs, random_state=0, callbacks=[lambda epoch: numbers.append(epoch.number)]
    ).fit(X, table)
    # Up to seven initial trainings, then two first iterations of twice the epochs and four more,
    # and 3 x 10 iterations at most to reinitialise collapsed classes.
    assert max(numbers) <= 2 * epochs
    initial = model.n_init + 3
    assert len(numbers) <= (initial + 4 + 4 + 30) * epochs
    assert model.epochs_ == epochs


def test_it_needs_no_parameters():
    params = at.CrowdClassifier().get_params()
    assert params == at.CrossFittedEM().get_params()
    assert repr(at.CrowdClassifier()) == "CrowdClassifier()"
