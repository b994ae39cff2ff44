import numpy as np
from fitted_crowds import crowd_result, from_labels, with_classifier

from annotrace.diagnosis import diagnose
from annotrace.diagnosis.flags import Flag, answer_dependence, flag_annotators
from annotrace.simulate import hammer_spammers, simulate_labels


def test_annotators_are_flagged_for_what_they_do():
    good = hammer_spammers(9, 4, 0.8, 0)
    spammer = np.tile([0.6, 0.2, 0.1, 0.1], (4, 1))
    adversary = 0.05 + 0.8 * np.roll(np.eye(4), 1, axis=1)
    confused = good[0].copy()
    confused[:2] = [[0.4, 0.55, 0.03, 0.02], [0.5, 0.45, 0.03, 0.02]]
    confusion = np.concatenate([good, [spammer, adversary, confused]])
    flags = flag_annotators(with_classifier(confusion, n_items=1500, labels_per_item=4))
    assert flags[:9] == ((),) * 9
    assert flags[9] == (Flag("spammer"),)
    assert flags[10][0] == Flag("adversarial")
    assert set(flags[11]) == {Flag("confuses", (0, 1)), Flag("confuses", (1, 0))}


def test_constant_answers_are_found_if_classes_are_rare():
    """A handful of labels of each rare class does not make them look informed."""
    always, expert = np.tile([0.97, 0.015, 0.015], (3, 3, 1)), 0.92 * np.eye(3) + 0.08 / 3
    confusion = np.concatenate([hammer_spammers(14, 3, 0.8, 0), always, [expert] * 2])
    for seed in range(3):
        flags = flag_annotators(
            from_labels(confusion, 1000, 5, seed=seed, shares=[0.85, 0.1, 0.05])
        )
        assert [k for k, own in enumerate(flags) if Flag("spammer") in own] == [14, 15, 16]


def test_annotators_who_swap_names_are_not_spammers():
    """Their answers depend on the item, and are correct as often as by chance."""
    swap = 0.8 * np.eye(3)[[0, 2, 1]] + 0.2 / 3
    weak_swap = 0.4 * np.roll(np.eye(3), 1, axis=1) + 0.2
    confusion = np.concatenate([hammer_spammers(9, 3, 0.8, 0), [swap, weak_swap]])
    flags = flag_annotators(with_classifier(confusion, n_items=2000, labels_per_item=4))
    assert set(flags[9]) == {Flag("confuses", (1, 2)), Flag("confuses", (2, 1))}
    assert flags[10][0] == Flag("adversarial")


def test_annotators_with_few_labels_are_flagged_for_nothing_else():
    result = with_classifier(hammer_spammers(150, 4, 0.6, 0), n_items=400)
    flags = flag_annotators(result)
    few = np.flatnonzero(result.table.labels_per_annotator() < 16)
    assert len(few) > 100
    assert {flag for who in few for flag in flags[who]} == {Flag("few-labels")}


def test_annotators_without_labels_are_flagged():
    truth, confusion = np.arange(300) % 3, hammer_spammers(4, 3, 0.9, 0)
    shares = np.array([200, 200, 200, 0])
    table = simulate_labels(truth, confusion, labels_per_annotator=shares, random_state=0)
    assert flag_annotators(crowd_result(table, np.full(3, 1 / 3), confusion))[3] == (
        Flag("no-labels"),
    )


def test_the_most_frequent_confusion_comes_first():
    confused = np.array([[0.1, 0.9, 0, 0], [0, 1, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1]])
    confusion = np.concatenate([hammer_spammers(8, 4, 0.8, 0), [confused]])
    flags = flag_annotators(with_classifier(confusion, n_items=2000, labels_per_item=4))
    assert flags[8] == (Flag("confuses", (0, 1)), Flag("confuses", (2, 3)))


def test_annotators_who_see_different_classes_are_flagged_for_nothing():
    result = with_classifier(hammer_spammers(6, 3, 0.8, 0))
    assert flag_annotators(result, comparable=False) == ((),) * 6


def test_few_labels_need_no_attention():
    kinds = ("spammer", "adversarial", "few-labels", "no-labels")
    assert [Flag(kind).needs_attention for kind in kinds] == [True, True, False, False]


def test_answers_depend_on_the_class_as_much_as_they_are_not_guesses():
    shares = np.array([0.5, 0.3, 0.2])
    guess = np.tile([0.6, 0.3, 0.1], (3, 1))
    matrices = np.stack([np.eye(3), np.eye(3)[[1, 2, 0]], guess, 0.4 * np.eye(3) + 0.6 * guess])
    np.testing.assert_allclose(answer_dependence(matrices, shares), [1, 1, 0, 0.4], atol=1e-9)


def test_a_diagnosis_has_the_flags():
    result = with_classifier(hammer_spammers(6, 3, 0.8, 0))
    assert diagnose(result).flags == flag_annotators(result)
