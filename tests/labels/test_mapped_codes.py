import numpy as np
import pytest

from annotrace.aggregation import DawidSkene
from annotrace.labels import LabelTable, mapped_codes
from annotrace.labels.mapped_codes import map_large


@pytest.fixture
def labels(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, [60, 9, 3], (400, 3)).tolist()
    rows = [f"{item},worker {annotator},{label}" for item, annotator, label in codes]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["item,annotator,label", *rows]))
    return path


def test_a_table_on_disk_gives_the_results_of_one_in_memory(labels, tmp_path, monkeypatch):
    table = LabelTable.read(labels)
    monkeypatch.setattr(mapped_codes, "MAPPED_FROM", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mapped = LabelTable.read(labels)
    assert isinstance(mapped.annotator, np.memmap)
    assert mapped == table
    one, other = (DawidSkene(random_state=0).fit(each) for each in (table, mapped))
    np.testing.assert_array_equal(one.posterior_, other.posterior_)
    np.testing.assert_array_equal(one.confidence_, other.confidence_)
    other.save(tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "run"]


def test_small_codes_stay_in_memory():
    codes = np.arange(3, dtype=np.int32)
    view = map_large(codes)
    assert view.base is codes
    assert not view.flags.writeable
