import numpy as np
import pytest
import torch

from annotrace.crowd.annotator_network import AnnotatorNetwork, Interaction
from annotrace.errors import InputError

N_ANNOTATORS, N_CLASSES, N_ITEMS, EMBED, ITEM_SIZE = 5, 3, 7, 4, 6


def random_model(by_item=True, **params):
    """Return a model all of whose weights, and the embeddings of items, are random."""
    if by_item:
        params |= {"hidden": Interaction(EMBED, ITEM_SIZE, width=8)}
        params |= {"n_items": N_ITEMS, "item_size": ITEM_SIZE}
    model = AnnotatorNetwork(N_ANNOTATORS, N_CLASSES, embed_size=EMBED, **params)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    embedding = torch.randn(N_ITEMS, ITEM_SIZE, generator=generator)
    if by_item:
        model.embed_items(torch.arange(N_ITEMS), embedding)
    return model


def matrices_by_hand(model, annotator, item):
    """The matrix of an annotator and an item, in numpy, from the formula."""
    w = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def norm(x, name):
        scaled = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    a = w["embedding"][annotator]
    x = w["hidden.embed_item.weight"] @ w["item_embedding"][item] + w["hidden.embed_item.bias"]
    product = [(a + x) @ matrix @ (a + x) for matrix in w["hidden.product.weight"]]
    hidden = np.concatenate([a, x, product])
    hidden = w["hidden.layers.0.weight"] @ hidden + w["hidden.layers.0.bias"]
    hidden = np.maximum(norm(hidden, "hidden.layers.1"), 0)
    hidden = w["hidden.layers.3.weight"] @ hidden + w["hidden.layers.3.bias"]
    hidden = np.maximum(a + norm(hidden, "hidden.layers.4"), 0)
    cells = np.exp(w["output.weight"] @ hidden + w["output.bias"]).reshape(N_CLASSES, N_CLASSES)
    return cells / cells.sum(axis=1, keepdims=True)


def test_matrices_follow_the_formula():
    model = random_model()
    annotator, label, item = torch.tensor([[0, 4, 2], [1, 0, 2], [6, 0, 3]])
    found = model.log_likelihood(annotator, label, item).exp().detach().numpy()
    for row, (r, j, n) in enumerate(zip(annotator, label, item, strict=True)):
        np.testing.assert_allclose(found[row], matrices_by_hand(model, r, n)[:, j], rtol=1e-3)


def test_without_items_matrices_are_the_mean_over_items():
    model = random_model()
    mean = np.mean(
        [[matrices_by_hand(model, r, n) for r in range(N_ANNOTATORS)] for n in range(N_ITEMS)],
        axis=0,
    )
    np.testing.assert_allclose(model.matrices().numpy(), mean, rtol=1e-3, atol=1e-6)
    some = model.matrices(torch.tensor([3]), torch.tensor([1, 5]))[0].numpy()
    by_hand = [matrices_by_hand(model, 3, n) for n in (1, 5)]
    np.testing.assert_allclose(some, np.mean(by_hand, axis=0), rtol=1e-3, atol=1e-6)
    annotator, label = torch.tensor([[4, 2], [0, 1]])
    found = model.log_likelihood(annotator, label).exp().detach().numpy()
    np.testing.assert_allclose(found, [mean[4, :, 0], mean[2, :, 1]], rtol=1e-3)


@pytest.mark.parametrize("n_labels", [2, 30], ids=["few labels", "many labels"])
def test_without_items_in_the_model_labels_select_cells_of_the_matrices(n_labels):
    model = random_model(by_item=False)
    annotator, label = torch.arange(n_labels) % N_ANNOTATORS, torch.arange(n_labels) % N_CLASSES
    likelihood = model.log_likelihood(annotator, label, item=torch.zeros_like(label)).exp()
    torch.testing.assert_close(likelihood, model.matrices()[annotator, :, label])
    weight, bias = model.output.weight.detach().numpy(), model.output.bias.detach().numpy()
    logits = (weight @ model.embedding[1].detach().numpy() + bias).reshape(N_CLASSES, N_CLASSES)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.matrices(torch.tensor([1]))[0], expected, rtol=1e-4)


@pytest.mark.parametrize("form", ["full", "diagonal", "isotropic"])
def test_matrices_start_with_the_diagonal(form):
    model = AnnotatorNetwork(400, N_CLASSES, form=form, diagonal=0.7)
    start = 0.7 * np.eye(N_CLASSES) + 0.15 * (1 - np.eye(N_CLASSES))
    # Embeddings of many annotators are near 0, where only the bias counts.
    np.testing.assert_allclose(model.matrices().mean(0).numpy(), start, atol=0.01)
    torch.testing.assert_close(model.matrices().sum(2), torch.ones(400, N_CLASSES))
    wrong = model.matrices()[0][~torch.eye(N_CLASSES, dtype=torch.bool)]
    assert form == "full" or torch.allclose(wrong.view(N_CLASSES, 2).diff(dim=1), torch.zeros(1))


@pytest.mark.parametrize("form", ["full", "diagonal", "isotropic"])
def test_it_starts_from_the_mean_of_given_matrices(form):
    given = torch.tensor([0.5, 0.9]).repeat(N_ANNOTATORS * 2)[:N_ANNOTATORS, None, None]
    eye = torch.eye(N_CLASSES)
    given = given * eye + (1 - given) / 2 * (1 - eye)
    model = AnnotatorNetwork(N_ANNOTATORS, N_CLASSES, form=form)
    model.embedding.data.zero_()
    model.set_matrices(given)
    torch.testing.assert_close(model.matrices()[3], given.mean(0), atol=1e-4, rtol=0)


def test_extreme_embeddings_have_finite_gradients():
    model = random_model()
    model.item_embedding *= 1e4
    model.embedding.data *= 1e3
    annotator, label, item = torch.tensor([[0, 4, 2], [1, 0, 2], [6, 0, 3]])
    likelihood = model.log_likelihood(annotator, label, item)
    likelihood.sum().backward()
    assert torch.isfinite(likelihood).all()
    assert all(torch.isfinite(each.grad).all() for each in model.parameters())


@pytest.mark.parametrize("diagonal", [0.1, 1.0])
def test_the_diagonal_is_checked(diagonal):
    with pytest.raises(InputError, match="at least 1 / n_classes and below 1"):
        AnnotatorNetwork(2, 3, diagonal=diagonal)
