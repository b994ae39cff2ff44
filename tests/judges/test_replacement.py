import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import wilcoxon

import annotrace as at
from annotrace.errors import InputError
from annotrace.judges import alternative_annotator_test
from annotrace.judges.replacement import first_labels


def table_of(columns, n_classes=3):
    wide = np.array(list(columns.values())).T
    return at.LabelTable.from_wide(wide, annotators=list(columns), classes=range(n_classes))


# Ten items, repeated four times: labels of three people and a judge.
PEOPLE = {
    "ann": [0, 0, 1, 1, 2, 2, 0, 1, 2, 0],
    "bob": [0, 0, 1, 1, 2, 0, 1, 1, 2, 1],
    "cem": [0, 1, 1, 0, 2, 2, 0, 2, 2, 1],
}
JUDGE = [0, 0, 1, 1, 1, 2, 0, 1, 2, 1]
N = 40


def people_and_judge():
    people = table_of({name: labels * 4 for name, labels in PEOPLE.items()})
    return people, table_of({"gpt": JUDGE * 4})


def test_worked_out_by_hand():
    """Agreement with the two remaining people, item by item (0, 1 or 2 of 2).

    Without ann (bob and cem remain):
      bob 0 0 1 1 2 0 1 1 2 1, cem 0 1 1 0 2 2 0 2 2 1
      ann    2 1 2 1 2 1 1 1 2 0
      judge  2 1 2 1 0 1 1 1 2 2
      The judge is better on item 10, ann on item 5, equal on 8: each is as good on 9 of 10.
    Without bob (ann and cem remain):
      bob    2 1 2 1 2 0 0 1 2 1
      judge  2 1 2 1 0 2 2 1 2 1
      The judge is better on 6 and 7, bob on 5: the judge is as good on 9, bob on 8.
    Without cem (ann and bob remain):
      cem    2 0 2 0 2 1 1 0 2 1
      judge  2 2 2 2 0 1 1 2 2 1
      The judge is better on 2, 4 and 8, cem on 5: the judge is as good on 9, cem on 7.
    """
    results, comparisons = alternative_annotator_test(*people_and_judge(), epsilon=0.1)
    assert [each.person for each in comparisons] == ["ann", "bob", "cem"]
    assert [each.n_items for each in comparisons] == [N] * 3
    assert [each.judge_as_good for each in comparisons] == pytest.approx([0.9, 0.9, 0.9])
    assert [each.person_as_good for each in comparisons] == pytest.approx([0.9, 0.8, 0.7])
    # Person minus judge is +1 on one item of ten, and -1 on one, two and three; the test asks
    # whether its mean is below epsilon.
    expected = []
    for worse in (1, 2, 3):
        mean = (1 - worse) / 10
        variance = ((1 + worse) / 10 - mean**2) * N / (N - 1)
        expected.append(student.cdf((mean - 0.1) / np.sqrt(variance / N), N - 1))
    assert [each.p_value for each in comparisons] == pytest.approx(expected)
    # The t statistics are -1.396, -2.319 and -3.122, with 39 degrees of freedom. By Benjamini and
    # Yekutieli the k-th smallest p-value of three is compared with
    # .05 k / 3 / (1 + 1/2 + 1/3) = .0091 k: .002 < .0091, .013 < .0182, .085 > .0273.
    assert [round(p, 3) for p in expected] == [0.085, 0.013, 0.002]
    assert [each.wins for each in comparisons] == [False, True, True]
    (result,) = results
    assert (result.judge, result.n_people, result.passes) == ("gpt", 3, True)
    assert result.winning_rate == pytest.approx(2 / 3)
    assert result.advantage == pytest.approx(0.9)


def test_the_rate_of_false_discoveries_counts_dependent_tests():
    """At 3 % the thresholds are .0055 k: .002 < .0055, .013 > .0109.

    For independent tests (Benjamini and Hochberg) they would be .01 k, and .013 < .02.
    """
    _, comparisons = alternative_annotator_test(*people_and_judge(), epsilon=0.1, rate=0.03)
    assert [each.wins for each in comparisons] == [False, False, True]


def test_a_smaller_epsilon_is_harder_to_pass():
    (result,), _ = alternative_annotator_test(*people_and_judge(), epsilon=0.0)
    assert not result.passes
    (result,), _ = alternative_annotator_test(*people_and_judge(), epsilon=0.3)
    assert result.winning_rate == 1


def test_graded_classes_are_compared_by_distance():
    """Of the grades 0 and 2 of the others, a judge's 1 is no further off than a person's 0.

    By equality the person is better, as one of the others said 0 too; by squared distance the
    sums are 1 + 1 for the judge and 0 + 4 for the person.
    """
    people = table_of({"ann": [0] * 40, "bob": [0] * 40, "cem": [2] * 40})
    judge = table_of({"gpt": [1] * 40})
    _, equal = alternative_annotator_test(people, judge)
    _, graded = alternative_annotator_test(people, judge, graded=True)
    assert (equal[0].judge_as_good, equal[0].person_as_good) == (0, 1)
    assert (graded[0].judge_as_good, graded[0].person_as_good) == (1, 0)
    assert (graded[0].p_value, equal[0].p_value) == (0, 1)


def test_few_items_are_tested_by_ranks():
    people = table_of({name: labels * 2 for name, labels in PEOPLE.items()})
    _, comparisons = alternative_annotator_test(people, table_of({"gpt": JUDGE * 2}), epsilon=0.1)
    difference = np.array([0, 0, 0, 0, 1, -1, -1, 0, 0, 0] * 2, float)
    expected = wilcoxon(difference - 0.1, alternative="less").pvalue
    assert comparisons[1].n_items == 20
    assert comparisons[1].p_value == pytest.approx(expected)


def test_people_with_hardly_any_items_are_left_out():
    people = table_of({name: labels[:8] for name, labels in PEOPLE.items()})
    results, comparisons = alternative_annotator_test(people, table_of({"gpt": JUDGE[:8]}))
    assert comparisons == []
    assert (results[0].n_people, results[0].passes) == (0, False)
    assert np.isnan(results[0].winning_rate)


def test_items_that_the_judge_or_all_but_one_person_left_out_do_not_count():
    people, judge = people_and_judge()
    kept = judge.item >= 5
    few = judge.replace(
        item=judge.item[kept], annotator=judge.annotator[kept], label=judge.label[kept]
    )
    _, comparisons = alternative_annotator_test(people, few)
    assert [each.n_items for each in comparisons] == [35] * 3
    alone = (people.annotator == 0) | (people.item >= 5)
    some = people.replace(
        item=people.item[alone], annotator=people.annotator[alone], label=people.label[alone]
    )
    _, comparisons = alternative_annotator_test(some, judge)
    assert [each.n_items for each in comparisons] == [35] * 3


def test_grades_must_be_numbers():
    table = at.LabelTable.from_wide(np.array([["good", "bad"]] * 3))
    with pytest.raises(InputError, match="to be numbers, but got 'bad', 'good'"):
        alternative_annotator_test(table, table, graded=True)


def test_the_first_of_repeated_labels_counts():
    table = at.LabelTable.from_codes([0, 0, 0, 1], [1, 0, 1, 1], [2, 1, 0, 1])
    first = first_labels(table)
    assert first.annotator.tolist() == [1, 0, 1]
    assert first.label.tolist() == [2, 1, 1]
