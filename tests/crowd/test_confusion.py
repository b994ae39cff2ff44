import pytest
import torch
from batches import PARAMETRIZATIONS

from annotrace.crowd import Confusion
from annotrace.errors import InputError


def test_it_starts_as_in_the_papers_listing():
    rho = torch.log1p(torch.exp(6.0 * torch.eye(10) - 5.0))
    expected = rho / rho.sum(-1, keepdim=True)
    layer = Confusion(3, 10)
    torch.testing.assert_close(layer.matrices(), expected.expand(3, 10, 10))
    assert layer.matrices()[0, 0, 0].item() == pytest.approx(0.956, abs=5e-4)
    softmax = Confusion(3, 10, parametrization="softmax")
    assert softmax.matrices()[0, 0, 0].item() == pytest.approx(0.978, abs=5e-4)


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
@pytest.mark.parametrize("diagonal", [0.25, 0.3, 0.7, 0.999])
def test_it_starts_at_the_diagonal_asked_for(diagonal, parametrization):
    matrices = Confusion(2, 4, diagonal=diagonal, parametrization=parametrization).matrices()
    expected = torch.full((4, 4), (1 - diagonal) / 3).fill_diagonal_(diagonal)
    torch.testing.assert_close(matrices, expected.expand(2, 4, 4), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_likelihood_and_traces_are_those_of_the_matrices(parametrization, sparse):
    layer = Confusion(3, 4, parametrization=parametrization, sparse=sparse)
    layer.weight.data.normal_(std=3)
    annotator, label = torch.tensor([2, 0, 2]), torch.tensor([1, 3, 0])
    likelihood, traces = layer.log_likelihood_and_traces(annotator, label)
    torch.testing.assert_close(layer.log_likelihood(annotator, label), likelihood)
    for k in range(3):
        matrix = layer.matrices()[annotator[k]]
        torch.testing.assert_close(likelihood[k].exp(), matrix[:, label[k]])
        torch.testing.assert_close(traces[k], matrix.trace())


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_matrices_can_be_set(parametrization):
    wanted = torch.softmax(torch.randn(3, 4, 4) * 3, dim=-1)
    layer = Confusion(3, 4, parametrization=parametrization)
    layer.set_matrices(wanted)
    torch.testing.assert_close(layer.matrices(), wanted, rtol=1e-4, atol=1e-6)
    layer.set_matrices(torch.eye(4).expand(3, 4, 4))
    assert layer.log_matrices().isfinite().all()


def test_the_mean_trace_over_an_epoch_is_that_over_annotators_with_labels():
    torch.manual_seed(0)
    n_items, size = 12, 3
    row = torch.arange(n_items).repeat_interleave(torch.arange(n_items) % 4)
    annotator = torch.randint(4, row.shape)  # of five: the last has no label
    counts = torch.bincount(annotator, minlength=5)
    layer = Confusion(5, 3, sparse=True, frequency=counts / n_items)
    layer.weight.data.normal_(std=2)
    estimates = [
        layer.mean_trace(annotator[torch.isin(row, items)], size)
        for items in torch.randperm(n_items).split(size)
    ]
    traces = layer.matrices().diagonal(dim1=1, dim2=2).sum(1)
    torch.testing.assert_close(torch.stack(estimates).mean(), traces[counts > 0].mean())


def test_errors_name_the_rule_and_the_remedy():
    with pytest.raises(InputError, match="'softplus' or 'softmax', but got 'relu'"):
        Confusion(2, 3, parametrization="relu")
    with pytest.raises(InputError, match=r"at least 1 / n_classes and below 1, but got 0\.2"):
        Confusion(2, 3, diagonal=0.2)
    with pytest.raises(InputError, match="`n_annotators` to be"):
        Confusion(2.5, 3)
    with pytest.raises(InputError, match="`n_classes` to be"):
        Confusion(2, 1)
    sparse, one = Confusion(2, 3, sparse=True), torch.tensor([1])
    with pytest.raises(InputError, match="needs the batch"):
        sparse.mean_trace()
    with pytest.raises(InputError, match="needs `n_rows`"):
        sparse.mean_trace(one)
    with pytest.raises(InputError, match=r"give `Confusion\(..., frequency="):
        sparse.mean_trace(one, 1)
    with pytest.raises(InputError, match=r"`frequency` to be of shape \(2,\), but got \(3,\)"):
        Confusion(2, 3, sparse=True, frequency=torch.ones(3))


def test_a_pooled_layer_takes_given_matrices():
    torch.manual_seed(0)
    given = torch.rand(5, 3, 3).softmax(-1)
    layer = Confusion(5, 3, pooled=True)
    layer.set_matrices(given)
    torch.testing.assert_close(layer.matrices(), given)
    torch.testing.assert_close(layer.weight.mean(0), torch.zeros(3, 3), atol=1e-5, rtol=0)


def test_repr_names_the_parametrization():
    shown = "Confusion(2, 3, parametrization='softplus', sparse=True)"
    assert repr(Confusion(2, 3, sparse=True)) == shown


def test_the_papers_start_set_again_has_the_same_weights():
    layer = Confusion(2, 4)
    start = layer.weight.detach().clone()
    layer.set_matrices(layer.matrices())
    torch.testing.assert_close(layer.weight.detach(), start)


def test_an_annotator_without_labels_has_no_weight_in_the_mean_trace():
    layer = Confusion(3, 2, sparse=True, frequency=torch.tensor([0.5, 0.0, 0.25]))
    weights = layer.trace_weights(torch.tensor([0, 1, 2]), n_rows=4)
    torch.testing.assert_close(weights, torch.tensor([0.25, 0.0, 0.5]))


@pytest.mark.parametrize("changed", ["annotator", "label"])
def test_bytes_are_not_taken_for_masks(changed):
    layer = Confusion(2, 3, sparse=True)
    given = {"annotator": torch.tensor([0, 1]), "label": torch.tensor([2, 1])}
    given[changed] = given[changed].byte()
    with pytest.raises(InputError, match=f"{changed} to be of int64 or int32"):
        layer.log_likelihood(**given)
