import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from crowds import blobs
from torch import nn

import annotrace as at
from annotrace.errors import RunError
from annotrace.training import CheckpointSeries, CrowdData, Settings, fingerprint
from annotrace.training.records import Record

CPU = torch.device("cpu")
RECORD = Record({"weights": torch.arange(3.0)}, {"epoch": 1})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_keeps_tensors_and_values(tmp_path):
    checkpoint = CheckpointSeries(tmp_path / "new folder" / "c").next("a", 5)
    assert checkpoint.read_progress() is None
    checkpoint.save(RECORD)
    found = CheckpointSeries(tmp_path / "new folder" / "c").next("a", 5).read_progress()
    assert found.values == {"number": 0, "fingerprint": "a", "seed": 5, "epoch": 1}
    assert torch.equal(found.tensors["weights"], torch.arange(3.0))
    assert names(tmp_path / "new folder") == ["c", "c.training"]


def test_the_checkpoint_of_another_training_is_an_error(tmp_path):
    CheckpointSeries(tmp_path / "c").next("a", 5).save(RECORD)
    with pytest.raises(RunError, match="other settings or data"):
        CheckpointSeries(tmp_path / "c").next("b", 5).read_progress()
    CheckpointSeries(tmp_path / "c").next("a", 5).finish(RECORD)
    with pytest.raises(RunError, match="other settings or data"):
        CheckpointSeries(tmp_path / "c").next("b", 5).read_finished()


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"hello"])
@pytest.mark.parametrize("name", ["c", "c.training"])
def test_a_damaged_checkpoint_is_an_error_of_one_line(tmp_path, damage, name):
    checkpoint = CheckpointSeries(tmp_path / "c").next("a", 5)
    checkpoint.save(RECORD)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(damage(content))
    with pytest.raises(RunError, match="is damaged") as raised:
        checkpoint.read_finished() or checkpoint.read_progress()
    assert "\n" not in str(raised.value)


def test_a_series_has_two_files_whatever_the_number_of_trainings(tmp_path):
    series = CheckpointSeries(tmp_path / "c")
    for number in range(5):
        checkpoint = series.next("a", number)
        checkpoint.save(RECORD)
        assert names(tmp_path) == ["c", "c.training"]
        checkpoint.finish(RECORD)
        assert names(tmp_path) == ["c"]
    again = CheckpointSeries(tmp_path / "c")
    found = [again.next("a", 0).read_finished() for _ in range(6)]
    assert [None if each is None else each.values["seed"] for each in found] == [*range(5), None]
    again.clear()
    assert names(tmp_path) == []
    assert CheckpointSeries(None).next("a", 0) is None


def test_the_state_of_a_training_that_has_finished_is_obsolete(tmp_path):
    """A process may be killed before it removes that file."""
    series = CheckpointSeries(tmp_path / "c")
    first = series.next("a", 0)
    first.save(RECORD)
    stale = (tmp_path / "c.training").read_bytes()
    first.finish(RECORD)
    (tmp_path / "c.training").write_bytes(stale)
    assert series.next("a", 0).read_progress() is None


def test_a_series_restarts_when_its_first_file_is_missing(tmp_path):
    CheckpointSeries(tmp_path / "c").next("a", 0).save(RECORD)
    (tmp_path / "c").unlink()
    (tmp_path / ".c.training.0123456789abcdef.partial").touch()
    CheckpointSeries(tmp_path / "c").next("a", 0)
    assert names(tmp_path) == []


def test_a_series_takes_the_seed_of_its_first_training_if_none_is_given(tmp_path):
    series = CheckpointSeries(tmp_path / "c")
    first = series.next("a", 5)
    first.save(RECORD)
    assert series.seed(None) == 5
    first.finish(RECORD)
    series.next("a", 6).save(RECORD)
    assert series.seed(None) == 5
    assert series.seed(8) == 8


def interrupt_often(model, X, table):
    """Fit, interrupted after every third epoch, and return the most files and bytes there were."""
    most = (0, 0)
    n_epochs = 0

    def interrupt(epoch):
        nonlocal n_epochs
        n_epochs += 1
        if n_epochs % 3 == 0:
            signal.raise_signal(signal.SIGINT)

    model.set_params(callbacks=[interrupt])
    while True:
        try:
            return model.fit(X, table), most
        except KeyboardInterrupt:
            files = list(Path(model.checkpoint).parent.iterdir())
            most = max(most, (len(files), sum(path.stat().st_size for path in files)))


def test_checkpoints_of_a_fit_of_many_trainings_stay_small(tmp_path, monkeypatch):
    X, _, table, _ = blobs(n_items=60)
    params = {"epochs": 2, "random_state": 0}
    whole = at.make("crossfit", **params).fit(X, table)
    whole.save(tmp_path / "run")
    (tmp_path / "checkpoints").mkdir()
    path = tmp_path / "checkpoints" / "c.bin"
    resumed, most = interrupt_often(at.make("crossfit", **params, checkpoint=path), X, table)
    np.testing.assert_array_equal(resumed.posterior_, whole.posterior_)
    assert most[0] == 2
    # Of a finished training only the weights are kept, beside 5 kB of random state and history.
    weights = sum(each.nbytes for each in whole.network_.state_dict().values())
    assert most[1] < 9 * (weights + 12_000) + 5 * weights
    assert names(tmp_path / "checkpoints") == []


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
