import numpy as np
import pytest
import torch

from annotrace.crowd import em_threads
from annotrace.crowd.em_threads import measured_threads
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.problem import CrowdProblem
from annotrace.labels import LabelTable


@pytest.fixture
def problem(monkeypatch):
    monkeypatch.setattr(em_threads, "FEW_LABELS", 100)
    item = np.repeat(np.arange(50), 3)
    return CrowdProblem(LabelTable.from_codes(item, np.arange(150) % 4, np.arange(150) % 2))


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def slower_by(factor, monkeypatch):
    """Let every sum take a second by one thread, and `factor` seconds by two."""
    clock = [0.0]
    plain = LabelIndex.sum_matrices

    def sum_matrices(self, matrices, start=None):
        clock[0] += 1.0 if torch.get_num_threads() == 1 else factor
        return plain(self, matrices, start)

    monkeypatch.setattr(LabelIndex, "sum_matrices", sum_matrices)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])


@pytest.mark.parametrize(("factor", "chosen"), [(0.6, 2), (0.95, 1), (8.0, 1)])
def test_two_threads_are_used_if_they_are_faster(factor, chosen, problem, two_threads, monkeypatch):
    slower_by(factor, monkeypatch)
    with measured_threads(problem):
        assert torch.get_num_threads() == chosen
        with measured_threads(problem):
            assert torch.get_num_threads() == chosen
    assert torch.get_num_threads() == 2


def test_a_small_problem_is_for_one_thread(problem, two_threads, monkeypatch):
    monkeypatch.setattr(em_threads, "FEW_LABELS", 151)
    with measured_threads(problem):
        assert torch.get_num_threads() == 1


def test_the_number_is_restored_after_an_error(problem, two_threads):
    with pytest.raises(KeyboardInterrupt), measured_threads(problem):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2


def test_the_head_of_an_index_is_that_of_its_rows(problem):
    matrices = torch.rand(problem.shape, dtype=problem.dtype)
    head = problem.labels.head(100)
    assert (len(head.row), head.n_rows) == (99, 33)
    torch.testing.assert_close(
        head.sum_matrices(matrices), problem.labels.sum_matrices(matrices)[:33], rtol=0, atol=0
    )


def test_threads_are_measured_without_matrices_larger_than_the_labels(two_threads, monkeypatch):
    monkeypatch.setattr(em_threads, "FEW_LABELS", 100)
    wide = LabelTable.from_codes(
        np.arange(150) // 3, np.arange(150), np.arange(150), n_annotators=10**6, n_classes=10**4
    )
    with measured_threads(CrowdProblem(wide)):
        assert torch.get_num_threads() in (1, 2)


def test_measuring_draws_no_random_numbers(problem, two_threads):
    before = torch.get_rng_state()
    with measured_threads(problem):
        pass
    assert torch.equal(torch.get_rng_state(), before)
