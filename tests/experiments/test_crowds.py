import numpy as np

from annotrace.diagnosis import is_diagonally_dominant
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


def test_the_matrices_of_a_run_are_those_of_its_seed():
    options = Options(skills=(0.35,), methods=("trace",), densities=(1,))
    flippers = make_plan(find_experiment("mnist-em"), options)[0]
    expected = pairwise_flippers(5, 10, 0.35, random_state=flippers.seed)
    np.testing.assert_array_equal(confusion_of(flippers), expected)
    assert is_diagonally_dominant(confusion_of(flippers))
