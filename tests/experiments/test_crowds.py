import numpy as np
import pytest

from annotrace.diagnosis import is_diagonally_dominant
from annotrace.errors import InputError
from annotrace.experiments.crowds import FLIPPERS, SPAMMERS, confusion_of, qualifying_seeds
from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan
from annotrace.experiments.registry import find_experiment
from annotrace.simulate import pairwise_flippers


def test_draws_are_the_first_that_are_dominant():
    dominant = [
        seed
        for seed in range(60)
        if is_diagonally_dominant(pairwise_flippers(5, 10, 0.3, random_state=seed))
    ]
    assert qualifying_seeds(FLIPPERS, 0.3, 3) == tuple(dominant[:3])
    assert qualifying_seeds(FLIPPERS, 0.3, 3) != (0, 1, 2)


def test_where_none_is_the_first_of_all_are_taken():
    assert qualifying_seeds(FLIPPERS, 0.2, 3) == (0, 1, 2)
    assert qualifying_seeds(SPAMMERS, 0.2, 2) == (0, 1)


def test_more_draws_go_on_with_those_that_qualify_or_are_refused():
    ten = qualifying_seeds(FLIPPERS, 0.28, 10)
    assert qualifying_seeds(FLIPPERS, 0.28, 3) == ten[:3]
    said = r"^pairwise-flippers at 0\.28: (\d+) of the first 1,000 groups .* give --seeds \1 or"
    with pytest.raises(InputError, match=said) as refused:
        qualifying_seeds(FLIPPERS, 0.28, 30)
    there = int(str(refused.value).split()[3])
    every = qualifying_seeds(FLIPPERS, 0.28, there)
    assert every[:10] == ten
    assert all(is_diagonally_dominant(pairwise_flippers(5, 10, 0.28, seed)) for seed in every)


def test_the_matrices_of_a_run_are_those_of_its_seed():
    options = Options(skills=(0.35,), methods=("trace",), densities=(1,))
    flippers = make_plan(find_experiment("mnist-em"), options)[0]
    expected = pairwise_flippers(5, 10, 0.35, random_state=flippers.seed)
    np.testing.assert_array_equal(confusion_of(flippers), expected)
    assert is_diagonally_dominant(confusion_of(flippers))
