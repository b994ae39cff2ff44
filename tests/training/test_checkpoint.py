import signal
import threading

import numpy as np
import pytest
import torch
from crowds import blobs
from torch import nn

import annotrace as at
from annotrace.errors import RunError
from annotrace.training import CheckpointSeries, CrowdData, Settings, fingerprint
from annotrace.training.checkpoint import graceful_interrupt, load_checkpoint, save_checkpoint

CPU = torch.device("cpu")
STATE = {"fingerprint": "a", "seed": 5, "weights": torch.arange(3.0)}


def test_a_checkpoint_keeps_tensors_and_values(tmp_path):
    save_checkpoint(tmp_path / "new folder" / "c.pt", STATE)
    state = load_checkpoint(tmp_path / "new folder" / "c.pt", "a", CPU)
    assert state["seed"] == 5
    assert torch.equal(state["weights"], torch.arange(3.0))
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["c.pt"]


def test_the_checkpoint_of_another_training_is_an_error(tmp_path):
    save_checkpoint(tmp_path / "c.pt", STATE)
    with pytest.raises(RunError, match="other settings or data"):
        load_checkpoint(tmp_path / "c.pt", "b", CPU)
    assert (tmp_path / "c.pt").exists()


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"hello"])
def test_a_damaged_checkpoint_is_an_error_of_one_line(tmp_path, damage):
    path = tmp_path / "c.pt"
    save_checkpoint(path, STATE)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RunError, match="is damaged") as raised:
        load_checkpoint(path, "a", CPU)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"format": 99}, "another version of annotrace"),
        ({"weights": 1}, "not a checkpoint"),
        ([1, 2], "not a checkpoint"),
    ],
)
def test_files_of_another_version_or_kind_are_errors(tmp_path, state, message):
    torch.save(state, tmp_path / "c.pt")
    with pytest.raises(RunError, match=message):
        load_checkpoint(tmp_path / "c.pt", "a", CPU)


def test_a_series_numbers_its_checkpoints_and_removes_them(tmp_path):
    series = CheckpointSeries(tmp_path / "c.pt")
    for expected in ("c.pt", "c.pt.1", "c.pt.2"):
        path = series.next()
        assert path.name == expected
        save_checkpoint(path, STATE)
    series.clear()
    assert list(tmp_path.iterdir()) == []
    assert CheckpointSeries(None).next() is None


def test_a_series_restarts_when_its_first_checkpoint_is_missing(tmp_path):
    save_checkpoint(tmp_path / "c.pt.1", STATE)
    CheckpointSeries(tmp_path / "c.pt").next()
    assert list(tmp_path.iterdir()) == []


def test_a_series_takes_the_seed_of_its_checkpoint_if_none_is_given(tmp_path):
    save_checkpoint(tmp_path / "c.pt", STATE)
    series = CheckpointSeries(tmp_path / "c.pt")
    assert series.seed(None) == 5
    assert series.seed(8) == 8


def fingerprint_of(model):
    X, _, table, _ = blobs(n_items=120)
    data = CrowdData(at.data.as_source(X), table, CPU)
    return fingerprint(model, Settings(), data, np.full(120, -1, np.int32))


def test_weights_and_matrices_change_the_fingerprint():
    one, other = (at.TraceRegularized(backbone=nn.Linear(2, 3)) for _ in range(2))
    assert fingerprint_of(one) != fingerprint_of(other)
    assert fingerprint_of(one) == fingerprint_of(at.TraceRegularized(backbone=one.backbone))
    many = np.random.default_rng(0).random((50, 10, 10))
    changed = many.copy()
    changed[25, 5, 5] = 0
    assert fingerprint_of(at.make("oracle", confusion=many)) != fingerprint_of(
        at.make("oracle", confusion=changed)
    )


def test_the_first_ctrl_c_is_a_request_and_the_second_raises():
    handler = signal.getsignal(signal.SIGINT)
    with graceful_interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_leave_signals_alone():
    handlers = []

    def run():
        with graceful_interrupt():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
