from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr, ndtri
from zoo_crowds import Crowd, posterior
from zoo_families import FAMILIES, draw_crowd
from zoo_shared import group_log_likelihood, panel_log_likelihood

from annotrace.aggregation import make
from annotrace.crowd.dependence import known_dependence
from annotrace.labels import LabelTable

DRAWS = 6


@pytest.fixture(scope="module", params=FAMILIES)
def crowds(request):
    return [draw_crowd(request.param, seed) for seed in range(DRAWS)]


def share_right(posteriors, crowds):
    pairs = zip(posteriors, crowds, strict=True)
    return np.mean([(own.argmax(axis=1) == crowd.table.truth).mean() for own, crowd in pairs])


def test_crowds_are_legal(crowds):
    for crowd in crowds:
        table = crowd.table
        assert crowd.oracle.shape == (table.n_items, table.n_classes)
        assert crowd.confusion.shape == (table.n_annotators, table.n_classes, table.n_classes)
        assert np.allclose(crowd.oracle.sum(axis=1), 1)
        assert np.allclose(crowd.confusion.sum(axis=2), 1)
        assert table.labels_per_item().min() >= 1
        assert table.truth.min() >= 0
        pairs = np.unique(np.stack([table.item, table.annotator]), axis=1)
        assert pairs.shape[1] == table.n_labels


def test_the_oracle_is_calibrated_and_better_than_majority_vote(crowds):
    votes = [make("majority", random_state=0).fit(crowd.table).posterior_ for crowd in crowds]
    oracles = [crowd.oracle for crowd in crowds]
    assert share_right(oracles, crowds) >= share_right(votes, crowds)
    confidence = np.mean([oracle.max(axis=1).mean() for oracle in oracles])
    assert confidence == pytest.approx(share_right(oracles, crowds), abs=0.02)


def test_annotators_are_as_accurate_as_their_matrices(crowds):
    apart = []
    for crowd in crowds:
        shares = np.bincount(crowd.table.truth, minlength=crowd.table.n_classes)
        diagonal = np.diagonal(crowd.confusion, axis1=1, axis2=2)
        expected = diagonal @ (shares / shares.sum())
        n_labels = np.bincount(crowd.table.annotator, minlength=len(expected))
        apart.append(
            np.average(np.nan_to_num(crowd.annotator_accuracy) - expected, weights=n_labels)
        )
    assert np.mean(apart) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_gives_the_same_crowd(family):
    first, again, other = (draw_crowd(family, seed) for seed in (3, 3, 4))
    assert np.array_equal(first.table.label, again.table.label)
    assert np.array_equal(first.oracle, again.oracle)
    assert not np.array_equal(first.table.label[:200], other.table.label[:200])


def squared_change(table):
    """Return the squared z-scores of annotators' accuracy in both halves of the items."""
    right, late = table.label == table.truth[table.item], table.item >= table.n_items / 2
    found = []
    for annotator in range(table.n_annotators):
        own = table.annotator == annotator
        halves = [right[own & ~late], right[own & late]]
        variance = sum(half.var(ddof=1) / len(half) for half in halves if len(half) >= 10)
        if min(map(len, halves)) >= 10 and variance > 0:
            found.append((halves[0].mean() - halves[1].mean()) ** 2 / variance)
    return found


@pytest.mark.parametrize(("family", "drifts"), [("drift", True), ("independent", False)])
def test_only_annotators_of_drift_change(family, drifts):
    tables = [draw_crowd(family, seed).table for seed in range(DRAWS)]
    change = np.mean([z for table in tables for z in squared_change(table)])
    # By chance alone it is about 1.
    assert bool(change > 1.5) is drifts


