"""A new structure of annotator models needs its own class and one entry, and no other file.

Two toys go through the whole library: errors that depend on the item, and errors of low rank.
Neither has a parameter of shape (n_annotators, n_classes, n_classes).
"""

import numpy as np
import pytest
import torch
from crowds import blobs
from torch import nn

import annotrace as at
from annotrace.crowd import STRUCTURES, AnnotatorModel, Confusion
from annotrace.registry import Entry

N_ITEMS = 150
EPOCHS = 25


class HardItems(AnnotatorModel):
    """Annotators guess on hard items: p = (1 - h) (a skill per annotator and class) + h / C."""

    lr_scale = 30.0

    def __init__(self, n_annotators, n_classes, *, n_items, **_):
        super().__init__()
        self.n_annotators, self.n_classes = n_annotators, n_classes
        self.skill = nn.Parameter(torch.full((n_annotators, n_classes), 1.0))
        self.hardness = nn.Parameter(torch.full((n_items,), -2.0))

    def log_likelihood(self, annotator, label, item=None):
        hard = torch.sigmoid(self.hardness)
        hard = hard.mean() if item is None else hard[item][:, None]
        skill = torch.sigmoid(self.skill[annotator])
        same = nn.functional.one_hot(label.long(), self.n_classes).bool()
        careful = torch.where(same, skill, (1 - skill) / (self.n_classes - 1))
        return ((1 - hard) * careful + hard / self.n_classes).log()

    @torch.no_grad()
    def matrices(self, annotators=None, items=None):
        hard = torch.sigmoid(self.hardness)
        hard = (hard if items is None else hard[items]).mean()
        skill = torch.sigmoid(self.skill if annotators is None else self.skill[annotators])
        same = torch.eye(self.n_classes, dtype=torch.bool, device=skill.device)
        wrong = (1 - skill[:, :, None]) / (self.n_classes - 1)
        careful = torch.where(same, skill[:, :, None], wrong)
        return (1 - hard) * careful + hard / self.n_classes


class LowRank(AnnotatorModel):
    """The identity mixed with errors of rank one: annotator r errs towards its own favourites."""

    lr_scale = 30.0

    def __init__(self, n_annotators, n_classes, **_):
        super().__init__()
        self.n_annotators, self.n_classes = n_annotators, n_classes
        self.care = nn.Parameter(torch.full((n_annotators, n_classes), 1.0))
        self.favourites = nn.Parameter(torch.zeros(n_annotators, n_classes))

    def log_likelihood(self, annotator, label, item=None):
        return self._matrices(annotator)[torch.arange(len(label)), :, label].log()

    def matrices(self, annotators=None, items=None):
        everyone = torch.arange(self.n_annotators, device=self.care.device)
        return self._matrices(everyone if annotators is None else annotators).detach()

    def _matrices(self, annotators):
        care = torch.sigmoid(self.care[annotators])[:, :, None]
        favourites = self.favourites[annotators].softmax(1)[:, None]
        return care * torch.eye(self.n_classes, device=care.device) + (1 - care) * favourites


TOYS = {"hard-items": HardItems, "low-rank": LowRank}


@pytest.fixture(params=TOYS)
def structure(request, monkeypatch):
    """The name of a toy, registered for one test."""
    name = request.param
    STRUCTURES.register(Entry(name, TOYS[name], "a toy"))
    yield name
    monkeypatch.delitem(STRUCTURES._entries, name)


def fitted(structure, X, table, **params):
    recipe = at.Recipe(n_init=1, mixup=0.0)
    model = at.TraceRegularized(
        structure=structure, recipe=recipe, epochs=EPOCHS, random_state=0, **params
    )
    return model.fit(X, table)


@pytest.fixture
def crowd():
    return blobs(n_items=N_ITEMS, labels_per_item=3)


def test_the_built_in_structures_are_listed():
    assert list(STRUCTURES)[:2] == ["full", "pooled"]
    pooled = STRUCTURES.make("pooled", 3, 2, n_items=9, diagonal=0.8)
    assert isinstance(pooled, Confusion)
    assert pooled.shared is not None


