import numpy as np
import pytest
from crowds import blobs

import annotrace as at
from annotrace.errors import InputError

X, TRUTH, TABLE, _ = blobs(n_items=60)


@pytest.fixture(scope="module")
def model():
    return at.TraceRegularized(epochs=5, lr=1e-2, recipe="none", random_state=0).fit(X, TABLE)


def test_labels_are_scored_alike_however_they_are_given(model):
    expected = model.score(X, TABLE)
    assert at.label_likelihood_scorer(model, X, TABLE) == expected
    assert at.label_likelihood_scorer(model, X, TABLE.to_wide()) == expected


def test_a_vector_is_the_labels_of_the_first_annotator(model):
    p = model.predict_proba(X)
    expected = np.log((p * model.confusion_[0].T[TRUTH]).sum(axis=1)).mean()
    for y in (TRUTH, TRUTH.tolist()):
        assert at.label_likelihood_scorer(model, X, y) == pytest.approx(expected, abs=1e-6)
    assert at.label_likelihood_scorer(model, X[:1], TRUTH[:1]) < 0


def test_accuracy_is_that_of_the_items_whose_truth_is_known(model):
    wrong = np.where(np.arange(60) < 20, (model.predict(X) + 1) % 3, model.predict(X))
    known = np.where(np.arange(60) < 40, wrong, -1)
    assert at.truth_accuracy_scorer(model, X, TABLE.replace(truth=known)) == 0.5


def test_classes_with_names_are_compared_by_name():
    classes = np.array(["cat", "dog", "fox"])
    answers = np.append(classes.astype(object), None)[TABLE.to_wide()]
    table = at.LabelTable.from_wide(answers).with_truth(classes[TRUTH])
    model = at.Vanilla(epochs=10, lr=1e-2, random_state=0).fit(X, table)
    accuracy = np.mean(model.predict(X) == classes[TRUTH])
    assert at.truth_accuracy_scorer(model, X, table) == accuracy > 0.5


@pytest.mark.parametrize(
    "y", [TABLE.replace(truth=None), TABLE.replace(truth=np.full(60, -1)), TRUTH]
)
def test_accuracy_needs_a_table_with_truth(model, y):
    with pytest.raises(InputError, match="true class of some items is known"):
        at.truth_accuracy_scorer(model, X, y)
