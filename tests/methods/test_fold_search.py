import numpy as np
import pytest
from crowds import blobs

import annotrace as at
from annotrace.methods import fold_search
from annotrace.training.progress import Estimate


@pytest.fixture
def totals(monkeypatch):
    """How many trainings were expected in all, each time that a number was announced."""
    totals = []
    expect = Estimate.expect

    def noted(estimate, n_left, by=None):
        expect(estimate, n_left, by)
        totals.append(estimate.total)

    monkeypatch.setattr(Estimate, "expect", noted)
    return totals


@pytest.mark.parametrize("init", ["auto", "labels", "trace", "votes"])
@pytest.mark.parametrize("effort", ["fast", "default", "thorough"])
def test_a_search_is_announced_with_as_many_trainings_as_it_may_make(totals, init, effort):
    X, _, table, _ = blobs(n_items=60, labels_per_item=1)
    settings = {"epochs": 1, "random_state": 0, "verbose": True}
    model = at.CrossFittedEM(init=init, effort=effort, **settings).fit(X, table)
    n_iter = {"fast": 1, "default": 2, "thorough": 4}[effort]
    # Before the search; when it is known whether labels alone are trusted; before the iterations.
    most = totals[1]
    assert most - 3 <= len(model.search_) + n_iter <= most <= totals[0]


def test_all_trainings_have_one_display(capsys, monkeypatch):
    monkeypatch.setattr("annotrace.training.progress.LINE_SECONDS", 0.0)
    X, _, table, _ = blobs(n_items=60)
    images = np.resize(X, (60, 4, 4))
    settings = {"epochs": 2, "random_state": 0, "verbose": True, "distill": True}
    model = at.CrossFittedEM(effort="fast", **settings).fit(images, table)
    *lines, last = capsys.readouterr().err.splitlines()
    counts = [line.split()[1].split("/") for line in lines]
    numbers = [int(number) for number, _ in counts]
    n_trainings = numbers[-1]
    assert sorted(set(numbers)) == list(range(1, n_trainings + 1))
    # Three augmentations, the search, one iteration, and the network that is distilled.
    assert n_trainings >= 3 + len(model.search_) + 1 + 1
    assert all(int(total) >= int(number) for number, total in counts)
    assert last.startswith(f"{n_trainings} trainings in 0:00:")


def test_a_quiet_fit_shows_nothing(capsys):
    X, _, table, _ = blobs(n_items=60)
    at.CrossFittedEM(effort="fast", epochs=1, random_state=0).fit(X, table)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("effort", "judged"), [("default", True), ("fast", False), (1e-6, False)])
def test_the_best_network_teaches_the_others_only_if_there_is_time(monkeypatch, effort, judged):
    calls = []

    def losses(*_):
        calls.append(1)
        return np.zeros(2)

    monkeypatch.setattr(fold_search, "held_out_losses", losses)
    X, _, table, _ = blobs(n_items=60, labels_per_item=2)
    settings = {"init": "trace", "n_folds": 2, "epochs": 1, "random_state": 0}
    at.CrossFittedEM(effort=effort, **settings).fit(X, table)
    assert bool(calls) == judged
