import pytest

from annotrace.errors import InputError
from annotrace.experiments import EXPERIMENTS, find_experiment


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_listed_experiment_is_found_by_its_name(name):
    assert find_experiment(name).name == name


def test_an_unknown_name_is_answered_with_those_that_exist():
    with pytest.raises(InputError, match=r"There is no experiment 'mnist'; there are mnist-em, "):
        find_experiment("mnist")
