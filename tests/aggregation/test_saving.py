import gc

import numpy as np
import polars as pl
import pytest
from references import fit_quietly

import annotrace as at
from annotrace.aggregation import list_aggregations, make
from annotrace.aggregation.saving import plain_params
from annotrace.errors import RunError
from annotrace.labels import LabelTable
from annotrace.simulate import hammer_spammers, simulate_labels

NAMES = [entry.name for entry in list_aggregations()]


@pytest.fixture(scope="module")
def crowd():
    matrices = hammer_spammers(6, 3, skill=0.6, random_state=0)
    return simulate_labels(np.arange(60) % 3, matrices, labels_per_item=3, random_state=0)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_fitted_is_read_back(crowd, tmp_path, name):
    found = make(name).fit(crowd, gold={0: 0, 7: 1}, prior_counts=np.ones((6, 3, 3)))
    found.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert type(loaded) is type(found)
    assert loaded.method == name
    assert loaded.get_params() == found.get_params()
    assert loaded.table_ == crowd
    learned = {attribute for attribute in vars(found) if attribute.endswith("_")}
    assert learned == {attribute for attribute in vars(loaded) if attribute.endswith("_")}
    for attribute in learned - {"result_", "table_", "annotator_model_"}:
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(found, attribute))
    np.testing.assert_array_equal(loaded.predict(), found.predict())
    np.testing.assert_array_equal(loaded.skill_, found.skill_)
    np.testing.assert_allclose(loaded.confidence_, found.confidence_)
    np.testing.assert_array_equal(loaded.result_.prior_counts, 1)
    truth = pl.read_csv(tmp_path / "run" / "truth.csv")
    assert truth["label"].to_list() == found.predict().tolist()
    expected = {"truth.csv", "annotators.csv", "confusion.npz", "model.safetensors", "run.json"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labels_per_item", [3, 1])
def test_a_loaded_aggregation_continues_like_the_saved_one(tmp_path, name, labels_per_item):
    matrices = hammer_spammers(6, 3, skill=0.6, random_state=0)
    table = simulate_labels(
        np.arange(60) % 3, matrices, labels_per_item=labels_per_item, random_state=0
    )
    more = LabelTable.from_codes([0, 1, 60], [2, 6, 6], [1, 1, 0], n_classes=3)
    found = fit_quietly(make(name), table)
    found.save(tmp_path)
    loaded = at.load(tmp_path)
    for model in (found, loaded):
        model.partial_fit(more)
    np.testing.assert_allclose(loaded.posterior_, found.posterior_, atol=1e-12)
    np.testing.assert_allclose(loaded.confusion_, found.confusion_, atol=1e-12)


def test_text_names_and_classes_come_back(tmp_path):
    frame = {"item": ["a", "a", "b"], "annotator": ["kim", "lee", "kim"], "label": ["x", "x", "y"]}
    found = make("majority").fit(LabelTable.from_long(frame))
    found.save(tmp_path)
    loaded = at.load(tmp_path)
    assert loaded.table_ == found.table_
    assert loaded.predict().tolist() == ["x", "y"]
    assert not loaded.table_.positional


def test_the_csv_files_are_for_people_and_may_be_edited(crowd, tmp_path):
    found = make("dawid-skene").fit(crowd)
    found.save(tmp_path)
    (tmp_path / "truth.csv").write_text("edited\n")
    (tmp_path / "confusion.npz").unlink()
    np.testing.assert_array_equal(at.load(tmp_path).posterior_, found.posterior_)


def test_a_file_is_not_a_folder(crowd, tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(RunError, match="is a file; give a folder to save to"):
        make("majority").fit(crowd).save(tmp_path / "run")


def test_parameters_that_a_file_cannot_hold_are_left_out():
    generator = np.random.default_rng(0)
    params = plain_params(make("mace", knowing=np.float32(0.5), random_state=generator))
    assert params["knowing"] == 0.5
    assert "random_state" not in params


def test_saving_often_leaves_nothing_in_memory(tmp_path):
    """A type of ctypes for every size of array, for example."""

    def save(n_items):
        item = np.arange(n_items)
        make("majority").fit(LabelTable.from_codes(item, item * 0, item % 2)).save(tmp_path)

    def n_types():
        gc.collect()
        return sum(issubclass(type(thing), type) for thing in gc.get_objects())

    save(10)
    before = n_types()
    for n_items in range(11, 16):
        save(n_items)
    assert n_types() == before
