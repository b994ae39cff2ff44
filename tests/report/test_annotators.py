from dataclasses import replace

import numpy as np
import pytest

import annotrace as at
from annotrace.report.people import SHOWN_OF_EACH, crowd_matrix, people_of
from annotrace.report.result import Crowd, Result, result_of


def crowd_of(matrices, n_labels, variance=1e-4):
    """A result in which annotator k gave n_labels[k] labels and has a known matrix."""
    n, c = len(matrices), matrices.shape[1]
    who = np.repeat(np.arange(n), n_labels)
    table = at.LabelTable.from_codes(
        np.arange(len(who)) % 50, who, np.arange(len(who)) % c, n_items=50, n_classes=c
    )
    skill = np.diagonal(matrices, axis1=1, axis2=2).mean(axis=1)
    crowd = Crowd(
        skill,
        skill - 0.05,
        skill + 0.05,
        matrices,
        np.full(matrices.shape, variance),
        matrices * np.array(n_labels)[:, None, None] / c,
        [()] * n,
    )
    posterior = np.full((50, c), 1 / c)
    return Result(table, posterior, posterior, crowd, None, "trace")


def coin(skill, n_classes):
    return skill * np.eye(n_classes) + (1 - skill) / n_classes


def test_people_are_ranked_by_skill():
    people = people_of(crowd_of(np.stack([coin(s, 3) for s in (0.2, 0.9, 0.5)]), [30, 30, 30]))
    assert [person.name for person in people.shown] == ["1", "2", "0"]
    assert [person.rank for person in people.shown] == [1, 2, 3]
    assert [person.against for person in people.shown] == ["above", "like", "below"]
    assert people.by_chance == pytest.approx(1 / 3)


def test_the_crowd_counts_people_by_their_labels():
    result = crowd_of(np.stack([coin(0.0, 2), coin(1.0, 2)]), [10, 30])
    np.testing.assert_allclose(crowd_matrix(result), coin(0.75, 2))


def test_labels_of_other_classes_do_not_count_in_the_row_of_a_class():
    many, few = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    result = crowd_of(np.stack([many, few]), [3000, 30])
    counts = np.array([[[1500, 1500], [0, 0]], [[9, 1], [4, 16]]])
    result = replace(result, crowd=replace(result.crowd, counts=counts))
    np.testing.assert_allclose(crowd_matrix(result), [[1509 / 3010, 1501 / 3010], [0.2, 0.8]])


def test_a_class_without_labels_is_taken_for_what_people_are_thought_to_do():
    result = crowd_of(np.stack([coin(0.6, 2), coin(0.8, 2)]), [10, 30])
    result = replace(result, crowd=replace(result.crowd, counts=np.zeros((2, 2, 2))))
    np.testing.assert_allclose(crowd_matrix(result), coin(0.7, 2))


def test_sure_differences_from_the_crowd_are_told():
    swaps = np.array([[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    people = people_of(crowd_of(np.stack([swaps, *[np.eye(3)] * 3]), [10, 10, 10, 10]))
    mixer = people.shown[-1]
    assert [cell.sign for cell in mixer.matrix[0]] == ["less", "more", ""]
    told = {(it.true, it.said): (it.share, it.crowd) for it in mixer.differences}
    assert told["0", "1"] == pytest.approx((0.9, 0.225))


def test_differences_within_the_error_are_not_told():
    matrices = np.stack([coin(0.5, 3), coin(0.7, 3)])
    people = people_of(crowd_of(matrices, [10, 10], variance=0.05))
    assert all(not person.differences for person in people.shown)


def test_of_many_the_busiest_the_best_and_the_worst_are_shown():
    n = 2000
    rng = np.random.default_rng(0)
    skill = rng.random(n)
    n_labels = rng.integers(1, 100, n)
    result = crowd_of(np.stack([coin(s, 2) for s in skill]), n_labels)
    people = people_of(result)
    shown = {int(person.name) for person in people.shown}
    for order in (-n_labels, -result.crowd.low, result.crowd.high):
        assert set(np.argsort(order, kind="stable")[:SHOWN_OF_EACH].tolist()) <= shown
    assert people.n_left_out == n - len(shown)
    ranks = [person.rank for person in people.shown]
    assert ranks == sorted(ranks)


def test_many_classes_are_listed_as_mistakes():
    matrix = np.eye(30)
    matrix[3] = 0.4 * np.eye(30)[3] + 0.6 * np.eye(30)[7]
    person = people_of(crowd_of(matrix[None], [30])).shown[0]
    assert person.matrix == []
    assert (person.mistakes[0].true, person.mistakes[0].said) == ("3", "7")
    assert len(person.mistakes) == 1


def test_without_matrices_people_are_ranked_by_labels(small, features):
    model = at.Vanilla(epochs=1, random_state=0).fit(features, small, items=small.items)
    people = people_of(result_of(model))
    assert people.shown[0].name == "mallory"
    assert people.shown[0].skill is None
    counts = np.zeros((3, 3))
    for item, label in zip(small.item, small.label, strict=True):
        counts[:, label] += model.posterior_[item]
    np.testing.assert_allclose(
        crowd_matrix(result_of(model)), counts / counts.sum(axis=1, keepdims=True)
    )
