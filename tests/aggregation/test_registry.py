import pytest

import annotrace as at
from annotrace.aggregation import DEFAULT, Aggregation, list_aggregations, make
from annotrace.errors import InputError


def test_the_default_comes_first():
    assert list_aggregations()[0].name == DEFAULT
    assert type(make()) is type(make(DEFAULT))
    assert at.aggregation.make().method == DEFAULT


@pytest.mark.parametrize("entry", list_aggregations(), ids=lambda entry: entry.name)
def test_every_entry_has_a_paper_and_a_line_and_is_named_by_its_method(entry):
    assert entry.summary
    assert entry.paper
    assert entry.year
    model = make(entry.name)
    assert isinstance(model, Aggregation)
    assert model.method == entry.name


def test_unknown_names_list_the_known():
    with pytest.raises(
        InputError, match="no aggregation 'magic'; there are ensemble, hierarchical, maj"
    ):
        make("magic")


def test_parameters_reach_the_class():
    assert make("one-coin", max_iter=50).get_params()["max_iter"] == 50
    assert make("one-coin").one_coin
    assert repr(make("one-coin", max_iter=50)) == "DawidSkene(max_iter=50, one_coin=True)"
