"""Several processes of one run; those of the tests are on this machine."""

import json
import os
import signal
import time
from datetime import timedelta

import pytest
import torch
from several_processes import call_in_all

from annotrace import distributed
from annotrace.distributed import JoinedProcesses, Processes, current, joined
from annotrace.errors import ProcessLostError


def all_of(size):
    return [JoinedProcesses(None, rank, size, rank) for rank in range(size)]


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_rows_of_a_batch_are_divided_among_processes(size, n_rows):
    shares = [each.rows(n_rows) for each in all_of(size)]
    counted = [row for rows, share in shares if share for row in range(n_rows)[rows]]
    assert sorted(counted) == list(range(n_rows))
    assert sum(share for _, share in shares) == pytest.approx(1)
    # All of them have something to compute, since all take part in the sum of gradients.
    assert all(range(n_rows)[rows] for rows, _ in shares)


@pytest.mark.parametrize(("size", "n_rows"), [(1, 3), (2, 7), (3, 3), (5, 64)])
def test_parts_of_items_are_consecutive(size, n_rows):
    parts = [range(n_rows)[each.part(n_rows)] for each in all_of(size)]
    assert [row for part in parts for row in part] == list(range(n_rows))


def test_too_few_items_are_not_divided():
    assert [each.part(2) for each in all_of(3)] == [slice(0, 2)] * 3
    assert not any(each.divides(2) for each in all_of(3))


def test_a_process_by_itself_changes_nothing(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as alone:
        assert alone is current()
        assert type(alone) is Processes
        rows = torch.arange(3.0)
        assert alone.add_up(rows) is alone.all_rows(rows) is alone.rows_at_first(rows) is rows
        assert alone.collect("a") == ["a"]
        assert alone.from_first(lambda: 4) == 4
        assert alone.hand_out(lambda rank: rank) == 0
        assert alone.elect("task")


def test_processes_that_cannot_reach_each_other_say_so(monkeypatch):
    variables = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "rendezvous", fail_to_connect)
    with pytest.raises(ProcessLostError, match=r"cannot reach each other \(no route\)"), joined():
        pass
    assert type(current()) is Processes


def test_a_launcher_that_does_not_say_where_processes_meet_is_an_error(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    for name, value in {"WORLD_SIZE": "2", "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ProcessLostError, match=r"MASTER_ADDR expected.*with torchrun"), joined():
        pass


def fail_to_connect(url):
    raise torch.distributed.DistNetworkError("no route\nframe 0")


def exchange():
    """Print what each process gets from all ways to exchange values."""
    with joined() as processes:
        rank = processes.rank
        copied = torch.full((2, 2), float(rank)).t()
        processes.copy_from_first([copied])
        said = {
            "sum": processes.add_up(torch.tensor([1.0, rank])).tolist(),
            "any": [processes.any(rank == 1), processes.any(False)],
            "rows": processes.all_rows(torch.full((rank, 2), rank)).tolist(),
            "at first": processes.rows_at_first(torch.full((rank, 1), rank)).tolist(),
            "from first": processes.from_first(lambda: f"of {rank}"),
            "handed out": processes.hand_out(lambda other: f"for {other}"),
            "collected": processes.collect(rank),
            "copied": copied.tolist(),
            "elected": [processes.elect("a"), processes.elect("b")],
        }
        processes.leave()
        print(json.dumps(said | {"alone": current().size == 1}))


def test_three_processes_exchange_values(tmp_path):
    ended = call_in_all(3, exchange, tmp_path)
    assert [each.code for each in ended] == [0, 0, 0], ended[0].errors
    said = [json.loads(each.output) for each in ended]
    for rank, each in enumerate(said):
        assert each["sum"] == [3, 3]
        assert each["any"] == [True, False]
        assert each["rows"] == [[1, 1], [2, 2], [2, 2]]
        assert each["at first"] == ([[1], [2], [2]] if rank == 0 else [[rank]] * rank)
        assert each["from first"] == "of 0"
        assert each["handed out"] == f"for {rank}"
        assert each["collected"] == ([0, 1, 2] if rank == 0 else [])
        assert each["copied"] == [[0, 0], [0, 0]]
        assert each["elected"] == [rank == 0, rank == 0]
        assert each["alone"]


def lose(victim):
    """Let one process die; print in the others which of them is elected."""
    with joined() as processes:
        try:
            for step in range(100):
                if step == 5 and processes.rank == int(victim):
                    os.kill(os.getpid(), signal.SIGKILL)
                processes.any(False)
        except ProcessLostError as error:
            print(processes.elect("task"), processes.elect("other"), error)


@pytest.mark.parametrize("victim", [0, 2])
def test_one_of_the_processes_left_is_elected(tmp_path, victim):
    ended = call_in_all(3, lose, tmp_path, str(victim))
    assert ended[victim].code == -signal.SIGKILL
    said = {rank: each.output for rank, each in enumerate(ended) if rank != victim}
    assert all("has ended" in output for output in said.values()), ended
    assert sum(output.startswith("True True") for output in said.values()) == 1
    assert sum(output.startswith("False False") for output in said.values()) == 1


def fall_silent():
    """Let one process wait for another one that does nothing; print the error."""
    distributed.TIMEOUT = timedelta(seconds=2)
    with joined() as processes:
        if processes.is_first:
            with pytest.raises(ProcessLostError) as raised:
                processes.any(False)
            print(raised.value)
        else:
            time.sleep(4)
        os._exit(0)


def test_a_process_that_does_not_answer_is_not_said_to_have_ended(tmp_path):
    silent = call_in_all(2, fall_silent, tmp_path)[0]
    assert "has not answered for" in silent.output, silent
