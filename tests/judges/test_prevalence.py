import numpy as np
import pytest
from made_up_judges import draw_panel, known_codes

from annotrace.judges.prevalence import (
    class_shares,
    find_unlike,
    prediction_powered_shares,
    rogan_gladen,
)


def draw_reports(rng, share, matrix, n):
    truth = rng.choice(len(share), n, p=share)
    label = (rng.random(n)[:, None] > matrix[truth].cumsum(1)).sum(1).clip(max=len(share) - 1)
    return np.eye(len(share))[label], truth


def test_two_classes_by_the_formula_of_rogan_and_gladen():
    """Of 10 gold items of either class 8 and 9 are recognised; 40 of 100 others are called 1."""
    reported = np.repeat([0, 1, 0, 1, 0, 1], [9, 1, 2, 8, 60, 40])
    truth = np.repeat([0, 1, -1], [10, 10, 100])
    zero, one = rogan_gladen(np.eye(2)[reported], truth)
    sensitivity, specificity = 0.8, 0.9
    share = (0.4 + specificity - 1) / (sensitivity + specificity - 1)
    assert one.value == pytest.approx(share)
    assert zero.value == pytest.approx(1 - share)
    # The delta method, with one item of equal shares added to either class.
    variance = 0.4 * 0.6 / 100
    for weight, right in ((share, 8), (1 - share, 9)):
        values = [1.0] * right + [0.0] * (10 - right) + [0.5]
        variance += weight**2 * np.var(values) / 10
    assert one.high - one.low == pytest.approx(2 * 1.64485 * variance**0.5 / 0.7, rel=1e-5)


@pytest.mark.parametrize(
    ("share", "n_gold"), [([0.9, 0.1], 60), ([0.5, 0.3, 0.2], 100), ([0.8, 0.15, 0.05], 60)]
)
def test_intervals_cover(share, n_gold):
    rng = np.random.default_rng(0)
    matrix = 0.7 * np.eye(len(share)) + 0.3 / len(share)
    covered = []
    for _ in range(250):
        reported, truth = draw_reports(rng, share, matrix, 1000)
        known = np.where(np.arange(1000) < n_gold, truth, -1)
        covered.append(
            [
                [each.low <= right <= each.high for each, right in zip(found, share, strict=True)]
                for found in (
                    rogan_gladen(reported, known),
                    prediction_powered_shares(reported, known),
                )
            ]
        )
    inverted, powered = np.mean(covered, axis=0)
    assert np.all(inverted >= 0.86)
    assert np.all(inverted <= 0.98)
    assert np.all(powered >= 0.85)
    assert np.all(powered <= 0.95)


def test_labels_that_are_biased_are_corrected():
    """A judge who calls a third of the zeros ones: the labels have .53, the truth .3."""
    rng = np.random.default_rng(1)
    reported, truth = draw_reports(rng, [0.7, 0.3], np.array([[2 / 3, 1 / 3], [0, 1]]), 6000)
    known = np.where(np.arange(6000) < 600, truth, -1)
    assert reported[:, 1].mean() > 0.5
    for found in (rogan_gladen(reported, known), prediction_powered_shares(reported, known)):
        assert found[1].low < 0.3 < found[1].high < 0.4


def test_rogan_gladen_holds_if_gold_has_another_mixture_of_classes():
    rng = np.random.default_rng(2)
    matrix = np.array([[0.8, 0.2], [0.1, 0.9]])
    gold, gold_truth = draw_reports(rng, [0.5, 0.5], matrix, 400)
    rest, _ = draw_reports(rng, [0.9, 0.1], matrix, 5000)
    reported = np.vstack([gold, rest])
    known = np.concatenate([gold_truth, np.full(5000, -1)])
    inverted, powered = (
        rogan_gladen(reported, known)[1],
        prediction_powered_shares(reported, known)[1],
    )
    assert inverted.low < 0.1 < inverted.high < 0.3
    assert powered.low > 0.1


def test_a_judge_who_always_says_the_same_says_nothing():
    reported, truth = np.eye(2)[np.zeros(50, int)], np.repeat([0, 1, -1], [10, 10, 30])
    found = rogan_gladen(reported, truth)
    assert not found[0].is_known
    assert found[0][1:] == (0, 1)


def test_a_class_without_gold_items_is_assumed_to_be_absent():
    reported = np.eye(3)[np.repeat([0, 1, 0, 1], [10, 10, 30, 20])]
    found = rogan_gladen(reported, np.repeat([0, 1, -1], [10, 10, 50]))
    assert [each.value for each in found] == pytest.approx([0.6, 0.4, 0])
    assert found[2].low == 0 < found[2].high < 0.2


def test_a_matrix_that_explains_nothing_of_the_other_items():
    """Gold items were called 0 or 1, and all others 2."""
    reported = np.eye(3)[np.repeat([0, 1, 2], [5, 5, 10])]
    found = rogan_gladen(reported, np.repeat([0, 1, -1], [5, 5, 10]))
    assert all(0 <= end <= 1 for each in found for end in each)


def test_without_gold_or_without_other_items_there_is_nothing_to_correct():
    reported = np.eye(2)[np.zeros(4, int)]
    assert not rogan_gladen(reported, np.full(4, -1))[0].is_known
    assert not prediction_powered_shares(reported, np.full(4, -1))[0].is_known
    assert not rogan_gladen(reported, np.zeros(4, int))[0].is_known
    assert prediction_powered_shares(reported, np.zeros(4, int))[0].value == 1


def test_shares_of_a_panel():
    table, truth = draw_panel([0.8, 0.7, 0.6], 500, n_classes=3)
    shares = class_shares(table, known_codes(truth, 100), "panel")
    assert [each.label for each in shares] == [0, 1, 2]
    assert sum(each.reported for each in shares) == pytest.approx(1)
    gold = np.bincount(truth[:100], minlength=3) / 100
    assert [each.gold.value for each in shares] == pytest.approx(gold)


def test_gold_items_that_are_no_random_sample():
    table, truth = draw_panel([0.9, 0.8], 600)
    assert find_unlike(table, known_codes(truth, 100)) is None
    chosen = np.flatnonzero(truth == 1)[:80]
    known = np.full(600, -1, np.int32)
    known[chosen] = 1
    found = find_unlike(table, known)
    labels = table.to_wide()[:, 0] == found.label, table.to_wide()[:, 1] == found.label
    share = np.mean(labels, axis=0)
    assert found.gold == pytest.approx(share[chosen].mean())
    assert found.others == pytest.approx(np.delete(share, chosen).mean())


def test_random_samples_are_rarely_suspected():
    suspected = 0
    for seed in range(150):
        table, truth = draw_panel([0.9, 0.8], 200, seed=seed)
        suspected += find_unlike(table, known_codes(truth, 60)) is not None
    assert suspected <= 2


def test_one_item_is_no_sample():
    table, truth = draw_panel([0.9], 20)
    assert find_unlike(table, known_codes(truth, 1)) is None
    assert find_unlike(table, known_codes(truth, 20)) is None
