from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.exceptions import NotFittedError

import annotrace as at
from annotrace.allocation.gain import Reports
from annotrace.allocation.next_labels import CAUTION
from annotrace.allocation.plan import CANDIDATES
from annotrace.crowd import AnnotatorModel

HOSTILE = [
    '=cmd()|" /C"!A0',
    "<script>alert(1)</script>",
    "a,b;c\td",
    'say "hi"',
    "שלום",
    "new\nline",
]


def test_the_budget_is_spent_on_new_pairs_in_order_of_gain(model):
    frame = at.allocate(model, 50)
    assert frame.columns == ["item", "annotator", "priority", "expected_gain", "reason"]
    assert frame["priority"].to_list() == list(range(1, 51))
    assert frame["expected_gain"].is_sorted(descending=True)
    assert frame["item"].n_unique() == 50
    given = set(zip(model.table_.item.tolist(), model.table_.annotator.tolist(), strict=True))
    assert not given & set(frame.select("item", "annotator").rows())


def test_a_perfect_annotator_is_preferred_and_a_spammer_is_not_asked(model):
    asked = Counter(at.allocate(model, 60)["annotator"])
    assert asked.most_common(1)[0][0] == 0
    assert asked[5] == 0


def test_doubtful_items_come_first(model):
    frame = at.allocate(model, 30, available=[1])
    chosen = model.posterior_[frame["item"].to_list()].max(axis=1)
    free = np.setdiff1d(np.arange(300), model.table_.item[model.table_.annotator == 1])
    rest = np.setdiff1d(free, frame["item"].to_list())
    assert np.median(chosen) < np.quantile(model.posterior_[rest].max(axis=1), 0.1)


def test_a_greedy_plan_is_what_brute_force_gives(model):
    """All pairs scored in one table, the best taken, again and again."""
    posterior, n_labels = model.posterior_, model.table_.labels_per_item()[:, None]
    held_back = CAUTION / (1 + n_labels)
    posterior = (1 - held_back) * posterior + held_back * posterior.mean(axis=0)
    gains = Reports(model.result_.annotators.mean).gains(posterior)
    gains[model.table_.item, model.table_.annotator] = 0
    left, pairs = [7] * 6, []
    for flat in np.argsort(-gains.round(12), axis=None, kind="stable"):
        item, who = divmod(int(flat), 6)
        if left[who] and item not in dict(pairs):
            pairs.append((item, who))
            left[who] -= 1
    frame = at.allocate(model, 20, available=7)
    assert frame.select("item", "annotator").rows() == pairs[:20]


def test_capacity_is_kept(model):
    asked = Counter(at.allocate(model, 60, available={0: 5, 1: 3, 2: None})["annotator"])
    assert (asked[0], asked[1], asked[2]) == (5, 3, 52)
    assert max(Counter(at.allocate(model, 30, available=6)["annotator"]).values()) <= 6


def test_cost_counts_against_the_budget_and_for_the_choice(model):
    frame = at.allocate(model, 10, cost=2.5)
    assert len(frame) == 4
    dear = at.allocate(model, 10, cost={0: 100})
    assert 0 not in dear["annotator"].to_list()
    assert len(at.allocate(model, 1, cost=0.1)) == 10


def test_nobody_available_is_nobody_asked(model):
    assert len(at.allocate(model, 10, available={0: 0})) == 0


def test_several_labels_of_an_item_where_allowed(fitted):
    table = at.LabelTable.from_codes([0, 1], [0, 0], [0, 1], n_annotators=4)
    unsure = fitted(table, [[0.5, 0.5], [0.02, 0.98]])
    pairs = at.allocate(unsure, 3, per_item=3, at_least=0).select("item", "annotator").rows()
    assert [item for item, _ in pairs].count(0) >= 2
    assert len(set(pairs)) == 3


def test_what_is_settled_is_not_asked_whatever_the_budget(fitted):
    n = 60
    item, annotator = np.divmod(np.arange(30 * n), n)
    truth = np.arange(30) % 2
    table = at.LabelTable.from_codes(item, annotator, truth[item], n_annotators=n + 2)
    posterior = np.eye(2)[truth]
    posterior[7] = 0.5
    frame = at.allocate(fitted(table, posterior), 1000)
    assert frame["item"].unique().to_list() == [7]


