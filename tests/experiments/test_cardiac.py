import numpy as np
from made_up import check_drawn, planned

from annotrace.diagnosis import is_diagonally_dominant, skills
from annotrace.experiments.cardiac import (
    NON_EXPERTS,
    VIEWS,
    cardiac_annotators,
    cardiac_views,
    draw_views,
)


def test_runs_are_those_that_the_table_needs():
    assert len(planned("cardiac")) == 3 * 7


def test_figures_and_page_are_drawn_from_results(tmp_path):
    figures = {"figure-7a", "figure-7b", "figure-7c"}
    page = check_drawn("cardiac", figures, tmp_path, seeds=2)
    assert "both non-experts rank last in 2 of 2 runs" in page


def test_annotators_are_as_documented():
    annotators = cardiac_annotators()
    assert annotators.shape == (8, 6, 6)
    assert annotators.min() >= 0
    np.testing.assert_allclose(annotators.sum(axis=2), 1)
    assert is_diagonally_dominant(annotators)
    skill = skills(annotators)
    assert np.all(np.diff(skill) < 0), "from the best expert down to the second non-expert"
    a3c, a5c = VIEWS.index("A3C"), VIEWS.index("A5C")
    others = [k for k in range(6) if k not in (a3c, a5c)]
    for expert in annotators[: min(NON_EXPERTS)]:
        assert expert[a5c, a3c] > expert[a3c, a5c] > expert[a5c, others].max()


def test_views_are_grey_images_determined_by_the_seed():
    one, two, other = cardiac_views(20, 3), cardiac_views(20, 3), cardiac_views(20, 4)
    assert one.X.shape == (20, 96, 96)
    assert one.X.dtype == np.uint8
    assert list(one.classes) == list(VIEWS)
    np.testing.assert_array_equal(one.X, two.X)
    assert np.any(one.X != other.X)
    assert one.X[:, 0, 0].max() == 0, "black outside the beam"


def test_the_twins_are_the_two_views_hardest_to_tell_apart():
    rng = np.random.default_rng(0)
    mean = np.stack([draw_views(np.full(60, k, np.int32), rng).mean(axis=0) for k in range(6)])
    distance = np.square(mean[:, None] - mean[None]).mean(axis=(2, 3)) + np.diag([np.inf] * 6)
    nearest = np.unravel_index(distance.argmin(), distance.shape)
    assert {VIEWS[k] for k in nearest} == {"A3C", "A5C"}
