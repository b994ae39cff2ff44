import numpy as np
import pytest
from scipy.optimize import linprog

from annotrace.errors import InputError
from annotrace.simulate import failing_regions, hammer_spammers, simulate_regional_labels


@pytest.mark.parametrize("shape", ["half-space", "ball"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_region_holds_its_share_of_the_items(shape, share):
    X = np.random.default_rng(0).normal(size=(200, 2, 3))
    regions = failing_regions(X, 4, share=share, shape=shape, random_state=0)
    assert regions.shape == (4, 200)
    np.testing.assert_array_equal(regions.sum(axis=1), round(200 * share))


def test_a_half_space_ends_at_a_plane_and_a_ball_at_a_distance():
    X = np.random.default_rng(0).normal(size=(300, 2))
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    for region in failing_regions(X, 5, random_state=1):
        ones = np.column_stack([np.ones(300), standard])
        signs = np.where(region, 1.0, -1.0)
        # A plane separates the two sides if some weights give every item a margin of 1.
        margins = {"A_ub": -signs[:, None] * ones, "b_ub": -np.ones(300)}
        assert linprog(np.zeros(3), **margins, bounds=(None, None)).success
    for region in failing_regions(X, 5, shape="ball", random_state=1):
        radius = np.linalg.norm(standard[:, None] - standard[None], axis=2)
        is_centre = [radius[k][region].max() <= radius[k][~region].min() for k in range(300)]
        assert any(is_centre)


def test_annotators_answer_by_another_matrix_inside():
    truth = np.arange(3000) % 3
    X = np.random.default_rng(0).normal(size=(3000, 2))
    regions = failing_regions(X, 4, random_state=0)
    able, failing = np.tile(np.eye(3), (4, 1, 1)), hammer_spammers(4, 3, 0.0, random_state=0)
    table = simulate_regional_labels(truth, able, failing, regions, random_state=0)
    is_correct = table.label == truth[table.item]
    inside = regions[table.annotator, table.item]
    assert is_correct[~inside].all()
    assert np.mean(is_correct[inside]) == pytest.approx(1 / 3, abs=0.02)
    np.testing.assert_array_equal(table.truth, truth)


def test_labels_per_item_and_seeds_are_kept():
    truth, X = np.arange(30) % 2, np.random.default_rng(0).normal(size=(30, 2))
    matrices = hammer_spammers(5, 2, 0.5, random_state=0)
    regions = failing_regions(X, 5, random_state=3)
    np.testing.assert_array_equal(failing_regions(X, 5, random_state=3), regions)
    drawn = [
        simulate_regional_labels(
            truth, matrices, matrices, regions, labels_per_item=2, random_state=0
        )
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    np.testing.assert_array_equal(drawn[0].labels_per_item(), 2)


def test_impossible_regions_are_rejected():
    X, matrices = np.zeros((3, 1)), hammer_spammers(2, 2, 0.5, random_state=0)
    with pytest.raises(InputError, match=r"`share` to be from 0 to 1, but got 1.5"):
        failing_regions(X, 2, share=1.5)
    with pytest.raises(InputError, match="`shape` to be 'half-space' or 'ball', but got 'cube'"):
        failing_regions(X, 2, shape="cube")
    with pytest.raises(InputError, match="at least two items, but got 1"):
        failing_regions(X[:1], 2)
    with pytest.raises(InputError, match=r"`regions` of shape \(2, 3\), but got"):
        simulate_regional_labels([0, 1, 0], matrices, matrices, np.zeros((2, 2), bool))
