import numpy as np
import pytest
from made_up_judges import draw_panel, known_codes

from annotrace.judges.shared_errors import (
    MIN_GOLD,
    estimate_dependence,
    measure_dependence,
)


def test_with_gold_it_is_the_known_correlation():
    table, truth = draw_panel([0.8] * 5, 1500, shared=0.4)
    found = measure_dependence(table, known_codes(truth, 1500))
    assert found.correlation == pytest.approx(0.4, abs=0.06)
    assert found.effective_votes == pytest.approx(5 / (1 + 4 * found.correlation))


def test_too_few_gold_items_or_judges_measure_nothing():
    table, truth = draw_panel([0.8] * 3, 100)
    assert measure_dependence(table, known_codes(truth, MIN_GOLD - 1)) is None
    assert measure_dependence(table, known_codes(truth, MIN_GOLD)) is not None
    alone = table.select_annotators(np.array([0]))
    assert measure_dependence(alone, known_codes(truth, 100)) is None


def test_without_gold_shared_errors_show_in_part():
    apart, together = (
        estimate_dependence(draw_panel([0.85, 0.8, 0.8, 0.75, 0.7], 1500, shared)[0])
        for shared in (0.0, 0.4)
    )
    assert apart.correlation < 0.12 < together.correlation
    assert together.effective_votes < apart.effective_votes


def test_two_judges_show_nothing_without_gold():
    assert estimate_dependence(draw_panel([0.8, 0.8], 100)[0]) is None
