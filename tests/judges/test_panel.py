import numpy as np
import pytest
from made_up_judges import draw_panel, known_codes

from annotrace.judges.panel import compare_panel


def compared(accuracies, n_gold=300, cost=None, **options):
    table, truth = draw_panel(accuracies, **options)
    cost = np.ones(len(accuracies)) if cost is None else np.array(cost)
    return compare_panel(table, known_codes(truth, n_gold), truth, cost, 0)


def test_independent_judges_together_are_better_than_the_best_of_them():
    panel = compared([0.75] * 7)
    assert panel.is_better
    assert not panel.is_worse
    assert panel.against_best.value == pytest.approx(0.929 - 0.75, abs=0.07)


def test_one_expert_is_better_than_a_panel_that_errs_together():
    panel = compared([0.92, *[0.7] * 6], shared=0.7)
    assert panel.best_judge == "judge-0"
    assert panel.is_worse


def test_the_best_member_is_chosen_on_other_items():
    differences = [
        compared([0.5] * 6, n_gold=100, n_items=100, seed=seed).against_best.value
        for seed in range(50)
    ]
    # Chosen on the same items, the best of six guessers would be .06 above the vote.
    assert abs(np.mean(differences)) < 0.03


def test_the_interval_covers_where_judges_are_equally_good():
    """The best member changes from fold to fold, and so do the errors of the comparison."""
    covered = []
    for seed in range(80):
        found = compared([0.7] * 6, n_gold=60, n_items=60, seed=seed).against_best
        # The vote of six is correct with probability .837, and each of them with .7.
        covered.append(found.low <= 0.137 <= found.high)
    assert np.mean(covered) >= 0.82


def test_copies_are_as_good_as_one():
    panel = compared([0.7] * 5, shared=1.0)
    assert panel.against_best.value == 0
    assert not panel.is_better
    assert not panel.is_worse


def test_what_judges_add():
    panel = compared([0.9, 0.6, 0.6], cost=[10, 1, 2])
    adds = {each.judge: each for each in panel.contributions}
    assert adds["judge-0"].adds.low > 0
    assert adds["judge-0"].adds_per_cost == pytest.approx(adds["judge-0"].adds.value / 10)
    # Without judge-1 two judges remain, whose ties are broken at random.
    assert adds["judge-1"].adds.value < adds["judge-0"].adds.value


def test_a_judge_with_few_labels_is_not_the_best():
    table, truth = draw_panel([0.9, 1.0], 200)
    few = table.select_annotators(np.array([0, 1]))
    kept = (few.annotator == 0) | (few.item < 2)
    few = few.replace(item=few.item[kept], annotator=few.annotator[kept], label=few.label[kept])
    known = known_codes(truth, 200)
    assert compare_panel(few, known, truth, np.ones(2), 0).best_judge == "judge-0"


def test_an_aggregation_is_compared_too():
    table, truth = draw_panel([0.8, 0.7, 0.6], 200)
    perfect = compare_panel(table, known_codes(truth, 150), truth, np.ones(3), 0)
    assert perfect.aggregated.value == 1
    assert perfect.aggregated_against_best.value == pytest.approx(0.2, abs=0.08)
    wrong = compare_panel(table, known_codes(truth, 150), 1 - truth, np.ones(3), 0)
    assert wrong.aggregated.value == 0
