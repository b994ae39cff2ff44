import pytest
import torch

from annotrace.crowd.item_difficulty import MAX_GUESSED, cap_doubtful, split_counts, state_logs

MATRICES = torch.tensor([[[0.9, 0.1], [0.3, 0.7]]], dtype=torch.float64)
GUESSES = torch.tensor([[[0.8, 0.2]]], dtype=torch.float64)


def test_labels_of_doubtful_items_are_partly_guessed():
    logs, seen = state_logs(MATRICES.log(), GUESSES.log(), torch.tensor(0.25).double())
    doubtful = 0.75 * MATRICES + 0.25 * GUESSES
    torch.testing.assert_close(logs.exp(), torch.cat([MATRICES, doubtful], 1))
    torch.testing.assert_close(seen, 0.75 * MATRICES / doubtful)


def test_counts_are_divided_into_reports_and_guesses():
    counts = torch.tensor([[[5.0, 1.0], [2.0, 6.0], [4.0, 0.0], [0.0, 8.0]]])
    seen = torch.full((1, 2, 2), 0.75)
    found = split_counts(counts, seen)
    torch.testing.assert_close(found.seen, torch.tensor([[[8.0, 1.0], [2.0, 12.0]]]))
    torch.testing.assert_close(found.guessed, torch.tensor([[[1.0, 2.0]]]))
    assert float(found.guess_rate) == pytest.approx((3 + 1) / (12 + 2))
    only_guesses = split_counts(100 * counts, torch.zeros(1, 2, 2))
    assert float(only_guesses.guess_rate) == pytest.approx(MAX_GUESSED)


def test_the_share_of_doubtful_items_has_a_limit():
    torch.testing.assert_close(cap_doubtful(torch.tensor([80.0, 20.0])), torch.tensor([80.0, 20.0]))
    torch.testing.assert_close(cap_doubtful(torch.tensor([20.0, 80.0])), torch.tensor([70.0, 30.0]))
    few = cap_doubtful(torch.tensor([20.0, 80.0]), largest=0.1)
    torch.testing.assert_close(few, torch.tensor([90.0, 10.0]))
