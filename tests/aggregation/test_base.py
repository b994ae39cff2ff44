"""What holds for every aggregation alike."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_table
from sklearn.exceptions import ConvergenceWarning

from annotrace.aggregation import list_aggregations, make
from annotrace.diagnosis import calibrated_confidence
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels

NAMES = [entry.name for entry in list_aggregations()]
every = pytest.mark.parametrize("name", NAMES)
seeds = st.integers(0, 10_000)


def fitted(name, table, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(name).fit(table, **given)


@every
@given(seed=seeds)
@settings(max_examples=2, deadline=None)
def test_renaming_changes_nothing_but_the_order(name, seed):
    rng = np.random.default_rng(seed)
    item, annotator, label, _ = random_table(rng)
    items, annotators, classes = (rng.permutation(n) for n in (30, 6, 3))
    rows = rng.permutation(len(item))
    before = fitted(name, LabelTable.from_codes(item, annotator, label))
    after = fitted(
        name,
        LabelTable.from_codes(items[item[rows]], annotators[annotator[rows]], classes[label[rows]]),
    )
    there = np.ix_(items, classes)
    np.testing.assert_allclose(after.posterior_[there], before.posterior_, atol=1e-6)
    matrices = after.confusion_[np.ix_(annotators, classes, classes)]
    np.testing.assert_allclose(matrices, before.confusion_, atol=1e-6)
    np.testing.assert_allclose(after.skill_[annotators], before.skill_, atol=1e-6)


@every
@given(seed=seeds)
@settings(max_examples=3, deadline=None)
def test_distributions_sum_to_one(name, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, size=3)
    item, annotator, label, _ = random_table(rng, 10, 5, sizes[0], labels_each=sizes[1])
    table = LabelTable.from_codes(item, annotator, label, n_items=12, n_annotators=7, n_classes=6)
    model = fitted(name, table)
    assert model.posterior_.shape == (12, 6)
    assert model.confusion_.shape == (7, 6, 6)
    for part in (model.posterior_, model.confusion_, model.prior_):
        np.testing.assert_allclose(part.sum(-1), 1, atol=1e-6)
        assert np.all(part >= 0)
    assert model.confidence_.shape == (12,)
    assert np.all((model.confidence_ > 0) & (model.confidence_ <= 1))
    assert np.all(np.isfinite(model.objective_))


@every
def test_beats_its_own_annotators(name):
    item, annotator, label, truth = random_table(np.random.default_rng(0), 500, 15, 4)
    model = fitted(name, LabelTable.from_codes(item, annotator, label))
    assert (model.predict() == truth).mean() > (label == truth[item]).mean() + 0.05


@every
def test_items_without_labels_have_the_prior(name, crowd):
    table = crowd.with_items([30, 31])
    model = fitted(name, table)
    np.testing.assert_allclose(model.posterior_[30:], [model.prior_] * 2, atol=1e-6)
    without = fitted(name, crowd)
    np.testing.assert_allclose(model.posterior_[:30], without.posterior_, atol=1e-6)


@every
def test_annotators_without_labels_have_the_pool(name, crowd):
    table = LabelTable.from_codes(crowd.item, crowd.annotator, crowd.label, n_annotators=8)
    model = fitted(name, table)
    pool = np.average(model.confusion_[:6], axis=0, weights=table.labels_per_annotator()[:6])
    np.testing.assert_allclose(model.confusion_[6:], [pool] * 2, atol=1e-6)


@every
def test_gold_is_respected_and_teaches(name):
    item, annotator, label, truth = random_table(np.random.default_rng(1), 300, 10, 3, skill=0.4)
    table = LabelTable.from_codes(item, annotator, label)
    gold = np.where(np.arange(300) < 150, truth, -1)
    model = fitted(name, table, gold=gold)
    assert np.all(model.predict()[:150] == truth[:150])
    np.testing.assert_allclose(model.confidence_[:150], 1)


def test_confidence_allows_for_mistakes_made_together(crowd):
    model = fitted("dawid-skene", crowd)
    expected = calibrated_confidence(crowd, model.posterior_, model.confusion_)
    np.testing.assert_allclose(model.confidence_, expected)
    assert model.confidence_.mean() < model.posterior_.max(1).mean()


def test_small_crowds_settle():
    """Strengths of priors creep on for long where labels are few, and the truth stays."""
    for seed in range(3):
        matrices = hammer_spammers(6, 3, skill=0.6, random_state=seed)
        table = simulate_labels(np.arange(400) % 3, matrices, labels_per_item=2, random_state=seed)
        assert make().fit(table).converged_


@every
def test_the_past_of_an_annotator_counts(name, crowd):
    past = np.zeros((6, 3, 3))
    past[2] = 200 * np.array([[0.1, 0.45, 0.45], [0.45, 0.1, 0.45], [0.45, 0.45, 0.1]])
    without, model = fitted(name, crowd), fitted(name, crowd, confusion_prior=past)
    assert model.skill_[2] < without.skill_[2] - 0.1
    assert model.skill_[2] < 0.4


@every
def test_labels_that_arrive_later_end_near_a_refit(name):
    item, annotator, label, _ = random_table(np.random.default_rng(2), 400, 12, 3, labels_each=5)
    table = LabelTable.from_codes(item, annotator, label)
    first = np.arange(len(item)) % 5 < 4
    early, late = (
        LabelTable.from_codes(item[part], annotator[part], label[part], n_items=400)
        for part in (first, ~first)
    )
    warm = fitted(name, early).partial_fit(late)
    anew = fitted(name, table)
    assert warm.table_.n_labels == len(item)
    assert warm.n_iter_ <= 10
    assert np.mean(warm.predict() == anew.predict()) > 0.98
    np.testing.assert_allclose(warm.skill_, anew.skill_, atol=0.03)


@every
def test_vocabularies_grow_by_name(name):
    early = _named(["a", "a", "b"], ["kim", "lee", "kim"], ["cat", "cat", "dog"])
    late = _named(["c", "c", "a"], ["mia", "kim", "mia"], ["emu", "emu", "cat"])
    model = fitted(name, early).partial_fit(late)
    assert model.table_.items.tolist() == ["a", "b", "c"]
    assert model.table_.annotators.tolist() == ["kim", "lee", "mia"]
    assert model.table_.classes.tolist() == ["cat", "dog", "emu"]
    assert model.predict().tolist()[0] == "cat"
    assert model.posterior_.shape == (3, 3)


def _named(items, annotators, labels):
    columns = [
        np.unique(np.array(names), return_inverse=True) for names in (items, annotators, labels)
    ]
    text = [names.astype(np.dtypes.StringDType()) for names, _ in columns]
    codes = [code for _, code in columns]
    return LabelTable(*codes, items=text[0], annotators=text[1], classes=text[2])


def test_numbers_and_text_do_not_mix():
    model = make("majority").fit(LabelTable.from_codes([0], [0], [0]))
    with pytest.raises(InputError, match="numbers in both tables or text in both"):
        model.partial_fit(_named(["a"], ["kim"], ["cat"]))


@every
def test_one_class_and_two_items(name):
    model = fitted(name, LabelTable.from_codes([0, 1], [0, 0], [0, 0]))
    np.testing.assert_allclose(model.posterior_, 1)


def test_predicting_before_learning_is_an_error():
    with pytest.raises(InputError, match="call `fit` first"):
        make("dawid-skene").predict()


def test_answers_that_are_no_table_are_told():
    with pytest.raises(InputError, match=r"Expected a LabelTable, but got ndarray: make one with"):
        make().fit(np.array([[0, 1], [1, 1]]))


def test_wrong_gold_and_past_are_told(crowd):
    with pytest.raises(InputError, match=r"shape \(30,\)"):
        make().fit(crowd, gold=[0, 1])
    with pytest.raises(InputError, match="annotator, true, reported"):
        make().fit(crowd, confusion_prior=np.ones((2, 3, 3)))
    with pytest.raises(InputError, match="at least 0"):
        make().fit(crowd, confusion_prior=-np.ones((6, 3, 3)))


def test_unknown_names_list_the_known():
    with pytest.raises(InputError, match="there are hierarchical, majority"):
        make("magic")


@every
def test_labels_that_cannot_be_compared_are_given_back(name):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 200)
    table = LabelTable.from_codes(np.arange(200), rng.integers(0, 4, 200), label)
    np.testing.assert_array_equal(fitted(name, table).predict(), label)


@every
def test_labels_that_cannot_be_compared_are_given_back_batch_by_batch(name):
    label, annotator = np.array([1, 0, 0, 0, 0, 0, 0]), np.array([1, 0, 0, 0, 1, 0, 1])
    batches = [
        LabelTable(
            np.arange(len(part)),
            annotator[part],
            label[part],
            items=part,
            annotators=np.arange(2),
            classes=np.arange(2),
        )
        for part in (np.arange(4), np.arange(4, 7))
    ]
    model = fitted(name, batches[0]).partial_fit(batches[1])
    np.testing.assert_array_equal(model.predict(), label)
    assert model.converged_


@pytest.mark.parametrize("name", ["dawid-skene", "pooled", "hierarchical", "glad", "mace"])
def test_a_fit_that_is_stopped_leaves_what_was_found(name, monkeypatch):
    first, other = (
        _named(list("aabbcc"), ["kim", "lee"] * 3, list(labels)) for labels in ("xxyyxy", "yyxyyx")
    )
    model = fitted(name, first)
    posterior, confusion = model.posterior_.copy(), model.confusion_.copy()

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_infer", stop)
        for again in (model.fit, model.partial_fit):
            with pytest.raises(KeyboardInterrupt):
                again(other)
    np.testing.assert_array_equal(model.posterior_, posterior)
    np.testing.assert_array_equal(model.confusion_, confusion)
    assert model.table_ == first
    expected = fitted(name, first).partial_fit(other)
    np.testing.assert_allclose(model.partial_fit(other).posterior_, expected.posterior_)
