"""A fit that was stopped goes on by the same call, and by no other."""

import signal

import numpy as np
import pytest
from crowds import blobs

import annotrace as at
from annotrace.errors import RunError

X, TRUTH, TABLE, MATRICES = blobs(n_items=120)


def trace(path, callbacks=(), **settings):
    given = {"epochs": 4, "pool": False, "mixup": 0.0, "restarts": 2, **settings}
    return at.TraceRegularized(**given, checkpoint=path, callbacks=callbacks)


def stop(path, n_epochs, **settings):
    """Stop a fit after so many epochs."""
    left = iter(range(n_epochs, -1, -1))

    def note(epoch):
        if next(left) == 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trace(path, callbacks=[note], **settings).fit(X, TABLE)


@pytest.mark.parametrize("n_epochs", [2, 6])
def test_without_a_seed_it_goes_on_with_the_one_that_was_drawn(tmp_path, n_epochs):
    path = tmp_path / "c.pt"
    stop(path, n_epochs)
    seen = []
    trace(path, callbacks=[seen.append]).fit(X, TABLE)
    assert len(seen) == 8 - n_epochs
    assert list(tmp_path.iterdir()) == []


def test_a_generator_made_anew_gives_the_same_call(tmp_path):
    whole = trace(None, random_state=np.random.default_rng(3)).fit(X, TABLE)
    stop(tmp_path / "c.pt", 2, random_state=np.random.default_rng(3))
    resumed = trace(tmp_path / "c.pt", random_state=np.random.default_rng(3)).fit(X, TABLE)
    np.testing.assert_array_equal(resumed.posterior_, whole.posterior_)


def test_other_features_are_refused(tmp_path):
    stop(tmp_path / "c.pt", 2, random_state=0)
    with pytest.raises(RunError, match="other settings or data"):
        trace(tmp_path / "c.pt", random_state=0).fit(X[::-1].copy(), TABLE)


def test_when_the_first_checkpoint_is_deleted_all_begins_anew(tmp_path):
    stop(tmp_path / "c.pt", 6, random_state=0)
    assert {path.name for path in tmp_path.iterdir()} == {"c.pt", "c.pt.1"}
    (tmp_path / "c.pt").unlink()
    trace(tmp_path / "c.pt", random_state=0, epochs=2).fit(X, TABLE)
    assert list(tmp_path.iterdir()) == []
