import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.methods.fold_networks import Round
from annotrace.methods.plain_guard import Plain, agrees_more, better_plain, plain_candidates
from annotrace.methods.search import Candidate, Tried

TABLE = at.LabelTable.from_codes(np.arange(400), np.zeros(400, int), np.arange(400) % 2)


def tried(label_loss, n_right, **changes):
    """A candidate whose predictions equal the labels of the first items."""
    proba = np.full((400, 2), 0.1)
    proba[np.arange(400), (TABLE.label + (np.arange(400) >= n_right)) % 2] = 0.9
    return Tried(Candidate(**changes), 5, label_loss, proba, proba)


def plain(*each):
    return [Plain(number, one, Round(None, None, 5, [])) for number, one in enumerate(each)]


def test_a_plain_classifier_wins_if_labels_are_likelier_and_it_agrees_more():
    (better,) = candidates = plain(tried(0.5, 340, learner="votes"))
    assert better_plain(tried(0.6, 300), candidates, TABLE) is better
    assert better_plain(tried(0.51, 300), candidates, TABLE) is None
    assert better_plain(tried(0.6, 340), candidates, TABLE) is None
    assert better_plain(tried(0.6, 350), candidates, TABLE) is None
    assert better_plain(tried(0.6, 300), [], TABLE) is None


def test_the_best_of_several_plain_classifiers_is_found():
    candidates = plain(tried(0.55, 330), tried(0.5, 340), tried(0.4, 300))
    # The last one does not agree more often, however likely labels are by it.
    assert better_plain(tried(0.6, 300), candidates, TABLE) is candidates[1]


def test_agreement_is_compared_in_pairs():
    # Of 400 labels 9 are hit in addition, by the same predictions elsewhere: 3 standard errors.
    assert agrees_more(tried(0, 309), tried(0, 300), TABLE)
    assert not agrees_more(tried(0, 300), tried(0, 300), TABLE)
    other = tried(0, 300)
    other.proba = other.proba[::-1]
    # 200 labels are hit by one of the two alone; a gain of 10 is less than their noise.
    one = tried(0, 310)
    gain = (one.proba.argmax(1) == TABLE.label) * 1.0 - (other.proba.argmax(1) == TABLE.label)
    expected = gain.mean() > gain.std() / 20
    assert agrees_more(one, other, TABLE) == expected


def test_candidates_that_learned_labels_alone_are_plain():
    each = [
        tried(0.5, 300),
        tried(0.5, 300, learner="labels"),
        tried(0.5, 300, learner="votes"),
        tried(0.5, 300, learner="labels", backbone="mlp"),
    ]
    found = plain_candidates([(one, Round(None, None, 5, [])) for one in each])
    assert [one.number for one in found] == [1, 2]


class Astray(at.CrossFittedEM):
    """Iterations that learn nothing of the labels."""

    def _iterate(self, data, inner, *args, **kwargs):
        rng = np.random.default_rng(0)
        inner.set_posterior(torch.from_numpy(rng.dirichlet(np.ones(3), self.table_.n_items)))
        return super()._iterate(data, inner, *args, **kwargs)


@pytest.mark.parametrize("distill", [False, True])
def test_iterations_that_go_astray_do_no_harm(tmp_path, distill):
    X, truth, table, _ = blobs(labels_per_item=1)
    settings = {"n_iter": 1, "random_state": 0, "distill": distill}
    model = Astray(**settings).fit(X, table)
    assert model.chosen_["learner"] == "labels"
    assert [each["learner"] for each in model.search_ if each["chosen"]] == ["labels"]
    assert model.n_rounds_ == 1
    assert model.score(X, truth) > 0.9
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.9
    model.save(tmp_path)
    np.testing.assert_array_equal(at.load(tmp_path).predict_proba(X), model.predict_proba(X))


def test_a_thorough_search_tries_the_plain_classifier():
    X, _, table, _ = blobs(n_items=60, labels_per_item=1)
    settings = {"n_iter": 1, "epochs": 1, "random_state": 0, "effort": "thorough"}
    trials = at.CrossFittedEM(**settings).fit(X, table).search_
    votes = [each for each in trials if each["learner"] == "votes"]
    assert [each["mixup"] for each in votes] == [0.0]
