import numpy as np
import pytest
import torch
from crowds import blobs

import annotrace as at
from annotrace.methods.annot_mix import AnnotMix
from annotrace.training import Batch, Mixture

ITEM, ANNOTATOR, LABEL = [0, 0, 1, 2], [0, 1, 1, 2], [0, 1, 2, 2]
PARTNER, WEIGHT = [2, 0, 3, 1], 0.3


def built(gold=None, **params):
    """Return an estimator whose network is linear, with random weights, without a fit."""
    model = AnnotMix(embed_size=4, **params)
    model.table_ = at.LabelTable.from_codes(ITEM, ANNOTATOR, LABEL, n_classes=3)
    model._gold = None if gold is None else torch.tensor(gold)
    model._build_modules(torch.device("cpu"))
    model.network_ = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, model._n_outputs()))
    generator = torch.Generator().manual_seed(0)
    for module in (model.annotator_model_, model.network_):
        for parameter in module.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)
    return model


def batch():
    inputs = torch.tensor([[1.0, -1.0], [0.5, 2.0], [-1.0, 0.3]])
    row, annotator, label = (torch.tensor(part) for part in (ITEM, ANNOTATOR, LABEL))
    return Batch(inputs, torch.arange(3), row, annotator, label)


def softmax(logits):
    cells = np.exp(logits)
    return cells / cells.sum(axis=-1, keepdims=True)


def loss_by_hand(model, truth=None):
    """The loss of the mixtures, label by label; `truth` is the classes of mixtures, if known."""
    w = {
        name: value.double().numpy() for name, value in model.annotator_model_.state_dict().items()
    }
    layer = model.network_[1]
    slope, constant = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    X, total = batch().inputs.double().numpy(), 0.0
    for own, other in enumerate(PARTNER):
        x = WEIGHT * X[ITEM[own]] + (1 - WEIGHT) * X[ITEM[other]]
        a = WEIGHT * w["embedding"][ANNOTATOR[own]]
        a = a + (1 - WEIGHT) * w["embedding"][ANNOTATOR[other]]
        y = WEIGHT * np.eye(3)[LABEL[own]] + (1 - WEIGHT) * np.eye(3)[LABEL[other]]
        outputs = slope @ x + constant
        inputs = np.concatenate([a, outputs[3:]])
        hidden = w["hidden.linear.weight"] @ inputs + w["hidden.linear.bias"]
        hidden = (hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-5)
        hidden = np.maximum(hidden * w["hidden.norm.weight"] + w["hidden.norm.bias"], 0)
        matrix = softmax((w["output.weight"] @ hidden + w["output.bias"]).reshape(3, 3))
        classes = softmax(outputs[:3]) if truth is None or truth[own] is None else truth[own]
        total -= y @ np.log(classes @ matrix) / len(PARTNER)
    return total


@pytest.mark.parametrize("by_item", [False, True])
def test_the_loss_mixes_items_annotators_and_labels(by_item):
    model = built(by_item=by_item)
    mixture = Mixture(torch.tensor(WEIGHT), torch.tensor(PARTNER))
    found = model._mixture_loss(batch(), mixture).item()
    assert found == pytest.approx(loss_by_hand(model), rel=1e-4)


def test_mixtures_of_two_gold_items_have_their_classes():
    # Labels 1 and 3 are of gold items and mixed; the partners of the others are not both gold.
    model = built(gold=[1, -1, 2])
    mixture = Mixture(torch.tensor(WEIGHT), torch.tensor(PARTNER))
    both = WEIGHT * np.eye(3)[2] + (1 - WEIGHT) * np.eye(3)[1]
    expected = loss_by_hand(model, [None, np.eye(3)[1], None, both])
    assert model._mixture_loss(batch(), mixture).item() == pytest.approx(expected, rel=1e-4)


def test_it_learns_annotators_and_is_restored(tmp_path):
    train, test = at.data.load_digits().split(500)
    crowd = at.simulate.pairwise_flippers(5, 10, 0.6, random_state=0)
    table = at.simulate.simulate_labels(train.y, crowd, labels_per_item=2, random_state=0)
    model = at.make("annot-mix", random_state=0).fit(train.X, table)
    assert model.score(test.X, test.y) > 0.85
    assert at.diagnosis.confusion_error(model.confusion_, crowd) < 0.1
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert np.array_equal(loaded.predict_proba(test.X), model.predict_proba(test.X))
    assert np.array_equal(loaded.confusion_, model.confusion_)


@pytest.mark.parametrize("recipe", ["none", "default"])
@pytest.mark.parametrize("by_item", [False, True])
def test_images(recipe, by_item):
    X, truth, table, _ = blobs(n_items=90)
    images = np.repeat(np.repeat(X[:, :, None], 4, 2), 2, 1)
    model = at.make(
        "annot-mix",
        epochs=20,
        lr=1e-2,
        recipe=recipe,
        by_item=by_item,
        augment="none",
        random_state=0,
    ).fit(images, table)
    assert np.mean(model.posterior_.argmax(1) == truth) > 0.6


def test_mixtures_are_off_with_alpha_0_and_as_the_recipe_says():
    X, _, table, _ = blobs(n_items=60)
    proba = [
        at.make("annot-mix", epochs=3, random_state=0, **params).fit(X, table).predict_proba(X)
        for params in (
            {"alpha": 0.0},
            {"recipe": at.Recipe(n_init=1, mixup=0.0, repair=False, calibrate=False)},
            {"alpha": 1.0},
            {"recipe": at.Recipe(n_init=1, mixup=1.0, repair=False, calibrate=False)},
        )
    ]
    np.testing.assert_array_equal(proba[0], proba[1])
    np.testing.assert_array_equal(proba[2], proba[3])
    assert not np.array_equal(proba[0], proba[2])
