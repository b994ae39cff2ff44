import numpy as np
import pytest

import annotrace as at
from annotrace.aggregation import Ensemble, Hierarchical, make
from annotrace.crowd.problem import CrowdProblem
from annotrace.labels import LabelTable


def crowd(skills, n_items=500, n_classes=3, shares=None, each=5, seed=0):
    """Annotators of given skills who err independently, `each` of them per item."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n_items, p=shares)
    annotator = np.argsort(rng.random((n_items, len(skills))), axis=1)[:, :each].ravel()
    item = np.repeat(np.arange(n_items), each)
    right = rng.random(len(item)) < np.asarray(skills)[annotator]
    wrong = (truth[item] + rng.integers(1, n_classes, len(item))) % n_classes
    table = LabelTable.from_codes(item, annotator, np.where(right, truth[item], wrong))
    return table.replace(truth=truth.astype(np.int32))


def divided(n_sharing, seed=0, n_items=500):
    """Fifteen annotators, of whom some share answers that are right half of the time."""
    rng = np.random.default_rng(seed)
    table = crowd([0.65] * 15, n_items=n_items, seed=seed)
    truth = table.truth
    wrong = (truth + rng.integers(1, 3, n_items)) % 3
    shared = np.where(rng.random(n_items) < 0.5, truth, wrong)
    copies = (table.annotator < n_sharing) & (rng.random(table.n_labels) < 0.95)
    label = np.where(copies, shared[table.item], table.label)
    sizes = {"n_items": n_items, "n_annotators": 15, "n_classes": 3}
    return LabelTable.from_codes(table.item, table.annotator, label, **sizes).replace(truth=truth)


def accuracy(method, table):
    return np.mean(make(method).fit(table).predict() == table.truth)


def balanced_accuracy(method, table):
    right = make(method).fit(table).predict() == table.truth
    return np.mean([right[table.truth == k].mean() for k in range(table.n_classes)])


def test_independent_annotators_are_weighted_not_counted():
    table = crowd([0.95, 0.95, *[0.45] * 10])
    model = Ensemble().fit(table)
    assert model.head_count_ < 0.05
    assert abs(model.excess_agreement_) < 0.03
    assert np.mean(model.predict() == table.truth) > accuracy("majority", table) + 0.05


def test_shared_errors_of_a_minority_do_not_win():
    gains, losses = [], []
    for seed in range(3):
        table = divided(6, seed=seed)
        model = Ensemble().fit(table)
        assert model.head_count_ > 0.9
        majority = accuracy("majority", table)
        gains.append(np.mean(model.predict() == table.truth) - majority)
        losses.append(accuracy("hierarchical", table) - majority)
    # Weights by agreement follow those who share their errors; counting heads does not.
    assert max(losses) < -0.1
    assert np.mean(gains) > 0
    assert min(gains) > -0.02


def test_the_annotators_are_those_of_the_combined_posterior():
    model = Ensemble().fit(divided(6))
    assert model.skill_[6:].mean() > model.skill_[:6].mean() + 0.03
    # The model alone takes those who share errors for experts.
    assert make("hierarchical").fit(divided(6)).skill_[:6].min() > 0.8
    assert np.einsum("rkk->r", model.confusion_)[:6].max() / 3 < 0.65


def test_one_expert_among_spammers_is_heard():
    table = crowd([0.96, 0.96, *[0.5] * 4, *[1 / 3] * 14], n_items=800, each=6)
    model = Ensemble(tol=1e-4).fit(table)
    assert np.mean(model.predict() == table.truth) > accuracy("majority", table) + 0.05
    assert model.skill_[0] > 0.8


def test_a_rare_class_is_found_as_often_as_by_majority_vote():
    found = {"majority": [], "ensemble": [], "hierarchical": []}
    for seed in range(2):
        table = crowd([0.8] * 12, n_items=1000, n_classes=2, shares=[0.95, 0.05], each=3, seed=seed)
        for method, scores in found.items():
            scores.append(balanced_accuracy(method, table))
    mean = {method: np.mean(scores) for method, scores in found.items()}
    assert mean["ensemble"] > mean["majority"] - 0.01
    assert mean["ensemble"] > mean["hierarchical"] + 0.02


def test_posterior_is_a_distribution_and_gold_is_certain():
    table = divided(6)
    gold = {int(k): int(table.truth[k]) for k in range(30)}
    model = Ensemble().fit(table, gold=gold)
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1)
    np.testing.assert_array_equal(model.posterior_[:30].argmax(1), table.truth[:30])
    assert (model.posterior_[:30].max(axis=1) == 1).all()


def test_many_labels_are_combined_in_float32():
    for table in (crowd([0.7] * 30, n_items=21_000), divided(6, n_items=21_000)):
        model = Ensemble(max_iter=5).fit_problem(CrowdProblem(table))
        assert model.posterior_.dtype == np.float32
        np.testing.assert_allclose(model.posterior_.sum(axis=1), 1, atol=1e-5)


def test_labels_that_compare_nobody_are_returned():
    table = LabelTable.from_codes([0, 1, 2], annotator=[0, 1, 0], label=[0, 1, 1])
    model = Ensemble().fit(table)
    assert model.predict().tolist() == [0, 1, 1]
    assert (model.head_count_, model.excess_agreement_) == (0, 0)


def test_a_saved_run_keeps_the_head_count(tmp_path):
    model = Ensemble().fit(divided(6))
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert loaded.head_count_ == model.head_count_
    assert loaded.excess_agreement_ == model.excess_agreement_
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)


def test_more_labels_may_end_a_division():
    table = divided(6)
    model = Ensemble().fit(table)
    more = crowd([0.9] * 15, each=12, seed=9)
    label = np.where(
        np.random.default_rng(1).random(more.n_labels) < 0.9, table.truth[more.item], 0
    )
    sizes = {"n_items": 500, "n_annotators": 15, "n_classes": 3}
    before = np.mean(model.predict() == table.truth)
    model.partial_fit(LabelTable.from_codes(more.item, more.annotator, label, **sizes))
    assert np.mean(model.predict() == table.truth) > max(before, 0.95)


def test_it_makes_no_array_of_matrices_that_have_more_cells_than_there_are_labels(monkeypatch):
    table = divided(6)
    expected = Ensemble(random_state=0).fit(table)
    monkeypatch.setattr(Ensemble, "_has_matrices", lambda self, problem: False)
    monkeypatch.setattr(Hierarchical, "_has_matrices", lambda self, problem: False)
    monkeypatch.delattr(CrowdProblem, "label_counts")
    found = Ensemble(random_state=0).fit(table)
    assert found.head_count_ == pytest.approx(expected.head_count_, abs=1e-3)
    assert found.excess_agreement_ == pytest.approx(expected.excess_agreement_, abs=1e-3)
    assert np.mean(found.predict() == expected.predict()) > 0.98


def test_independent_errors_are_no_excess_where_classes_have_few_labels():
    table = crowd([0.7] * 40, n_items=400, n_classes=80, each=5)
    assert Ensemble().fit(table).excess_agreement_ < 0.02
