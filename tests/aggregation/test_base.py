"""What holds for every aggregation alike."""

import warnings
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from references import fit_quietly, mean_diagonal, random_table
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from annotrace.aggregation import list_aggregations, make
from annotrace.crowd.em import item_log_likelihood, posterior
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels

NAMES = [entry.name for entry in list_aggregations()]
every = pytest.mark.parametrize("name", NAMES)
seeds = st.integers(0, 10_000)


def fitted(name, table, **given):
    return fit_quietly(make(name, random_state=0), table, **given)


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
    if not (before.result_.is_vote and before.ties_.any()):
        np.testing.assert_allclose(after.skill_[annotators], before.skill_, atol=1e-4)


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
def test_gold_items_are_certain(name):
    item, annotator, label, truth = random_table(np.random.default_rng(1), 300, 10, 3, skill=0.4)
    table = LabelTable.from_codes(item, annotator, label)
    gold = np.where(np.arange(300) < 150, truth, -1)
    model = fitted(name, table, gold=gold)
    assert np.all(model.predict()[:150] == truth[:150])
    np.testing.assert_allclose(model.confidence_[:150], 1)


def test_confidence_allows_for_errors_that_annotators_share(crowd):
    model = fitted("dawid-skene", crowd)
    assert np.all(model.confidence_ <= model.posterior_.max(1) + 1e-12)
    assert model.confidence_.mean() < model.posterior_.max(1).mean()


def test_small_crowds_converge():
    """Strengths of priors keep creeping where labels are few, while the truth stays."""
    for seed in range(3):
        matrices = hammer_spammers(6, 3, skill=0.6, random_state=seed)
        table = simulate_labels(np.arange(400) % 3, matrices, labels_per_item=2, random_state=seed)
        assert make().fit(table).converged_


@every
def test_counts_of_earlier_labels_count(name, crowd):
    earlier = np.zeros((6, 3, 3))
    earlier[2] = 200 * np.array([[0.1, 0.45, 0.45], [0.45, 0.1, 0.45], [0.45, 0.45, 0.1]])
    without, model = fitted(name, crowd), fitted(name, crowd, prior_counts=earlier)
    assert mean_diagonal(model)[2] < mean_diagonal(without)[2] - 0.1
    assert mean_diagonal(model)[2] < 0.4
    np.testing.assert_allclose(model.result_.prior_counts, earlier)


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
    refitted = fitted(name, table)
    assert warm.table_.n_labels == len(item)
    assert warm.n_iter_ <= 10
    assert np.mean(warm.predict() == refitted.predict()) > 0.98
    np.testing.assert_allclose(mean_diagonal(warm), mean_diagonal(refitted), atol=0.03)


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


def test_counts_of_earlier_labels_stay_when_labels_arrive():
    early = _named(["a", "a", "b"], ["kim", "lee", "kim"], ["cat", "cat", "dog"])
    late = _named(["c", "c", "a"], ["mia", "kim", "mia"], ["emu", "emu", "cat"])
    earlier = np.arange(8.0).reshape(2, 2, 2)
    model = fitted("dawid-skene", early, prior_counts=earlier)
    grown = model.partial_fit(late).result_.prior_counts
    np.testing.assert_array_equal(grown[:2, :2, :2], earlier)
    assert grown.shape == (3, 3, 3)
    assert grown.sum() == earlier.sum()


@every
def test_a_first_partial_fit_is_a_fit(name, crowd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(name, random_state=0).partial_fit(crowd)
    np.testing.assert_array_equal(model.posterior_, fitted(name, crowd).posterior_)


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


@every
def test_an_aggregation_that_is_not_fitted_says_so(name, tmp_path):
    model = make(name)
    for use in (model.predict, lambda: model.save(tmp_path)):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(model, "posterior_")


def test_only_tables_are_accepted():
    with pytest.raises(InputError, match=r"Expected a LabelTable, but got ndarray: make one with"):
        make().fit(np.array([[0, 1], [1, 1]]))
    with pytest.raises(InputError, match="it has none"):
        make().fit(LabelTable.from_codes([], [], [], n_items=3, n_classes=2))


def test_wrong_gold_and_prior_counts_are_rejected(crowd):
    with pytest.raises(InputError, match=r"shape \(30,\)"):
        make().fit(crowd, gold=[0, 1])
    with pytest.raises(InputError, match="annotator, true, reported"):
        make().fit(crowd, prior_counts=np.ones((2, 3, 3)))
    with pytest.raises(InputError, match="0 or more"):
        make().fit(crowd, prior_counts=-np.ones((6, 3, 3)))


@every
def test_labels_that_nothing_compares_are_returned(name):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 200)
    table = LabelTable.from_codes(np.arange(200), rng.integers(0, 4, 200), label)
    model = fitted(name, table)
    np.testing.assert_array_equal(model.predict(), label)
    assert np.all((model.confidence_ > 0.4) & (model.confidence_ <= 0.5))