@pytest.mark.parametrize("kind", TOYS.values())
def test_matrices_are_the_likelihoods_averaged_over_items(kind):
    model = kind(4, 3, n_items=N_ITEMS)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    matrices = model.matrices()
    torch.testing.assert_close(matrices.sum(2), torch.ones(4, 3))
    items = torch.arange(N_ITEMS)
    for annotator, label in ((0, 1), (3, 2)):
        given = torch.full((N_ITEMS,), annotator), torch.full((N_ITEMS,), label)
        by_item = model.log_likelihood(*given, items).exp().mean(0)
        torch.testing.assert_close(by_item, matrices[annotator, :, label])
    torch.testing.assert_close(model.matrices(torch.tensor([2])), matrices[2:3])
    trace = matrices.diagonal(dim1=1, dim2=2).sum(1).mean()
    torch.testing.assert_close(model.mean_trace().detach(), trace)


def test_a_registered_structure_is_fitted_and_diagnosed(structure, crowd):
    X, truth, table, _ = crowd
    model = fitted(structure, X, table)
    assert type(model.annotator_model_) is TOYS[structure]
    assert model.chosen_["structure"] == structure
    assert model.score(X, truth) > 0.9
    np.testing.assert_allclose(model.posterior_.sum(1), 1, atol=1e-6)
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.9
    assert model.confusion_.shape == (6, 3, 3)
    np.testing.assert_allclose(model.confusion_, model.annotator_model_.matrices(), atol=1e-6)
    frame = model.annotators_
    assert frame["annotator"].to_list() == list(range(6))
    low, skill, high = (frame[name].to_numpy() for name in ("low", "skill", "high"))
    assert np.all((low <= skill) & (skill <= high))
    np.testing.assert_allclose(skill, model.skill_)
    assert model.confidence_.shape == (N_ITEMS,)
    assert model.diagnosis_.verdict in ("identified", "weak", "not identified")


def test_the_posterior_uses_what_the_structure_knows_of_items(structure, crowd):
    X, _, table, _ = crowd
    model = fitted(structure, X, table)
    codes = [torch.from_numpy(part.astype(np.int64)) for part in (table.annotator, table.label)]
    item = torch.from_numpy(table.item.astype(np.int64))
    with torch.no_grad():
        logs = model.annotator_model_.log_likelihood(*codes, item).double().numpy()
    joint = np.log(model.predict_proba(X))
    np.add.at(joint, table.item, logs)
    expected = np.exp(joint - joint.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(model.posterior_, expected, atol=1e-5)


def test_a_registered_structure_is_saved_and_loaded(structure, crowd, tmp_path):
    X, _, table, _ = crowd
    model = fitted(structure, X, table)
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    assert type(loaded.annotator_model_) is TOYS[structure]
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)
    np.testing.assert_array_equal(loaded.confusion_, model.confusion_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(loaded.skill_, model.skill_)
    loaded.set_params(warm_start=True, epochs=2).fit(X, table)
    assert type(loaded.annotator_model_) is TOYS[structure]


def test_new_items_and_gold_work_with_a_registered_structure(structure, crowd):
    X, truth, table, _ = crowd
    model = fitted(structure, X, table)
    few = at.LabelTable.from_codes([0, 1], [2, 9], [1, 0], n_items=2, n_annotators=10, n_classes=3)
    np.testing.assert_allclose(model.posterior(X[:2], few).sum(1), 1)
    gold = {item: int(truth[item]) for item in range(20)}
    model.fit(X, table, gold=gold)
    np.testing.assert_array_equal(model.posterior_[:20].argmax(1), truth[:20])


def test_a_registered_structure_has_a_report_and_an_allocation(structure, crowd, tmp_path):
    X, _, table, _ = crowd
    model = fitted(structure, X, table)
    at.write_report(model, tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text()
    plan = at.allocate(model, 5)
    assert len(plan) == 5
