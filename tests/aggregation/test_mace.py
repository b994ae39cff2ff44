import numpy as np
from references import fit_quietly, mace, random_table

from annotrace.aggregation import MACE
from annotrace.aggregation.mace import INITIAL_KNOWN
from annotrace.labels import LabelTable


def test_equals_variational_bayes_label_by_label():
    item, annotator, label, _ = random_table(np.random.default_rng(0))
    posterior, knowing = mace(item, annotator, label, (30, 6, 3), 12, 0.5, 10.0, INITIAL_KNOWN)
    model = fit_quietly(MACE(max_iter=12, tol=0), LabelTable.from_codes(item, annotator, label))
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-10)
    np.testing.assert_allclose(model.knowing_, knowing, atol=1e-10)


def test_objective_never_falls_and_spammers_are_found():
    rng = np.random.default_rng(1)
    item, annotator, label, truth = random_table(rng, 300, 8, 3, skill=0.9)
    label = np.where(annotator == 5, 2, label)
    model = MACE().fit(LabelTable.from_codes(item, annotator, label))
    assert np.diff(model.objective_).min() > -1e-8
    assert np.argmin(model.knowing_) == 5
    assert model.knowing_[5] < 0.1
    assert model.guess_marginal_[5].argmax() == 2
    assert (model.predict() == truth).mean() > 0.97
