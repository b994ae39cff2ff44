import importlib.util
from pathlib import Path

import numpy as np
import pytest
from references import brute_force_posterior, dawid_skene, fit_quietly, random_table

from annotrace.aggregation import DawidSkene
from annotrace.errors import InputError
from annotrace.labels import LabelTable

SHARED = Path(__file__).parents[2] / "../shared/bench/reference_dawid_skene.py"


@pytest.mark.parametrize("seed", range(3))
def test_equals_sum_over_all_assignments(seed):
    item, annotator, label, _ = random_table(np.random.default_rng(seed), 6, 3, 3, labels_each=3)
    table = LabelTable.from_codes(item, annotator, label, n_classes=3)
    model = fit_quietly(DawidSkene(max_iter=4, tol=0, smoothing=0.5), table)
    expected, log_evidence = brute_force_posterior(
        item, annotator, label, model.confusion_, model.prior_, n_items=6
    )
    np.testing.assert_allclose(model.posterior_, expected, rtol=0, atol=1e-10)
    log_density = 0.5 * np.log(model.confusion_).sum()
    assert model.objective_[-1] == pytest.approx(log_evidence + log_density, abs=1e-10)


@pytest.mark.parametrize("one_coin", [False, True])
def test_equals_plain_em(one_coin):
    item, annotator, label, _ = random_table(np.random.default_rng(1))
    expected = dawid_skene(item, annotator, label, (30, 6, 3), 15, 0.01, one_coin)
    table = LabelTable.from_codes(item, annotator, label)
    model = fit_quietly(DawidSkene(one_coin=one_coin, max_iter=15, tol=0), table)
    for found, wanted in zip(
        (model.posterior_, model.confusion_, model.prior_), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared reference is missing")
def test_equals_shared_reference():
    spec = importlib.util.spec_from_file_location("reference_dawid_skene", SHARED)
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    item, annotator, label, _ = random_table(np.random.default_rng(2), 400, 20, 5)
    table = LabelTable.from_codes(item, annotator, label)
    model = fit_quietly(DawidSkene(max_iter=20, tol=0), table)
    for name in ("ds_numpy", "ds_scipy"):
        posterior, confusion = getattr(reference, name)(item, annotator, label, 400, 20, 5)
        np.testing.assert_allclose(model.posterior_, posterior, rtol=0, atol=1e-6)
        np.testing.assert_allclose(model.confusion_, confusion, rtol=0, atol=1e-6)


def test_one_step_fits_continue_each_other():
    item, annotator, label, _ = random_table(np.random.default_rng(3), 20, 5, 3, skill=0.5)
    table = LabelTable.from_codes(item, annotator, label)
    nothing = LabelTable.from_codes([], [], [], n_items=20, n_annotators=5, n_classes=3)
    model = fit_quietly(DawidSkene(max_iter=1, warm_iter=1), table)
    objective = [model.objective_[-1]]
    objective += [model.partial_fit(nothing).objective_[-1] for _ in range(150)]
    at_once = fit_quietly(DawidSkene(max_iter=151, tol=-1), table).objective_
    np.testing.assert_allclose(objective, at_once, atol=1e-9)


def test_single_precision_gives_the_same(monkeypatch):
    item, annotator, label, _ = random_table(np.random.default_rng(4), 3000, 30, 4)
    table = LabelTable.from_codes(item, annotator, label)
    exact = DawidSkene().fit(table)
    monkeypatch.setattr("annotrace.crowd.label_index.FLOAT64_UP_TO", 0)
    fast = DawidSkene().fit(table)
    assert fast.posterior_.dtype == np.float32
    np.testing.assert_allclose(fast.posterior_, exact.posterior_, atol=1e-3)


def test_smoothing_and_labels_are_required(crowd):
    with pytest.raises(InputError, match="smoothing"):
        DawidSkene(smoothing=0).fit(crowd)
    with pytest.raises(InputError, match="it has none"):
        DawidSkene().fit(LabelTable.from_codes([], [], [], n_items=3, n_classes=2))


def test_one_coin_has_one_number_per_annotator(crowd):
    model = DawidSkene(one_coin=True).fit(crowd)
    for matrix in model.confusion_:
        wrong = matrix[~np.eye(3, dtype=bool)]
        np.testing.assert_allclose(wrong, (1 - matrix[0, 0]) / 2)
        np.testing.assert_allclose(np.diag(matrix), matrix[0, 0])
    assert model.method == "one-coin"
