import numpy as np
import pytest
import torch

from annotrace.labels import LabelTable
from annotrace.methods.held_out_em import MAX_DOUBTFUL, HeldOutEM
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


def held_out_matrices(em):
    return em.held_out_model().log.exp().view(5, 4, 3, 3)


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
        np.testing.assert_allclose(held_out_matrices(em)[k], expected, rtol=1e-10)


def test_the_labels_of_a_fold_do_not_change_the_model_that_judges_it(monkeypatch):
    # What all folds share is fixed: priors and the temperature.
    module = "annotrace.methods.held_out_em."
    monkeypatch.setattr(module + "N_ITER", 1)
    monkeypatch.setattr(module + "update_pool", lambda counts, prior: prior)
    monkeypatch.setattr(module + "fit_temperature", lambda *given: (1.0, 0.0))
    monkeypatch.setattr(module + "minimum_gain", lambda n_labels: -np.inf)
    table, _, confusion, fold, logits = labelled_items()
    label = np.where(fold[table.item] == 2, (table.label + 1) % 3, table.label)
    other = LabelTable.from_codes(
        table.item, table.annotator, label, n_items=300, n_annotators=4, n_classes=3
    )
    judges = []
    for labels in (table, other):
        em = HeldOutEM(labels, fold, UNKNOWN)
        em.set_matrices(torch.from_numpy(confusion))
        em.run(logits)
        judges.append(em.held_out_model())
    for name in ("log", "log_guesses"):
        one, two = (getattr(judge, name).unflatten(0, (5, 4)) for judge in judges)
        torch.testing.assert_close(one[2], two[2], rtol=1e-12, atol=0)
        assert not torch.allclose(one[1], two[1])


def test_the_posterior_is_classifier_times_likelihood_of_the_labels(monkeypatch):
    monkeypatch.setattr("annotrace.methods.held_out_em.N_ITER", 1)
    table, _, _, fold, logits = labelled_items()
    em = started(table, fold, logits)
    matrices = held_out_matrices(em)
    em.run(logits)
    scores = torch.log_softmax(logits / em.temperature, 1)
    for item, annotator, label in zip(table.item, table.annotator, table.label, strict=True):
        scores[item] += matrices[fold[item], annotator, :, label].log()
    np.testing.assert_allclose(em.posterior, torch.softmax(scores, 1), rtol=1e-10)


def guessing_panel(doubtful, n_items=600, seed=0):
    """Six annotators who are right nine times in ten, and on doubtful items mostly guess 0."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_items)
    right = rng.random((n_items, 6)) < 0.9
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    guessed = (rng.random(n_items) < doubtful)[:, None] & (rng.random((n_items, 6)) < 0.8)
    label = np.where(guessed, (rng.random((n_items, 6)) < 0.1).astype(int), label)
    logits = torch.from_numpy(1.5 * np.eye(2)[truth] + 0.5 * rng.normal(size=(n_items, 2)))
    return LabelTable.from_wide(label), truth, np.arange(n_items) % 5, logits


def run_panel(doubtful):
    table, truth, fold, logits = guessing_panel(doubtful)
    em = HeldOutEM(table, fold, np.full(600, -1, np.int32))
    em.count_matrices(em.posterior)
    em.run(logits)
    return em, np.mean(em.posterior.argmax(1).numpy() == truth)


def test_doubtful_items_are_found_where_they_explain_labels():
    em, accuracy = run_panel(0.08)
    model = em.held_out_model()
    assert float(model.doubtful) > 0.03
    assert model.log_guesses.exp()[:, 0, 0].min() > 0.75
    assert accuracy > 0.98


def test_all_items_are_clear_where_doubt_explains_no_more():
    em, accuracy = run_panel(0.0)
    assert float(em.held_out_model().doubtful) == 0
    assert accuracy > 0.98


def test_the_share_of_doubtful_items_is_limited():
    em, _ = run_panel(0.6)
    assert float(em.held_out_model().doubtful) == pytest.approx(MAX_DOUBTFUL)


def copying_annotators(shared, n_items=900):
    """Four annotators who give, with some probability, the answer of one source."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, n_items)
    right = rng.random((n_items, 5)) < 0.7
    answers = np.where(right, truth[:, None], rng.integers(0, 3, (n_items, 5)))
    copied = rng.random((n_items, 4)) < shared
    table = LabelTable.from_wide(np.where(copied, answers[:, 4:], answers[:, :4]))
    logits = torch.from_numpy(1.5 * np.eye(3)[truth] + 0.5 * rng.normal(size=(n_items, 3)))
    em = started(table, np.arange(n_items) % 5, logits, np.full(n_items, -1, np.int32))
    em.run(logits)
    return em, truth, logits


def test_shared_errors_discount_labels_and_not_the_classifier():
    em, truth, logits = copying_annotators(0.9)
    before = em.posterior
    model = em.discount(logits)
    assert model.correlation > 0.1
    by_classifier = torch.log_softmax(logits / em.temperature, 1)
    evidence = before.log() - by_classifier
    log_joint = by_classifier + evidence / (1 + 3 * model.correlation)
    # Up to the last M-step of `run`.
    np.testing.assert_allclose(em.posterior, torch.softmax(log_joint, 1), atol=1e-3)
    confidence = [each.max(1).values.mean() for each in (before, em.posterior)]
    accuracy = np.mean(em.posterior.argmax(1).numpy() == truth)
    assert accuracy < confidence[1] < confidence[0]


def test_independent_errors_are_hardly_discounted():
    em, _, logits = copying_annotators(0.0)
    assert em.discount(logits).correlation < 0.1


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
        np.testing.assert_allclose(held_out_matrices(em)[k], confusion, rtol=1e-10)


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
