import pytest
from crowds import NAMES

import annotrace as at
from annotrace.errors import InputError
from annotrace.methods import CrowdEstimator


def test_methods_are_listed_with_paper_and_summary():
    listed = at.list_methods()
    assert [entry.name for entry in listed] == NAMES
    assert all(entry.summary and entry.paper for entry in listed)
    with pytest.raises(InputError, match="no method 'majik'; there are auto, crossfit, trace"):
        at.make("majik")


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_made_by_the_name_it_has(name):
    model = at.make(name, epochs=3)
    assert isinstance(model, CrowdEstimator)
    assert model.method == name
    assert model.epochs == 3
