import numpy as np
import pytest
import torch

from annotrace.crowd.dependent_annotators import DependentAnnotators, design_effect
from annotrace.crowd.label_index import LabelIndex
from annotrace.errors import InputError
from annotrace.labels import LabelTable

MATRICES = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]])
GUESSES = np.array([[[0.8, 0.2]], [[0.5, 0.5]]])
GUESS_RATE, DOUBTFUL = 0.4, 0.25


def dependent_annotators(correlation=0.0):
    rates = torch.tensor([GUESS_RATE, DOUBTFUL], dtype=torch.float64)
    return DependentAnnotators(
        torch.from_numpy(MATRICES), torch.from_numpy(GUESSES), *rates, correlation
    )


def test_the_likelihood_of_an_item_is_summed_over_clear_and_doubtful():
    table = LabelTable.from_codes(item=[0, 0, 1], annotator=[0, 1, 1], label=[1, 0, 1])
    found = dependent_annotators().item_log_likelihood(LabelIndex.from_table(table)).exp()
    doubtful = (1 - GUESS_RATE) * MATRICES + GUESS_RATE * GUESSES
    of_two = (1 - DOUBTFUL) * MATRICES[0, :, 1] * MATRICES[1, :, 0]
    of_two += DOUBTFUL * doubtful[0, :, 1] * doubtful[1, :, 0]
    of_one = (1 - DOUBTFUL) * MATRICES[1, :, 1] + DOUBTFUL * doubtful[1, :, 1]
    np.testing.assert_allclose(found, [of_two, of_one])


def test_the_evidence_of_several_labels_is_divided_by_the_design_effect():
    table = LabelTable.from_codes(item=[0, 0, 0, 1], annotator=[0, 1, 1, 1], label=[1, 0, 0, 1])
    labels = LabelIndex.from_table(table)
    plain, shared = dependent_annotators(0.0), dependent_annotators(0.25)
    effect = torch.tensor([[1.5], [1.0]])
    likelihood = plain.item_log_likelihood(labels) / effect
    torch.testing.assert_close(shared.item_log_likelihood(labels), likelihood)
    states = (model.state_log_likelihood(labels).view(2, 2, 2) for model in (plain, shared))
    one, two = (state.softmax(1) for state in states)
    torch.testing.assert_close(one, two)


def test_votes_without_correlation_and_single_votes_count_in_full():
    assert design_effect(0.5, np.array([0, 1, 2, 5])).tolist() == [1, 1, 1.5, 3]
    assert design_effect(0.0, torch.tensor([3.0])).item() == 1


def test_matrices_are_averaged_over_clear_and_doubtful_items():
    model = dependent_annotators()
    guessed = GUESS_RATE * DOUBTFUL
    np.testing.assert_allclose(model.matrices(), (1 - guessed) * MATRICES + guessed * GUESSES)
    # One label is as likely as the averaged matrix says.
    label = torch.tensor([1])
    of_one = LabelIndex(label * 0, label, label, n_rows=1, n_annotators=2, n_classes=2)
    average = model.log_likelihood(label, label)
    torch.testing.assert_close(model.item_log_likelihood(of_one), average)


def test_a_uniform_model_knows_nothing():
    model = DependentAnnotators.uniform(3, 4)
    np.testing.assert_allclose(model.matrices(), np.full((3, 4, 4), 0.25), rtol=1e-6)
    assert model.correlation == 0


def test_a_state_dict_restores_all():
    model, other = dependent_annotators(0.3), DependentAnnotators.uniform(2, 2).double()
    other.load_state_dict(model.state_dict())
    assert other.correlation == pytest.approx(0.3)
    torch.testing.assert_close(other.state_logs().logs, model.state_logs().logs)


def test_guesses_must_be_of_each_annotator():
    with pytest.raises(InputError, match="`guesses`"):
        DependentAnnotators(*(torch.ones(2, 2, 2),) * 2, torch.ones(()), torch.ones(()))
