"""`hierarchical` where matrices are too many for an array: the same model, by cells."""

import numpy as np
import pytest
import torch
from references import random_table

import annotrace as at
from annotrace.aggregation import Ensemble, Hierarchical, hierarchical
from annotrace.aggregation.hierarchical import HierarchicalModel
from annotrace.aggregation.sparse_hierarchical import SparseHierarchicalModel
from annotrace.crowd import report_cells
from annotrace.crowd.problem import CrowdProblem
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.gold import known_classes


@pytest.fixture
def crowd():
    return random_table(np.random.default_rng(0), 400, 12, 4, labels_each=5, skill=0.6)


@pytest.fixture
def sparse(monkeypatch):
    """Make no crowd small enough for an array of matrices."""
    monkeypatch.setattr(hierarchical, "FEW_CELLS", 0)
    monkeypatch.setattr(Hierarchical, "_has_matrices", lambda self, problem: False)


def iterate(model, problem, n_iter):
    state, reached = model.initial_state(problem), []
    for _ in range(n_iter):
        model.m_step(problem, state)
        state, objective = model.e_step(problem)
        reached.append(objective)
    return reached


@pytest.mark.parametrize("gold", [None, {0: 1, 7: 2}])
def test_with_every_class_possible_it_is_the_dense_model(crowd, gold, monkeypatch):
    monkeypatch.setattr(report_cells, "NEGLIGIBLE", -1.0 if gold is None else 0.0)
    table = LabelTable.from_codes(*crowd[:3], n_items=402, n_annotators=14)
    problem = CrowdProblem(table, known_classes(table, gold))
    dense, sparse = HierarchicalModel(problem), SparseHierarchicalModel(problem)
    if gold is None:
        np.testing.assert_allclose(iterate(sparse, problem, 12), iterate(dense, problem, 12))
    else:
        for model in (dense, sparse):
            iterate(model, problem, 1)
    torch.testing.assert_close(sparse.all_states(problem), dense.all_states(problem))
    torch.testing.assert_close(sparse.matrices(), dense.matrices())
    some = torch.tensor([3, 0, 3])
    torch.testing.assert_close(sparse.matrices(some), dense.matrices(some))
    labels = problem.labels
    torch.testing.assert_close(
        sparse.item_log_likelihood(labels), dense.item_log_likelihood(labels)
    )
    asked = labels.annotator, labels.label
    torch.testing.assert_close(sparse.log_likelihood(*asked), dense.log_likelihood(*asked))


def test_no_iteration_lowers_the_bound_but_where_supports_change(crowd):
    problem = CrowdProblem(LabelTable.from_codes(*crowd[:3]))
    reached = np.array(iterate(SparseHierarchicalModel(problem), problem, 40))
    gains = np.diff(reached)
    gains[[0, 1, 9]] = 0
    assert gains.min() > -1e-6
    assert reached[-1] > reached[0] + 50


def test_the_fit_is_that_of_the_dense_model(crowd, sparse, monkeypatch):
    table = LabelTable.from_codes(*crowd[:3])
    found = Hierarchical().fit(table)
    monkeypatch.undo()
    expected = Hierarchical().fit(table)
    assert isinstance(found.annotator_model_, SparseHierarchicalModel)
    assert isinstance(expected.annotator_model_, HierarchicalModel)
    assert (found.predict() == expected.predict()).mean() > 0.97
    np.testing.assert_allclose(found.skill_, expected.skill_, atol=0.03)
    right = [(model.predict() == crowd[3]).mean() for model in (found, expected)]
    assert right[0] > right[1] - 0.01
    assert found.doubt_.shape == (400,)


@pytest.mark.parametrize("kind", [Hierarchical, Ensemble])
def test_it_is_saved_continued_and_corrected_by_gold(crowd, sparse, tmp_path, kind):
    item, annotator, label, truth = crowd
    first = item < 300
    table = LabelTable.from_codes(item[first], annotator[first], label[first], n_classes=4)
    model = kind(random_state=0).fit(table, gold={k: int(truth[k]) for k in range(40)})
    np.testing.assert_array_equal(model.predict()[:40], truth[:40])
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)
    np.testing.assert_allclose(loaded.confusion_, model.confusion_)
    rest = LabelTable.from_codes(item[~first], annotator[~first], label[~first], n_classes=4)
    loaded.partial_fit(rest)
    assert loaded.posterior_.shape == (400, 4)
    assert (loaded.predict() == truth).mean() > 0.85


@pytest.mark.parametrize(
    ("code", "what"), [([5, 5], "ascending"), ([-1, 5], "ascending"), ([5, 192], "below 192")]
)
def test_saved_cells_that_are_none_are_refused(crowd, code, what):
    model = SparseHierarchicalModel(CrowdProblem(LabelTable.from_codes(*crowd[:3])))
    with pytest.raises(InputError, match=f"Expected `annotators.code` to be .*{what}"):
        model.prepare_for({"code": torch.tensor(code)})


def test_a_crowd_of_many_annotators_is_sparse_by_itself():
    rng = np.random.default_rng(1)
    truth = rng.integers(10, size=4000)
    item = np.repeat(np.arange(4000), 5)
    annotator = rng.integers(12_000, size=len(item))
    right = rng.random(len(item)) < 0.7
    label = np.where(right, truth[item], rng.integers(10, size=len(item)))
    model = Hierarchical(max_iter=5, tol=1).fit(LabelTable.from_codes(item, annotator, label))
    assert isinstance(model.annotator_model_, SparseHierarchicalModel)
    assert (model.predict() == truth).mean() > 0.95
