from made_up import check_drawn, planned

from annotrace.methods import list_methods


def test_every_method_has_three_draws_at_both_densities():
    # All but `item-dependent`, which equals `crossfit` here.
    assert len(planned("digits")) == (len(list_methods()) - 1) * 3 * 2


def test_figure_and_page_are_drawn_from_results(tmp_path):
    check_drawn("digits", {"digits"}, tmp_path, seeds=2)
