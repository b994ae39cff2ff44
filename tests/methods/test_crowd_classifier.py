import pytest
from crowds import blobs

import annotrace as at


def test_it_is_the_recommended_method(tmp_path):
    X, truth, table, _ = blobs()
    model = at.CrowdClassifier(random_state=0).fit(X, table)
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
    # Six trainings of twice the epochs at most to start from, then two iterations, and 3 x 2
    # iterations at most to reinitialise collapsed classes.
    assert max(numbers) <= 2 * epochs
    assert len(numbers) <= (6 * 2 + 2 + 6) * epochs
    assert model.epochs_ == epochs


def test_it_needs_no_parameters():
    params = at.CrowdClassifier().get_params()
    assert params == at.CrossFittedEM().get_params()
    assert repr(at.CrowdClassifier()) == "CrowdClassifier()"
