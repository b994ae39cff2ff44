from made_up import check_drawn, planned


def test_runs_are_those_that_the_figures_need():
    # Eight skills, both densities: flippers three times for the trace, once for other methods, and
    # spammers once.
    assert len(planned("mnist-em")) == 8 * 2 * (3 + 1 + 3 * (1 + 1))
    assert len(planned("mnist-em", seeds=2, skills=(0.3,), methods=("mbem",))) == 2 * 2 * 2


def test_figures_and_page_are_drawn_from_results(tmp_path):
    check_drawn("mnist-em", {"figure-3", "figure-9"}, tmp_path, skills=(0.25, 0.3, 0.9), seeds=2)
