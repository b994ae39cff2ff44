from made_up import check_drawn, planned


def test_runs_are_those_that_the_figure_needs():
    assert len(planned("mnist-dominance")) == 2 * 3


def test_figure_and_page_are_drawn_from_results(tmp_path):
    check_drawn("mnist-dominance", {"figure-4"}, tmp_path, seeds=2)
