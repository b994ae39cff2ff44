"""Two processes of one run against one: the same steps, and so the same numbers."""

import numpy as np
import pytest
import torch
from several_processes import call_in_all

import annotrace as at
from annotrace.aggregation.together import fit_together
from annotrace.crowd.shared_problem import SharedProblem
from annotrace.distributed import Processes, joined
from annotrace.simulate import hammer_spammers, simulate_labels

N_ITEMS, N_CLASSES = 320, 3
# 320 items in batches of 64 are 5 steps per epoch, and 10 epochs are 50 steps.
STEPS = {"epochs": 10, "batch_size": 64, "validation_fraction": 0}
FITS = {
    "trace": ("trace", {"recipe": "none", **STEPS}),
    "mbem": ("mbem", STEPS),
    "mixup": ("trace", {"recipe": at.Recipe(n_init=1, mixup=1.0), "epochs": 3}),
    "crossfit": ("crossfit", {"n_folds": 2, "epochs": 2, "n_iter": 1, "init": "votes"}),
}
AGGREGATIONS = ("dawid-skene", "hierarchical", "majority", "weighted-vote", "ensemble")


class Network(torch.nn.Sequential):
    """A perceptron in float64."""

    def __init__(self):
        torch.manual_seed(0)
        layers = torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, N_CLASSES)
        super().__init__(*(layer.double() for layer in layers))

    def forward(self, x):
        return super().forward(x.double())


def make_crowd(n_annotators):
    rng = np.random.default_rng(0)
    truth = rng.integers(N_CLASSES, size=N_ITEMS)
    X = (2 * np.eye(8)[truth] + rng.normal(size=(N_ITEMS, 8))).astype(np.float32)
    annotators = hammer_spammers(n_annotators, N_CLASSES, 0.6, random_state=0)
    return X, simulate_labels(truth, annotators, labels_per_item=2, random_state=0)


def fit_all(path):
    """Fit everything in the processes of this run, and let the first one save what they learned."""
    with joined() as processes:
        found = {name: _fit(*FITS[name]) for name in FITS}
        found["sparse"] = _fit_sparse()
        found |= {name: _aggregate(name, processes) for name in AGGREGATIONS}
        if processes.is_first:
            np.savez(path, **{k: v for k, v in found.items() if v is not None})


def _fit(method, settings):
    X, table = make_crowd(6)
    torch.set_default_dtype(torch.float64)
    try:
        model = at.make(method, backbone=Network(), random_state=0, **settings).fit(X, table)
    finally:
        torch.set_default_dtype(torch.float32)
    weights = [each.detach().numpy().ravel() for each in model.network_.parameters()]
    return np.concatenate([model.posterior_.ravel(), model.confusion_.ravel(), *weights])


def _fit_sparse():
    """Fit with so many annotators that only those of a batch are updated; in float32."""
    X, table = make_crowd(6_000)
    model = at.make("trace", recipe="none", random_state=0, **STEPS).fit(X, table)
    assert model.annotator_model_.sparse
    return np.concatenate([model.posterior_.ravel(), model.confusion_.ravel()])


def _aggregate(name, processes):
    model, (_, table) = at.aggregation.make(name, random_state=0), make_crowd(6)
    gold = np.where(np.arange(N_ITEMS) % 40 == 0, 1, -1)
    first = processes.is_first
    fit_together(model, table if first else None, gold if first else None, processes)
    if not first:
        return None
    return np.concatenate([model.posterior_.ravel(), model.confusion_.ravel(), model.objective_])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What one process and what two processes find."""
    folder = tmp_path_factory.mktemp("several")
    fit_all(folder / "one.npz")
    ended = call_in_all(2, fit_all, folder, "two.npz")
    assert [each.code for each in ended] == [0, 0], "\n".join(each.errors for each in ended)
    return np.load(folder / "one.npz"), np.load(folder / "two.npz")


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [*((name, 1e-6) for name in FITS), ("sparse", 1e-3), *((name, 1e-9) for name in AGGREGATIONS)],
)
def test_two_processes_find_what_one_does(found, name, tolerance):
    one, two = found
    np.testing.assert_allclose(two[name], one[name], rtol=0, atol=tolerance)


def test_a_method_that_needs_all_items_names_those_that_do_not():
    with pytest.raises(at.errors.InputError, match=r"runs in one process.*dawid-skene"):
        fit_together(at.aggregation.make("glad"), None, None, _Two())


def test_a_table_without_labels_is_an_error():
    table = at.LabelTable.from_codes([], [], [], n_items=2, n_annotators=1, n_classes=2)
    with pytest.raises(at.errors.InputError, match="with labels to learn from"):
        fit_together(at.aggregation.make("dawid-skene"), table, None, _Two())


@pytest.mark.parametrize("structure", ["per-class", "low-rank", "auto"])
def test_a_structure_that_needs_all_items_says_so(structure):
    _, table = make_crowd(6)
    part = SharedProblem(table, np.full(N_ITEMS, -1, np.int32), Processes())
    with pytest.raises(at.errors.InputError, match="in one process: start it without torchrun"):
        at.aggregation.make("dawid-skene", structure=structure).estimate(part)


@pytest.mark.parametrize("name", ["hierarchical", "ensemble"])
def test_more_cells_than_labels_need_one_process(name):
    table = at.LabelTable.from_codes([0, 0, 1], [0, 1, 1], [0, 1, 1], n_classes=1000)
    part = SharedProblem(table, np.full(2, -1, np.int32), Processes())
    with pytest.raises(at.errors.InputError, match="in one process: start it without torchrun"):
        at.aggregation.make(name).estimate(part)


class _Two(at.distributed.Processes):
    size = 2
