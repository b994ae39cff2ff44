from itertools import product

import numpy as np
import pytest

from annotrace.allocation.gain import MAX_ROWS, Reports, add_report, expected_certainty

RNG = np.random.default_rng(0)


def draw(*shape):
    array = RNG.random(shape)
    return array / array.sum(axis=-1, keepdims=True)


def expected_probability_of_truth(posterior, matrices):
    """By definition: over every truth and every combination of reports of some annotators."""
    n_classes = len(posterior)
    expected = 0.0
    for reports in product(range(n_classes), repeat=len(matrices)):
        weight = posterior.copy()
        for matrix, report in zip(matrices, reports, strict=True):
            weight *= matrix[:, report]
        expected += np.sum(weight * weight / weight.sum())
    return expected


def test_the_gain_is_the_rise_of_the_probability_of_the_truth():
    posterior, matrices = draw(3), draw(4, 3, 3)
    before = expected_probability_of_truth(posterior, [])
    rise = [expected_probability_of_truth(posterior, [matrix]) - before for matrix in matrices]
    assert Reports(matrices).gains(posterior[None])[0] == pytest.approx(rise)


def test_a_second_label_gains_what_the_first_leaves():
    posterior, matrices = draw(3), draw(2, 3, 3)
    one = expected_probability_of_truth(posterior, matrices[:1])
    both = expected_probability_of_truth(posterior, matrices)
    joint = add_report(posterior[None], matrices[0])
    assert Reports(matrices).gains(joint).sum(axis=0)[1] == pytest.approx(both - one)


def test_a_spammer_gains_nothing_and_a_perfect_annotator_all():
    spammer, perfect = np.full((3, 3), 1 / 3), np.eye(3)
    posterior = draw(3)[None]
    gains = Reports(np.stack([spammer, perfect])).gains(posterior)[0]
    assert gains == pytest.approx([0, 1 - expected_certainty(posterior)[0]])


def test_rare_combinations_of_reports_are_added_up_and_never_overstate_the_gain():
    posterior, matrix = draw(6), draw(6, 6)
    joint = add_report(add_report(posterior[None], matrix), matrix)
    assert len(joint) == MAX_ROWS + 1
    assert joint.sum(axis=0) == pytest.approx(posterior)
    exact = expected_probability_of_truth(posterior, [matrix, matrix])
    once = expected_probability_of_truth(posterior, [matrix])
    assert once <= expected_certainty(joint).sum() <= exact + 1e-12


def test_impossible_reports_do_not_divide_by_zero():
    gains = Reports(np.eye(2)[None]).gains(np.array([[1.0, 0.0]]))
    assert gains == pytest.approx(np.zeros((1, 1)))
