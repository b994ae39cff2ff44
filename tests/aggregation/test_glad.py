import numpy as np
import torch
from references import glad_objective, random_table
from scipy.optimize import minimize

from annotrace.aggregation import GLAD
from annotrace.labels import LabelTable


def fit_glad(item, annotator, label, **settings):
    model = GLAD(max_iter=2000, tol=1e-13, **settings)
    return model.fit(LabelTable.from_codes(item, annotator, label))


def test_posterior_and_objective_equal_the_definition():
    item, annotator, label, _ = random_table(np.random.default_rng(0))
    model = fit_glad(item, annotator, label)
    total, posterior = glad_objective(
        item, annotator, label, model.ability_, np.log(model.ease_), n_classes=3
    )
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-10)
    np.testing.assert_allclose(model.objective_[-1], total, atol=1e-8)


def test_reaches_the_optimum_that_a_general_optimiser_finds():
    item, annotator, label, _ = random_table(np.random.default_rng(1), 12, 4, 2, labels_each=3)

    def cost(point):
        return -glad_objective(item, annotator, label, point[:4], point[4:], n_classes=2)[0]

    model = fit_glad(item, annotator, label)
    ours = np.concatenate([model.ability_, np.log(model.ease_)])
    found = minimize(cost, np.ones(16), method="BFGS")
    assert cost(ours) <= found.fun + 1e-5
    np.testing.assert_allclose(ours, found.x, atol=5e-3)


def test_objective_never_falls():
    for seed in range(10):
        item, annotator, label, _ = random_table(np.random.default_rng(seed), skill=0.4)
        assert np.diff(fit_glad(item, annotator, label).objective_).min() > -1e-9


def test_hard_items_and_poor_annotators_are_found():
    rng = np.random.default_rng(2)
    item, annotator, label, _ = random_table(rng, 400, 10, 3, labels_each=8, skill=0.9)
    hard = item < 100
    label = np.where(hard | (annotator == 3), rng.integers(3, size=len(item)), label)
    model = fit_glad(item, annotator, label)
    assert np.argmin(model.ability_) == 3
    assert np.median(model.ease_[:100]) < np.median(model.ease_[100:]) / 2


def test_more_steps_per_iteration_reach_the_same_optimum():
    triplets = random_table(np.random.default_rng(3))[:3]
    few, many = (fit_glad(*triplets, n_steps=n) for n in (1, 6))
    np.testing.assert_allclose(few.ability_, many.ability_, atol=1e-3)


def test_the_likelihood_of_a_label_depends_on_its_item():
    item, annotator, label, _ = random_table(np.random.default_rng(4))
    model = fit_glad(item, annotator, label)
    who, report, what = (torch.from_numpy(part[:5]) for part in (annotator, label, item))
    logs = model.annotator_model_.log_likelihood(who, report, what)
    for k in range(5):
        margin = model.ability_[annotator[k]] * model.ease_[item[k]]
        correct = 1 / (1 + np.exp(-margin))
        expected = np.where(np.arange(3) == label[k], correct, (1 - correct) / 2)
        np.testing.assert_allclose(logs[k].exp(), expected)
