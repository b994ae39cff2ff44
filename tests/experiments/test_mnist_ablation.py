from made_up import check_drawn, planned


def test_runs_are_those_that_the_figure_needs():
    assert len(planned("mnist-ablation")) == 8 * 2 * (3 + 1) * 2


def test_figure_and_page_are_drawn_from_results(tmp_path):
    check_drawn("mnist-ablation", {"figure-11"}, tmp_path, skills=(0.25, 0.3, 0.9), seeds=2)
