import numpy as np
import pytest

import annotrace as at
from annotrace.diagnosis import Flag
from annotrace.report.annotators import SHOWN_OF_EACH, annotator_section, crowd_matrix
from annotrace.report.view import view_of


@pytest.fixture
def crowd_of(made_up):
    """A function that makes a view: annotator k has n_labels[k] labels and a known matrix."""

    def make(matrices, n_labels, counts=None, **others):
        n, c = len(matrices), matrices.shape[1]
        who = np.repeat(np.arange(n), n_labels)
        table = at.LabelTable.from_codes(
            np.arange(len(who)) % 50, who, np.arange(len(who)) % c, n_items=50, n_classes=c
        )
        if counts is None:
            counts = matrices * np.array(n_labels)[:, None, None] / c
        return made_up(table, np.full((50, c), 1 / c), matrices, counts=counts, **others)

    return make


def coin(skill, n_classes):
    return skill * np.eye(n_classes) + (1 - skill) / n_classes


def test_annotators_are_ranked_by_skill(crowd_of):
    matrices = np.stack([coin(s, 3) for s in (0.2, 0.9, 0.5)])
    section = annotator_section(crowd_of(matrices, [30, 30, 30], variance=3e-3))
    assert [row.name for row in section.shown] == ["1", "2", "0"]
    assert [person.rank for person in section.shown] == [1, 2, 3]
    assert [person.against for person in section.shown] == ["above", "like", "below"]
    assert section.chance == pytest.approx(1 / 3)


def test_the_crowd_counts_annotators_by_their_labels(crowd_of):
    result = crowd_of(np.stack([coin(0.0, 2), coin(1.0, 2)]), [10, 30])
    np.testing.assert_allclose(crowd_matrix(result), coin(0.75, 2))


def test_labels_of_other_classes_do_not_count_in_the_row_of_a_class(crowd_of):
    many, few = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    counts = np.array([[[1500, 1500], [0, 0]], [[9, 1], [4, 16]]])
    result = crowd_of(np.stack([many, few]), [3000, 30], counts)
    np.testing.assert_allclose(crowd_matrix(result), [[1509 / 3010, 1501 / 3010], [0.2, 0.8]])


def test_a_class_without_labels_is_taken_for_the_mean_row(crowd_of):
    result = crowd_of(np.stack([coin(0.6, 2), coin(0.8, 2)]), [10, 30], np.zeros((2, 2, 2)))
    np.testing.assert_allclose(crowd_matrix(result), coin(0.7, 2))


def test_sure_differences_from_the_crowd_are_reported(crowd_of):
    swaps = np.array([[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    section = annotator_section(crowd_of(np.stack([swaps, *[np.eye(3)] * 3]), [10, 10, 10, 10]))
    mixer = section.shown[-1]
    assert [cell.sign for cell in mixer.matrix[0]] == ["less", "more", ""]
    reported = {(it.true, it.reported): (it.share, it.crowd) for it in mixer.differences}
    assert reported["0", "1"] == pytest.approx((0.9, 0.225))


def test_differences_within_the_error_are_not_told(crowd_of):
    matrices = np.stack([coin(0.5, 3), coin(0.7, 3)])
    section = annotator_section(crowd_of(matrices, [10, 10], variance=0.05))
    assert all(not person.differences for person in section.shown)


def test_of_many_the_busiest_the_best_and_the_worst_are_shown(crowd_of):
    n = 2000
    rng = np.random.default_rng(0)
    skill = rng.random(n)
    n_labels = rng.integers(1, 100, n)
    result = crowd_of(np.stack([coin(s, 2) for s in skill]), n_labels)
    section = annotator_section(result)
    shown = {int(person.name) for person in section.shown}
    low, high = result.result.annotators.skill_interval()
    for order in (-n_labels, -low, high):
        assert set(np.argsort(order, kind="stable")[:SHOWN_OF_EACH].tolist()) <= shown
    assert section.n_left_out == n - len(shown)
    ranks = [person.rank for person in section.shown]
    assert ranks == sorted(ranks)


def test_many_classes_are_listed_as_errors(crowd_of):
    matrix = np.eye(30)
    matrix[3] = 0.4 * np.eye(30)[3] + 0.6 * np.eye(30)[7]
    person = annotator_section(crowd_of(matrix[None], [30])).shown[0]
    assert person.matrix == []
    assert [(it.true, it.reported) for it in person.errors] == [("3", "7")]


def test_without_matrices_section_are_ranked_by_labels(small, features):
    model = at.Vanilla(epochs=1, random_state=0).fit(features, small, items=small.items)
    section = annotator_section(view_of(model))
    assert section.shown[0].name == "mallory"
    assert section.shown[0].skill is None
    counts = np.zeros((3, 3))
    for item, label in zip(small.item, small.label, strict=True):
        counts[:, label] += model.posterior_[item]
    np.testing.assert_allclose(
        crowd_matrix(view_of(model)), counts / counts.sum(axis=1, keepdims=True)
    )


def test_remarks_are_short_and_say_whether_they_need_attention(crowd_of):
    pairs = [Flag("confuses", (k, (k + 2) % 6)) for k in range(6)]
    flags = ([*pairs, Flag("few-labels")], [Flag("few-labels")])
    section = annotator_section(
        crowd_of(np.stack([coin(0.3, 6), coin(0.9, 6)]), [9, 9], flags=flags)
    )
    few, many = section.shown
    assert [tuple(remark) for remark in few.remarks] == [("few labels", False)]
    assert not few.needs_attention
    assert many.needs_attention
    assert many.remarks[0].text.startswith("confuses 0 with 2, 1 with 3 and 2 with 4, and 3 more")
    assert many.remarks[1] == few.remarks[0]
