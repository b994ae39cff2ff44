import numpy as np
import pytest
import torch

from annotrace.labels import LabelTable
from annotrace.methods.held_out_em import HeldOutEM
from annotrace.simulate import hammer_spammers, simulate_labels

UNKNOWN = np.full(300, -1, np.int32)


def labelled_items(n_items=300, labels_per_item=2, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    confusion = hammer_spammers(4, 3, 0.6, random_state=seed)
    table = simulate_labels(truth, confusion, labels_per_item=labels_per_item, random_state=rng)
    logits = torch.from_numpy(2.0 * np.eye(3)[truth] + rng.normal(size=(n_items, 3)))
    return table, truth, confusion, np.arange(n_items) % 5, logits


def started(table, fold, logits, gold=UNKNOWN):
    em = HeldOutEM(table, fold, gold)
    em.count_matrices(torch.softmax(logits, 1))
    return em


def test_matrices_of_a_fold_are_counted_on_the_others():
    table, _, _, fold, logits = labelled_items()
    em = started(table, fold, logits)
    p = torch.softmax(logits, 1).numpy()
    for k in (0, 3):
        counts = np.zeros((4, 3, 3))
        for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
            if fold[item] != k:
                counts[annotator, :, label] += p[item]
        expected = counts + em._prior.numpy()
        expected /= expected.sum(2, keepdims=True)
        np.testing.assert_allclose(em._held_out.view(5, 4, 3, 3)[k], expected, rtol=1e-10)


def test_the_labels_of_a_fold_do_not_change_the_matrices_that_judge_it():
    table, _, _, fold, logits = labelled_items()
    label = np.where(fold[table.item] == 2, (table.label + 1) % 3, table.label)
    other = LabelTable.from_codes(
        table.item, table.annotator, label, n_items=300, n_annotators=4, n_classes=3
    )
    judges = []
    for labels in (table, other):
        em = started(labels, fold, logits)
        em._prior = torch.ones(1, 3, 3, dtype=torch.float64)
        em._update_matrices(em._counts(torch.softmax(logits, 1)))
        judges.append(em._held_out.view(5, 4, 3, 3))
    torch.testing.assert_close(judges[0][2], judges[1][2], rtol=1e-12, atol=0)
    assert not torch.allclose(judges[0][1], judges[1][1])


def test_the_posterior_is_classifier_times_likelihood_of_the_labels(monkeypatch):
    monkeypatch.setattr("annotrace.methods.held_out_em.N_ITER", 1)
    table, _, _, fold, logits = labelled_items()
    em = started(table, fold, logits)
    matrices = em._held_out.view(5, 4, 3, 3)
    em.run(logits)
    scores = torch.log_softmax(logits / em.temperature, 1)
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        scores[item] += matrices[fold[item], annotator, :, label].log()
    np.testing.assert_allclose(em.posterior, torch.softmax(scores, 1), rtol=1e-10)


def test_annotators_and_truth_are_recovered():
    table, truth, confusion, fold, logits = labelled_items()
    em = started(table, fold, logits)
    em.run(logits)
    assert np.mean(em.posterior.argmax(1).numpy() == truth) > 0.9
    np.testing.assert_allclose(em.matrices(), confusion, atol=0.15)
    assert torch.allclose(em.matrices().sum(2), torch.ones(4, 3, dtype=torch.float64))


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_the_temperature_corrects_overconfidence(factor):
    table, _, _, fold, logits = labelled_items(n_items=300, labels_per_item=4)
    plain, scaled = started(table, fold, logits), started(table, fold, logits)
    plain.run(logits)
    scaled.run(factor * logits)
    assert scaled.temperature == pytest.approx(factor * plain.temperature, rel=0.15)


def test_gold_items_stay_certain():
    table, truth, _, fold, logits = labelled_items(labels_per_item=1)
    gold = UNKNOWN.copy()
    gold[:100] = truth[:100]
    em = started(table, fold, -logits, gold)
    em.run(torch.zeros_like(logits))
    np.testing.assert_array_equal(em.posterior[:100].argmax(1), truth[:100])
    assert torch.all(em.posterior[:100].max(1).values == 1)


def test_given_matrices_are_the_start():
    table, _, confusion, fold, _ = labelled_items()
    em = HeldOutEM(table, fold, UNKNOWN)
    em.set_matrices(torch.from_numpy(confusion))
    for k in range(5):
        np.testing.assert_allclose(em._held_out.view(5, 4, 3, 3)[k], confusion, rtol=1e-10)


def test_the_score_is_the_loss_per_label_at_the_best_temperature():
    table, _, confusion, fold, logits = labelled_items()
    em = HeldOutEM(table, fold, UNKNOWN)
    em.set_matrices(torch.from_numpy(confusion))
    losses = []
    for temperature in np.exp(np.linspace(-1.5, 1.5, 61)):
        scores = torch.log_softmax(logits / temperature, 1)
        for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
            scores[item] += torch.from_numpy(np.log(confusion[annotator, :, label]))
        losses.append(-float(torch.logsumexp(scores, 1).sum()) / table.n_labels)
    assert em.score(logits) == pytest.approx(min(losses), abs=1e-4)


def test_the_posterior_without_gold_ignores_gold_items():
    table, truth, _, fold, logits = labelled_items()
    gold = UNKNOWN.copy()
    n_classes = logits.shape[1]
    gold[:30] = (truth[:30] + 1) % n_classes
    em = started(table, fold, logits, gold)
    em.run(logits)
    assert np.all(em.posterior[:30].argmax(1).numpy() == gold[:30])
    unclamped = em.without_gold(logits)
    assert np.mean(unclamped[:30].argmax(1).numpy() == truth[:30]) > 0.7
    assert torch.allclose(unclamped[30:], em.posterior[30:], atol=0.02)
