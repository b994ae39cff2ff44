import numpy as np
import pytest
from crowds import blobs

import annotrace as at
from annotrace.errors import InputError


def test_the_given_matrices_are_those_of_the_result():
    X, truth, table, confusion = blobs()
    model = at.Oracle(confusion=confusion, epochs=20, lr=1e-2, random_state=0).fit(X, table)
    np.testing.assert_allclose(model.confusion_, confusion, atol=1e-6)
    assert model.score(X, truth) > 0.95


@pytest.mark.parametrize("confusion", [None, np.ones((2, 3, 3))])
def test_matrices_of_all_annotators_are_required(confusion):
    X, _, table, _ = blobs(n_items=30)
    with pytest.raises(InputError, match=r"`confusion` of shape \(6, 3, 3\)"):
        at.Oracle(confusion=confusion, epochs=1).fit(X, table)
