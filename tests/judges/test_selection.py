import numpy as np
import pytest
from made_up_judges import draw_panel, known_codes

from annotrace.judges.selection import (
    MAX_JUDGES,
    best_panel,
    forward_order,
    grow_panel,
    smallest_panel,
)
from annotrace.judges.votes import GoldVotes


def gold_votes(accuracies, shared=0.0, n=600, seed=0):
    table, truth = draw_panel(accuracies, n, shared, seed=seed)
    return GoldVotes.of(table, known_codes(truth, n)), table.annotators.tolist()


def test_one_good_judge_among_guesses_is_the_smallest_panel():
    gold, names = gold_votes([0.55, 0.95, 0.5, 0.5, 0.55])
    steps = grow_panel(gold, names, np.ones(5), 0)
    assert steps[0].judge == "judge-1"
    assert smallest_panel(steps) == ["judge-1"]
    assert steps[0].against_all.low > 0


def test_experts_among_guesses_are_the_best_panel():
    gold, names = gold_votes([0.85, 0.5, 0.85, 0.5, 0.85, 0.5, 0.5, 0.5], n=1500)
    steps = grow_panel(gold, names, np.ones(8), 0)
    assert sorted(best_panel(steps)) == ["judge-0", "judge-2", "judge-4"]
    assert steps[2].against_all.low > 0


def test_independent_judges_are_all_needed():
    gold, names = gold_votes([0.65] * 7, n=3000)
    steps = grow_panel(gold, names, np.ones(7), 0)
    assert [step.n_judges for step in steps] == list(range(1, 8))
    assert len(smallest_panel(steps)) >= 6
    assert steps[0].against_all.high < 0


def test_copies_are_not_needed():
    gold, names = gold_votes([0.8] * 6, shared=1.0)
    assert len(smallest_panel(grow_panel(gold, names, np.ones(6), 0))) == 1


def test_of_equal_judges_the_cheapest_joins_first():
    gold, names = gold_votes([0.8] * 4, shared=1.0)
    cost = np.array([3.0, 2, 1, 4])
    steps = grow_panel(gold, names, cost, 0)
    assert steps[0].judge == "judge-2"
    assert [step.cost for step in steps] == [1, 3, 6, 10]


def test_scores_are_not_those_that_members_were_chosen_by():
    """Among judges who all guess, the best on the items at hand is not better on others."""
    gold, names = gold_votes([0.5] * 15, n=60)
    first = grow_panel(gold, names, np.ones(15), 0)[0]
    assert first.accuracy > 0.58
    assert first.validated < first.accuracy - 0.05


def test_all_judges_are_equal_to_themselves():
    gold, names = gold_votes([0.7, 0.8, 0.9], n=50)
    last = grow_panel(gold, names, np.ones(3), 0)[-1]
    assert last.validated == last.accuracy == pytest.approx(last.validated)
    assert last.against_all.value == 0


def test_large_panels_are_searched_up_to_a_limit():
    gold, _ = gold_votes([0.6] * (MAX_JUDGES + 3), n=40)
    assert len(forward_order(gold, np.ones(40, bool), np.ones(MAX_JUDGES + 3))) == MAX_JUDGES