def test_annotator_accuracy_counts_labels():
    table = LabelTable.from_codes(
        [0, 0, 1, 1],
        [0, 1, 0, 1],
        [0, 1, 1, 1],
        n_items=2,
        n_annotators=3,
        n_classes=2,
        truth=[0, 1],
    )
    accuracy = Crowd(table, np.eye(2), np.stack([np.eye(2)] * 3)).annotator_accuracy
    assert np.array_equal(accuracy, [1.0, 0.5, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("diagonal", "labels_per_item", "shares_errors", "is_easy"),
    [
        (0.6, 3, False, True),
        (0.6, 2, False, False),
        (0.6, 3, True, False),
        (0.57, 3, False, False),  # .57 - .43 is below .15
    ],
)
def test_easy_crowds(diagonal, labels_per_item, shares_errors, is_easy):
    item, annotator = np.divmod(np.arange(4 * labels_per_item), labels_per_item)
    table = LabelTable.from_codes(
        item, annotator, item % 2, n_items=4, n_annotators=3, n_classes=2, truth=np.arange(4) % 2
    )
    confusion = np.tile([[diagonal, 1 - diagonal], [1 - diagonal, diagonal]], (3, 1, 1))
    assert Crowd(table, np.eye(2)[item[:4]], confusion, shares_errors).is_easy is is_easy


def test_likelihood_of_groups_sums_over_their_answers():
    rng = np.random.default_rng(0)
    own, answers = (rng.dirichlet(np.ones(3), (n, 3)) for n in (5, 2))
    group, copying = np.array([0, 0, 1, -1, 1]), 0.7
    label = rng.integers(3, size=(4, 5))
    item, annotator = np.divmod(np.arange(20), 5)
    table = LabelTable.from_codes(
        item, annotator, label.ravel(), n_items=4, n_annotators=5, n_classes=3
    )
    expected = np.zeros((4, 3))
    for k, true, first, second in product(range(4), range(3), range(3), range(3)):
        weight = answers[0, true, first] * answers[1, true, second]
        for r, said in enumerate(label[k]):
            alone = own[r, true, said]
            shared = (first, second)[group[r]]
            weight *= alone if group[r] < 0 else (1 - copying) * alone + copying * (shared == said)
        expected[k, true] += weight
    found = group_log_likelihood(table, own, group, answers, copying)
    assert np.allclose(np.exp(found), expected)


def test_likelihood_of_panels_integrates_over_the_factor():
    accuracy, common = np.array([[0.8, 0.6, 0.7], [0.65, 0.9, 0.5]]), 0.4
    label = np.array([[0, 0], [0, 1], [1, 2]])
    item, annotator = np.divmod(np.arange(6), 2)
    table = LabelTable.from_codes(
        item, annotator, label.ravel(), n_items=3, n_annotators=2, n_classes=3
    )
    factor = np.linspace(-8, 8, 20001)
    density = np.exp(-0.5 * factor**2) / np.sqrt(2 * np.pi)
    right = ndtr((ndtri(accuracy)[..., None] - np.sqrt(common) * factor) / np.sqrt(1 - common))
    expected = np.zeros((3, 3))
    for k, true, tempting in product(range(3), range(3), range(3)):
        if tempting == true:
            continue
        each = [
            right[r, true] if said == true else (1 - right[r, true]) * (said == tempting)
            for r, said in enumerate(label[k])
        ]
        expected[k, true] += np.trapezoid(density * np.prod(each, axis=0), factor) / 2
    found = panel_log_likelihood(table, accuracy, common)
    assert np.allclose(np.exp(found), expected, atol=1e-6)


def test_posterior_is_bayes_rule():
    likelihood, prior = np.array([[0.2, 0.1]]), np.array([0.3, 0.7])
    expected = np.log(prior * likelihood) - logsumexp(np.log(prior * likelihood))
    assert np.allclose(posterior(prior, np.log(likelihood)), np.exp(expected))


def test_errors_correlate_only_where_they_are_shared(crowds):
    found = [known_dependence(crowd.table, crowd.table.truth).correlation for crowd in crowds]
    if crowds[0].shares_errors:
        assert np.mean(found) > 0.05
    else:
        assert np.mean(found) == pytest.approx(0, abs=0.03)
