import pytest
from made_up import check_drawn, planned

SWEEPS = ("mnist-em", "mnist-robust", "mnist-ablation", "mnist-dominance")


def test_runs_are_those_that_the_figures_need():
    # Eight skills, both densities: flippers three times for the trace, once for other methods, and
    # spammers once.
    assert len(planned("mnist-em")) == 8 * 2 * (3 + 1 + 3 * (1 + 1))
    assert len(planned("mnist-em", seeds=2, skills=(0.3,), methods=("mbem",))) == 2 * 2 * 2
    assert len(planned("mnist-robust", densities=(1,))) == 8 * (3 + 1 + 4 * (1 + 1))
    assert len(planned("mnist-ablation")) == 8 * 2 * (3 + 1) * 2
    assert len(planned("mnist-dominance")) == 2 * 3
    assert len(planned("mnist-sensitivity")) == 3 + 2 * 4
    assert len(planned("mnist-sensitivity", seeds=1, skills=(0.35,), densities=(5,))) == 11


def test_experiments_share_the_runs_that_they_have_in_common():
    keys = {name: {run["key"] for run in planned(name)} for name in SWEEPS}
    assert keys["mnist-dominance"] <= keys["mnist-em"]
    assert len(keys["mnist-em"] & keys["mnist-robust"]) == 8 * 2 * (3 + 1)
    assert len(keys["mnist-em"] & keys["mnist-ablation"]) == 8 * 2 * (3 + 1)


def test_skills_beside_those_of_the_paper_can_be_asked_for():
    runs = planned("mnist-em", seeds=2, skills=(0.33,), methods=("mbem",))
    assert {run["skill"] for run in runs} == {0.33}
    assert len(runs) == 2 * 2 * 2


@pytest.mark.parametrize(
    ("name", "pictures"),
    [
        ("mnist-em", {"figure-3", "figure-9"}),
        ("mnist-robust", {"figure-6", "figure-10"}),
        ("mnist-ablation", {"figure-11"}),
    ],
)
def test_figures_against_skill_and_their_page_are_drawn_from_results(name, pictures, tmp_path):
    check_drawn(name, pictures, tmp_path, skills=(0.25, 0.3, 0.9), seeds=2)


def test_the_figure_of_dominance_is_drawn_from_results(tmp_path):
    check_drawn("mnist-dominance", {"figure-4"}, tmp_path, seeds=2)


def test_the_figure_of_settings_is_drawn_from_results(tmp_path):
    page = check_drawn("mnist-sensitivity", {"figure-5"}, tmp_path)
    assert "| trace | lambda = 0.01 | 20,088 |" in page
    assert "| MBEM | T = 2, G = 10,044 | 20,088 |" in page
