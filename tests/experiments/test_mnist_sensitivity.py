from made_up import check_drawn, planned


def test_runs_are_those_that_the_figure_needs():
    assert len(planned("mnist-sensitivity")) == 3 + 2 * 4
    assert len(planned("mnist-sensitivity", seeds=1, skills=(0.35,), densities=(5,))) == 11


def test_figure_and_page_are_drawn_from_results(tmp_path):
    page = check_drawn("mnist-sensitivity", {"figure-5"}, tmp_path)
    assert "| trace | lambda = 0.01 | 20,088 |" in page
    assert "| MBEM | T = 2, G = 10,044 | 20,088 |" in page
