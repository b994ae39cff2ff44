import pytest
import torch

from annotrace.crowd import AnnotatorModel, Confusion, FixedMatrices, LabelIndex
from annotrace.errors import InputError


class PlainModel(AnnotatorModel):
    """No more than a structure must define: everything else is inherited."""

    def __init__(self, matrices):
        super().__init__()
        self.n_annotators, self.n_classes = matrices.shape[:2]
        self.log = torch.nn.Parameter(matrices.log())

    def log_likelihood(self, annotator, label, item=None):
        return self.log[annotator, :, label]

    def matrices(self, annotators=None, items=None):
        return (
            self.log.detach().exp() if annotators is None else self.log.detach().exp()[annotators]
        )


@pytest.fixture
def matrices():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(4, 3, 3, generator=generator).mul(2).softmax(-1).double()


@pytest.fixture
def labels():
    row, annotator, label = torch.tensor([[0, 0, 2, 2, 2], [0, 3, 1, 1, 2], [2, 1, 0, 0, 1]])
    return LabelIndex(row, annotator, label, n_rows=3, n_annotators=4, n_classes=3)


def test_labels_of_an_item_are_independent_given_its_class_by_default(matrices, labels):
    expected = torch.zeros(3, 3, dtype=torch.float64)
    for row, annotator, label in zip(labels.row, labels.annotator, labels.label, strict=True):
        expected[row] += matrices[annotator, :, label].log()
    for model in (PlainModel(matrices), FixedMatrices(matrices)):
        torch.testing.assert_close(model.item_log_likelihood(labels).detach(), expected)


def test_a_model_is_asked_about_items_not_rows(matrices):
    seen = []

    class Recorded(PlainModel):
        def log_likelihood(self, annotator, label, item=None):
            seen.append(item.tolist())
            return super().log_likelihood(annotator, label, item)

    row, annotator, label = torch.tensor([[0, 1, 1], [0, 1, 2], [0, 0, 1]])
    labels = LabelIndex(row, annotator, label, 2, 4, 3, item=torch.tensor([7, 5]))
    Recorded(matrices).item_log_likelihood(labels)
    assert seen == [[7, 5, 5]]


def test_the_mean_trace_is_that_of_the_matrices_and_has_a_gradient(matrices):
    model = PlainModel(matrices)
    trace = model.mean_trace()
    expected = matrices.diagonal(dim1=1, dim2=2).sum(1).mean()
    torch.testing.assert_close(trace.detach(), expected)
    trace.backward()
    off_diagonal = ~torch.eye(3, dtype=torch.bool)
    torch.testing.assert_close(
        model.log.grad.diagonal(dim1=1, dim2=2), matrices.diagonal(dim1=1, dim2=2) / 4
    )
    assert not model.log.grad[:, off_diagonal].any()


@pytest.mark.parametrize("kind", [FixedMatrices, PlainModel])
def test_matrices_of_some_annotators(kind, matrices):
    some = torch.tensor([3, 0])
    torch.testing.assert_close(kind(matrices).matrices(some), matrices[some])


def test_fixed_matrices_have_logarithms_even_of_zeros():
    model = FixedMatrices(torch.eye(3).expand(2, 3, 3))
    assert model.log_matrices().isfinite().all()
    torch.testing.assert_close(model.matrices(), torch.eye(3).expand(2, 3, 3))
    assert not list(model.parameters())


def test_fixed_matrices_can_be_replaced(matrices):
    model = FixedMatrices.uniform(4, 3)
    torch.testing.assert_close(model.matrices(), torch.full((4, 3, 3), 1 / 3))
    model.set_matrices(matrices)
    torch.testing.assert_close(model.matrices(), matrices.float())
    assert model.device == torch.device("cpu")


def test_wrong_shapes_are_rejected():
    for model in (Confusion(2, 3), FixedMatrices.uniform(2, 3)):
        with pytest.raises(InputError, match=r"`matrices` to be of shape \(2, 3, 3\), but got"):
            model.set_matrices(torch.eye(3))


def test_indices_are_integers():
    one = torch.tensor([1])
    for model in (Confusion(2, 3), Confusion(2, 3, sparse=True), FixedMatrices.uniform(2, 3)):
        with pytest.raises(
            InputError, match=r"label to be of int64 or int32, but got torch\.uint8"
        ):
            model.log_likelihood(one, one.byte())
