from made_up import check_drawn, planned


def test_runs_are_those_that_the_figures_need():
    assert len(planned("mnist-robust", densities=(1,))) == 8 * (3 + 1 + 4 * (1 + 1))


def test_figures_and_page_are_drawn_from_results(tmp_path):
    figures = {"figure-6", "figure-10"}
    check_drawn("mnist-robust", figures, tmp_path, skills=(0.25, 0.3, 0.9), seeds=2)