def test_labels_given_back_as_they_are_still_get_a_second_one_each():
    """One label an item tells nobody's skill: the work is shared out."""
    table = at.LabelTable.from_codes(np.arange(40), np.arange(40) % 8, np.arange(40) // 8 % 2)
    truth = at.aggregation.make("dawid-skene").fit(table)
    frame = at.allocate(truth, 40, at_least=0)
    assert frame["item"].n_unique() == 40
    assert set(Counter(frame["annotator"]).values()) == {5}


def test_newcomers_get_enough_to_be_known(model):
    everybody = [*range(6), "kim", "lee"]
    frame = at.allocate(model, 60, available=everybody, at_least=12)
    asked = Counter(frame["annotator"])
    assert asked["kim"] >= 12
    assert asked["lee"] >= 12
    by_kim = frame.filter(pl.col("annotator") == "kim")["reason"][0]
    assert "kim has no labels so far, too few to estimate their skill" in by_kim
    assert Counter(at.allocate(model, 60, available=everybody, at_least=0)["annotator"])["kim"] == 0


def test_newcomers_get_half_of_a_small_budget_and_one_is_known_before_the_next(model):
    frame = at.allocate(model, 20, available=[*range(6), "kim", "lee"], at_least=8)
    assert sorted(Counter(frame["annotator"][:10]).items()) == [("kim", 8), ("lee", 2)]


def test_a_budget_pays_for_the_labels_that_it_is_the_price_of(model):
    people = {"available": [*range(6), "kim"], "cost": 0.1}
    frame = at.allocate(model, 0.6, at_least=3, **people)
    assert Counter(frame["annotator"][:3]) == {"kim": 3}
    assert len(frame) == 6


def test_an_item_without_labels_is_asked_first():
    table = at.LabelTable.from_codes(
        [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], n_items=3, n_annotators=3
    )
    truth = at.aggregation.make("dawid-skene").fit(table)
    first = at.allocate(truth, 1, at_least=0).row(0, named=True)
    assert first["item"] == 2
    assert first["reason"].startswith("no labels yet (now ")


def test_the_same_call_gives_the_same_labels(model):
    assert at.allocate(model, 40, per_item=2).equals(at.allocate(model, 40, per_item=2))


def test_a_classifier_is_allocated_by_too():
    truth = np.arange(80) % 2
    X = np.eye(2, dtype=np.float32)[truth]
    crowd = at.simulate.hammer_spammers(4, 2, skill=0.6, random_state=0)
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=1, random_state=0)
    model = at.make("vanilla", epochs=2, random_state=0).fit(X, table)
    assert len(at.allocate(model, 5)) == 5


def test_hostile_names_come_out_as_themselves():
    table = at.LabelTable.from_long(
        {"item": HOSTILE, "annotator": HOSTILE, "label": ["=1+1", "b"] * 3}
    )
    frame = at.allocate(at.aggregation.make("majority").fit(table), 6)
    assert set(frame["item"]) <= set(HOSTILE)
    assert set(frame["annotator"]) <= set(HOSTILE)
    assert len(frame) == 6


def test_of_many_annotators_only_the_best_are_put_in_order(monkeypatch):
    rng = np.random.default_rng(0)
    crowd = at.simulate.hammer_spammers(400, 3, 0.7, rng)
    truth = np.arange(2000) % 3
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=6, random_state=rng)
    model = at.aggregation.make("one-coin").fit(table)
    sizes, whole = [], np.lexsort

    def sort(keys):
        sizes.append(len(keys[0]))
        return whole(keys)

    monkeypatch.setattr(np, "lexsort", sort)
    at.allocate(model, 50, at_least=0)
    assert 0 < max(sizes) < 2 * CANDIDATES


def test_what_has_learned_nothing_is_refused():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        at.allocate(at.aggregation.make(), 5)


class DifficultItems(AnnotatorModel):
    """Everybody is correct on even items, and guesses on odd ones."""

    def __init__(self, n_annotators, n_classes):
        super().__init__()
        self.n_annotators, self.n_classes = n_annotators, n_classes

    def log_likelihood(self, annotator, label, item=None):
        correct = 0.9 * torch.nn.functional.one_hot(label, self.n_classes) + 0.1 / self.n_classes
        if item is None:
            return correct.log()
        guess = torch.full_like(correct, 1 / self.n_classes)
        return torch.where(item[:, None] % 2 == 0, correct, guess).log()

    def matrices(self, annotators=None, items=None):
        n = self.n_annotators if annotators is None else len(annotators)
        return (0.9 * torch.eye(self.n_classes) + 0.1 / self.n_classes).repeat(n, 1, 1)


def test_any_annotator_model_will_do(model):
    custom = DifficultItems(model.table_.n_annotators, 3)
    result = replace(model.result_, annotator_model=custom)
    copied = at.aggregation.DawidSkene()
    copied.result_ = result
    frame = at.allocate(copied, 20, available=[*range(6), "kim"])
    assert len(frame) == 20


def test_prior_counts_are_kept_when_annotators_join(model):
    counts = np.zeros((6, 3, 3))
    counts[5] = 1000 * np.eye(3)
    trusted = at.aggregation.make("dawid-skene").fit(model.table_, prior_counts=counts)
    asked = Counter(at.allocate(trusted, 30, available=[5, 4, "kim"], at_least=0)["annotator"])
    assert asked["5"] == 30


def test_one_class_needs_no_labels():
    table = at.LabelTable.from_codes([0, 0, 1], [0, 1, 0], [0, 0, 0])
    assert at.allocate(at.aggregation.MajorityVote().fit(table), 5).is_empty()
