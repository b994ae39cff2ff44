import json
import shutil

import numpy as np
import polars as pl
import pytest

import annotrace as at
from annotrace.aggregation import list_aggregations, make
from annotrace.errors import RunError
from annotrace.simulate import hammer_spammers, simulate_labels


@pytest.fixture(scope="module")
def crowd():
    matrices = hammer_spammers(6, 3, skill=0.6, random_state=0)
    return simulate_labels(np.arange(60) % 3, matrices, labels_per_item=3, random_state=0)


@pytest.mark.parametrize("name", [entry.name for entry in list_aggregations()])
def test_what_was_found_is_read_back(crowd, tmp_path, name):
    found = make(name).fit(crowd, gold={0: 0, 7: 1})
    found.save(tmp_path / "run")
    run = at.load(tmp_path / "run")
    assert run.method == name
    assert run.settings == found.settings
    assert run.table_.to_frame().rows() == [tuple(map(str, row)) for row in crowd.to_frame().rows()]
    np.testing.assert_array_equal(run.gold_, found.gold_)
    np.testing.assert_array_equal(run.prior_, found.prior_)
    np.testing.assert_array_equal(run.objective_, found.objective_)
    np.testing.assert_array_equal(run.confusion_, found.confusion_)
    np.testing.assert_array_equal(run.skill_, found.skill_)
    assert run.predict().tolist() == list(map(str, found.predict().tolist()))
    np.testing.assert_allclose(run.posterior_, found.posterior_, rtol=1e-5)
    np.testing.assert_allclose(run.confidence_, found.confidence_, rtol=1e-4)
    assert pl.read_csv(tmp_path / "run" / "truth.csv")["label"].to_list() == list(found.predict())


def test_a_description_that_lacks_something_is_refused(crowd, tmp_path):
    make("majority").fit(crowd).save(tmp_path)
    path = tmp_path / "run.json"
    said = json.loads(path.read_text())
    del said["prior"]
    path.write_text(json.dumps(said))
    with pytest.raises(RunError, match=r"damaged, it cannot be read as a run \('prior'\)"):
        at.load(tmp_path)


@pytest.mark.parametrize("name", ["truth.csv", "confusion.npz", "labels.parquet"])
def test_a_file_of_another_run_is_refused(crowd, tmp_path, name):
    make("dawid-skene").fit(crowd).save(tmp_path / "one")
    others = crowd.select_items(np.arange(30))
    make("dawid-skene").fit(others).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / name, tmp_path / "one" / name)
    with pytest.raises(RunError, match=f"{name}: not what was written, by run.json; edited since"):
        at.load(tmp_path / "one")


def test_checksums_that_are_none_are_told(crowd, tmp_path):
    make("majority").fit(crowd).save(tmp_path)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sha256": ["x"]}))
    with pytest.raises(RunError, match="damaged, it cannot be read as a run"):
        at.load(tmp_path)


def test_a_file_is_no_folder(crowd, tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(RunError, match="is a file; give a folder to save to"):
        make("majority").fit(crowd).save(tmp_path / "run")
