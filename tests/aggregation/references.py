"""Plain references, written apart from the library: loops and dense arrays, slow and obvious."""

import warnings
from itertools import product

import numpy as np
from scipy.special import digamma
from sklearn.exceptions import ConvergenceWarning


def random_table(rng, n_items=30, n_annotators=6, n_classes=3, labels_each=4, skill=0.7):
    """Labels of annotators who are correct with a skill and guess otherwise; every class occurs."""
    truth = rng.integers(n_classes, size=n_items)
    truth[:n_classes] = np.arange(n_classes)
    item = np.repeat(np.arange(n_items), labels_each)
    annotator = np.concatenate(
        [rng.choice(n_annotators, labels_each, replace=False) for _ in range(n_items)]
    )
    guess = rng.integers(n_classes, size=len(item))
    label = np.where(rng.random(len(item)) < skill, truth[item], guess)
    return item, annotator, label, truth


def brute_force_posterior(item, annotator, label, confusion, prior, n_items):
    """Sum the joint probability over every assignment of classes to items."""
    n_classes = len(prior)
    mass = np.zeros((n_items, n_classes))
    evidence = 0.0
    for classes in product(range(n_classes), repeat=n_items):
        joint = np.prod(prior[list(classes)])
        for i, r, j in zip(item, annotator, label, strict=True):
            joint *= confusion[r, classes[i], j]
        evidence += joint
        mass[np.arange(n_items), classes] += joint
    return mass / evidence, np.log(evidence)


def vote_shares(item, label, n_items, n_classes):
    shares = np.zeros((n_items, n_classes))
    for i, j in zip(item, label, strict=True):
        shares[i, j] += 1
    return shares / shares.sum(1, keepdims=True)


def dawid_skene(item, annotator, label, sizes, iterations, smoothing, one_coin=False):
    """EM label by label, from vote shares; returns posterior, confusion, prior."""
    n_items, n_annotators, n_classes = sizes
    posterior = vote_shares(item, label, n_items, n_classes)
    for _ in range(iterations):
        counts = np.full((n_annotators, n_classes, n_classes), smoothing)
        for i, r, j in zip(item, annotator, label, strict=True):
            counts[r, :, j] += posterior[i]
        confusion = counts / counts.sum(2, keepdims=True)
        if one_coin:
            for r in range(n_annotators):
                right = np.trace(counts[r]) / counts[r].sum()
                confusion[r] = (1 - right) / (n_classes - 1)
                np.fill_diagonal(confusion[r], right)
        prior = posterior.mean(0)
        posterior = np.tile(prior, (n_items, 1))
        for i, r, j in zip(item, annotator, label, strict=True):
            posterior[i] *= confusion[r, :, j]
        posterior /= posterior.sum(1, keepdims=True)
    return posterior, confusion, prior


def mace(item, annotator, label, sizes, iterations, knowing, guessing, first_known):
    """Variational Bayes label by label; returns posterior, and how probable knowing is."""
    n_items, n_annotators, n_classes = sizes
    posterior = vote_shares(item, label, n_items, n_classes)
    known = np.full((n_annotators, n_classes), first_known)
    for _ in range(iterations):
        coin = np.full((n_annotators, 2), float(knowing))
        habit = np.full((n_annotators, n_classes), float(guessing))
        for i, r, j in zip(item, annotator, label, strict=True):
            share = posterior[i, j] * known[r, j]
            coin[r] += [share, 1 - share]
            habit[r, j] += 1 - share
        log_coin = digamma(coin) - digamma(coin.sum(1, keepdims=True))
        log_habit = digamma(habit) - digamma(habit.sum(1, keepdims=True))
        guessed = np.exp(log_coin[:, 1:] + log_habit)
        right = guessed + np.exp(log_coin[:, :1])
        known = np.exp(log_coin[:, :1]) / right
        posterior = np.full((n_items, n_classes), 1 / n_classes)
        for i, r, j in zip(item, annotator, label, strict=True):
            for k in range(n_classes):
                posterior[i, k] *= right[r, j] if j == k else guessed[r, j]
        posterior /= posterior.sum(1, keepdims=True)
    return posterior, coin[:, 0] / coin.sum(1)


def glad_objective(item, annotator, label, ability, log_ease, n_classes):
    """Log likelihood plus log prior of GLAD, and the posterior, item by item."""
    total = -((ability - 1) ** 2).sum() / 2 - ((log_ease - 1) ** 2).sum() / 2
    posterior = np.zeros((len(log_ease), n_classes))
    for i in range(len(log_ease)):
        joint = np.full(n_classes, 1 / n_classes)
        for r, j in zip(annotator[item == i], label[item == i], strict=True):
            right = 1 / (1 + np.exp(-ability[r] * np.exp(log_ease[i])))
            for k in range(n_classes):
                joint[k] *= right if j == k else (1 - right) / (n_classes - 1)
        total += np.log(joint.sum())
        posterior[i] = joint / joint.sum()
    return total, posterior


def mean_diagonal(model):
    """The mean over classes of the probability of a correct label, (n_annotators,)."""
    return np.diagonal(model.confusion_, axis1=1, axis2=2).mean(1)


def fit_quietly(model, table, **given):
    """Fit without a warning where iterations run out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(table, **given)


def leading(votes):
    """One for the class with the most votes, shared among those that tie."""
    highest = votes >= votes.max(1, keepdims=True) - 1e-9
    return highest / highest.sum(1, keepdims=True)


def agreement(item, annotator, label, chosen, n_annotators, n_classes, smoothing=0.01):
    """The smoothed share of each annotator's labels that agree with the chosen class."""
    skill = np.zeros(n_annotators)
    for r in range(n_annotators):
        mine = annotator == r
        agreed = chosen[item[mine], label[mine]].sum() + smoothing * n_classes
        skill[r] = agreed / (mine.sum() + smoothing * n_classes**2)
    return skill
