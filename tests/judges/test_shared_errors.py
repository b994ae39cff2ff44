import pytest
from panels import draw_panel, known_codes

from annotrace.judges.shared_errors import measure_dependence


def test_with_gold_it_is_the_known_correlation():
    table, truth = draw_panel([0.8] * 5, 1500, shared=0.4)
    found = measure_dependence(table, known_codes(truth, 1500))
    assert found.correlation == pytest.approx(0.4, abs=0.06)
    assert found.effective_votes == pytest.approx(5 / (1 + 4 * found.correlation))


def test_one_judge_shares_nothing():
    table, truth = draw_panel([0.8], 100)
    assert measure_dependence(table, known_codes(truth, 100)) is None