@every
def test_labels_that_nothing_compares_are_returned_batch_by_batch(name):
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
def test_a_fit_that_is_interrupted_leaves_the_previous_result(name, monkeypatch):
    first, other = (
        _named(list("aabbcc"), ["kim", "lee"] * 3, list(labels)) for labels in ("xxyyxy", "yyxyyx")
    )
    model = fitted(name, first)
    posterior, confusion = model.posterior_.copy(), model.confusion_.copy()

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(model.annotator_model_), "e_step", stop)
        for again in (model.fit, model.partial_fit):
            with pytest.raises(KeyboardInterrupt):
                again(other)
    np.testing.assert_array_equal(model.posterior_, posterior)
    np.testing.assert_array_equal(model.confusion_, confusion)
    assert model.table_ == first
    expected = fitted(name, first).partial_fit(other)
    np.testing.assert_allclose(model.partial_fit(other).posterior_, expected.posterior_)


PARAMS = {"smoothing": 0.3, "max_iter": 7, "knowing": 0.4, "n_steps": 2, "random_state": 5}


@every
def test_it_is_a_scikit_learn_estimator(name, crowd):
    model = make(name)
    known = model.get_params()
    assert "random_state" in known
    given = {key: value for key, value in PARAMS.items() if key in known}
    assert model.set_params(**given) is model
    assert {key: model.get_params()[key] for key in given} == given
    shown = repr(model)
    assert shown.startswith(f"{type(model).__name__}(")
    assert all(f"{key}={value}" in shown for key, value in given.items())
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        model.set_params(nonsense=1)
    assert fit_quietly(model, crowd) is model
    copy = clone(model)
    assert type(copy) is type(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "result_")
    np.testing.assert_array_equal(fit_quietly(copy, crowd).posterior_, model.posterior_)


@every
def test_fitting_twice_is_fitting_once(name, crowd):
    model = fitted(name, crowd)
    posterior = model.posterior_.copy()
    fit_quietly(model, crowd.select_items(np.arange(10)))
    np.testing.assert_array_equal(fit_quietly(model, crowd).posterior_, posterior)


@every
def test_the_result_is_what_the_attributes_show(name, crowd):
    model = fitted(name, crowd, gold={3: 1})
    result = model.result_
    assert result.table is model.table_ is crowd
    assert result.posterior is model.posterior_
    assert result.annotator_model is model.annotator_model_
    assert result.gold[3] == 1
    assert not result.has_classifier
    np.testing.assert_array_equal(result.matrices(), model.confusion_)
    np.testing.assert_array_equal(crowd.classes[result.estimate], model.predict())


def test_predictions_are_plain_arrays():
    text = _named(["a", "a", "b"], ["kim", "lee", "kim"], ["cat", "cat", "dog"])
    assert make("majority").fit(text).predict().dtype.kind in "UO"
    codes = LabelTable.from_codes([0, 0, 1], [0, 1, 0], [1, 1, 0])
    assert make("majority").fit(codes).predict().dtype.kind == "i"


@every
def test_the_posterior_follows_from_the_annotator_model(name):
    """Bayes' rule, except where votes stand for probabilities or Bayes is variational."""
    item, annotator, label, _ = random_table(np.random.default_rng(5), 200, 8, 3, labels_each=6)
    table = LabelTable.from_codes(item, annotator, label)
    model = fitted(name, table)
    likelihood = torch.from_numpy(item_log_likelihood(model.annotator_model_, table))
    found = posterior(torch.from_numpy(model.prior_).log(), likelihood).numpy()
    assert np.mean(found.argmax(1) == model.posterior_.argmax(1)) > 0.95
    if name in ("dawid-skene", "one-coin", "glad"):
        np.testing.assert_allclose(found, model.posterior_, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "n_iter"), [("dawid-skene", 600), ("pooled", 100), ("hierarchical", 100)]
)
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_falls(name, n_iter, seed):
    item, annotator, label, _ = random_table(np.random.default_rng(seed), 20, 5, 3, skill=0.5)
    table = LabelTable.from_codes(item, annotator, label)
    objective = fit_quietly(make(name, max_iter=n_iter, tol=-1), table).objective_
    assert len(objective) == n_iter
    assert np.diff(objective).min() > -1e-8


def test_a_warning_says_what_to_do_when_iterations_run_out(crowd):
    with pytest.warns(ConvergenceWarning, match="increase `max_iter`"):
        make("dawid-skene", max_iter=2, tol=0).fit(crowd)


@every
def test_arrays_are_not_views_of_tensors(name):
    # torch moves tensors to shared memory when a model is sent to another process, and arrays that
    # are views of them dangle.
    item, annotator, label, _ = random_table(np.random.default_rng(0))
    model = fitted(name, LabelTable.from_codes(item, annotator, label))
    buffers = [buffer.data_ptr() for buffer in model.annotator_model_.buffers()]
    assert model.prior_.__array_interface__["data"][0] not in buffers
    before = model.prior_.tolist()
    ForkingPickler.dumps(model)
    assert model.prior_.tolist() == before
