"""Runs that are damaged, replaced while they are read, or made to do harm."""

import hashlib
import json
import os
import pickle
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

import annotrace as at
from annotrace.aggregation import make, run_reader
from annotrace.aggregation.run_reader import read_run
from annotrace.errors import RunError
from annotrace.simulate import hammer_spammers, simulate_labels


@pytest.fixture(scope="module")
def crowd():
    matrices = hammer_spammers(6, 3, skill=0.6, random_state=0)
    return simulate_labels(np.arange(60) % 3, matrices, labels_per_item=3, random_state=0)


@pytest.fixture
def run(crowd, tmp_path):
    make("dawid-skene").fit(crowd, gold={0: 0}).save(tmp_path)
    return tmp_path


def write_model(folder, content):
    """Replace the tensors of a run, with the checksum that belongs to them."""
    (folder / "model.safetensors").write_bytes(content)
    change_description(folder, sha256=hashlib.sha256(content).hexdigest())


def change_tensors(folder, **changes):
    tensors = load((folder / "model.safetensors").read_bytes())
    for name, change in changes.items():
        tensors[name.replace("__", ".")] = change(tensors[name.replace("__", ".")]).contiguous()
    write_model(folder, save(tensors))


def change_description(folder, **changes):
    described = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(described | changes))


def packed(names):
    text = names if isinstance(names, str) else json.dumps(names)
    return lambda _: torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def test_a_description_that_lacks_something_is_rejected(crowd, tmp_path):
    make("majority").fit(crowd).save(tmp_path)
    path = tmp_path / "run.json"
    described = json.loads(path.read_text())
    del described["is_vote"]
    path.write_text(json.dumps(described))
    with pytest.raises(RunError, match=r"run\.json: damaged, it lacks is_vote"):
        at.load(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": "x"}', '{"format": null}'])
def test_a_description_that_is_damaged_is_rejected(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match="damaged, it cannot be read as a run"):
        at.load(tmp_path)


@pytest.mark.parametrize(
    "content", ["{", "[" * 10**5, '{"format": NaN}', '{"format": 1' + "0" * 99]
)
def test_a_description_that_is_not_json_is_rejected(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=r"run\.json: damaged, it is not JSON"):
        at.load(tmp_path)


def test_a_folder_without_a_run_is_rejected(tmp_path):
    with pytest.raises(RunError, match=r"no run here, there is no run\.json"):
        at.load(tmp_path / "nowhere")


@pytest.mark.parametrize(("change", "remedy"), [(-1, "Fit again"), (1, "Update annotrace")])
def test_a_run_of_another_format_says_what_to_do(crowd, tmp_path, change, remedy):
    make("majority").fit(crowd).save(tmp_path)
    path = tmp_path / "run.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps(described | {"format": described["format"] + change}))
    with pytest.raises(RunError, match=remedy):
        at.load(tmp_path)


def test_weights_of_another_run_are_rejected(crowd, tmp_path):
    make("dawid-skene").fit(crowd).save(tmp_path / "one")
    others = crowd.select_items(np.arange(30))
    make("dawid-skene").fit(others).save(tmp_path / "other")
    name = "model.safetensors"
    shutil.copy(tmp_path / "other" / name, tmp_path / "one" / name)
    with pytest.raises(RunError, match=r"damaged, its content is not what run\.json says"):
        at.load(tmp_path / "one")
    (tmp_path / "one" / name).unlink()
    with pytest.raises(RunError, match=r"incomplete, there is no model\.safetensors"):
        at.load(tmp_path / "one")


def test_checksums_that_are_none_are_rejected(crowd, tmp_path):
    make("majority").fit(crowd).save(tmp_path)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sha256": ["x"]}))
    with pytest.raises(RunError, match="damaged"):
        at.load(tmp_path)


def test_a_run_is_read_part_by_part(crowd, tmp_path):
    found = make("mace", knowing=0.4).fit(crowd)
    found.save(tmp_path)
    run = read_run(tmp_path)
    assert run.description["kind"] == "aggregation"
    assert run.table == crowd
    assert set(run.modules) == {"annotators"}
    assert run.learned["n_iter_"] == found.n_iter_
    np.testing.assert_array_equal(run.gold, -1)
    assert run.result(None).annotator_model is None


# Files


@pytest.mark.parametrize("name", ["run.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["link", "pipe", "device", "folder"])
def test_only_regular_files_of_the_folder_are_opened(run, name, kind):
    (run / name).rename(run / "elsewhere")
    if kind == "link":
        (run / name).symlink_to("elsewhere")
    elif kind == "pipe":
        os.mkfifo(run / name)
    elif kind == "device":
        (run / name).symlink_to("/dev/zero")
    else:
        (run / name).mkdir()
    with pytest.raises(RunError, match=rf"{name}.* regular file"):
        at.load(run)


def test_the_folder_itself_may_be_a_link(run, tmp_path_factory):
    link = tmp_path_factory.mktemp("links") / "run"
    link.symlink_to(run)
    assert at.load(link).method == "dawid-skene"


@pytest.mark.parametrize("name", ["run.json", "model.safetensors"])
def test_a_file_that_is_too_large_is_not_read(run, name):
    with (run / name).open("ab") as file:
        file.truncate(100 * 10**9)
    with pytest.raises(RunError, match=rf"{name} has 100,000,000,000 bytes, more than"):
        at.load(run)


def test_a_pickle_in_disguise_is_rejected(run):
    write_model(run, pickle.dumps({"labels.item": [1, 2]}))
    with pytest.raises(RunError, match="not a safetensors file"):
        at.load(run)


def test_a_header_that_claims_much_is_rejected(run):
    content = (run / "model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    for entry in (
        {"dtype": "F64", "shape": [10**10], "data_offsets": [0, 8 * 10**10]},
        {"dtype": "F64", "shape": [2**62, 0], "data_offsets": [0, 0]},
    ):
        text = json.dumps(header | {"result.posterior": entry}).encode()
        write_model(run, len(text).to_bytes(8, "little") + text + content[8 + size :])
        with pytest.raises(RunError, match="damaged"):
            at.load(run)


def test_a_run_that_is_replaced_between_its_two_files_is_read_again(run, crowd, monkeypatch):
    other = run / "other"
    make("mace").fit(crowd).save(other)
    read_file, names = run_reader.read_regular, []

    def read(path, max_bytes):
        content = read_file(path, max_bytes)
        if not names:
            for name in ("model.safetensors", "run.json"):
                (other / name).replace(run / name)
        names.append(path.name)
        return content

    monkeypatch.setattr(run_reader, "read_regular", read)
    assert at.load(run).method == "mace"
    assert names == ["run.json", "model.safetensors", "run.json", "model.safetensors"]


# What the files hold


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels__items": packed("[[" * 50_000)}, "items: damaged, it is not JSON"),
        ({"labels__items": packed(list(range(59)))}, "`item` codes from 0 to 58"),
        ({"labels__items": packed(list(range(1, 61)))}, "by position to be 0, 1, 2"),
        ({"labels__items": packed({"a": 1})}, "`items` to be a list of names of one type"),
        ({"labels__annotators": packed(["a", 1, "c", "d", "e", "f"])}, "names of one type"),
        ({"labels__annotators": packed(["a"] * 6)}, "`annotators` to be distinct"),
        ({"labels__classes": packed('["a", "b", "\\ud800"]')}, "text that UTF-8 can hold"),
        ({"labels__classes": packed(["a", "b", "c" * 10**7])}, "characters at most"),
        ({"labels__classes": lambda t: t.float()}, "`classes` to be bytes"),
        ({"labels__label": lambda t: t + 1}, "`label` codes from 0 to 2"),
        ({"labels__label": lambda t: t.long()}, "codes of labels to be int32"),
        ({"labels__label": lambda t: t[:-1]}, "columns of equal length"),
        ({"labels__truth": lambda t: t - 2}, "`truth` codes from -1"),
        ({"result__posterior": lambda t: t * 3}, "`posterior` to be probabilities that sum to one"),
        ({"result__posterior": lambda t: t * torch.nan}, "`posterior` to be finite"),
        ({"result__posterior": lambda t: t[:, :2]}, r"shape \(60, 3\), but got float64 of shape"),
        ({"result__posterior": lambda t: t.bfloat16()}, "`posterior` to be of a plain type"),
        ({"result__posterior": lambda t: t - 0.5}, "probabilities that sum to one"),
        ({"result__estimate": lambda t: t + 3}, "`estimate` codes from 0 to 2"),
        ({"result__gold": lambda t: t - 1}, "`gold` codes from -1 to 2"),
        ({"result__prior": lambda t: t.expand(60, 3)}, r"`prior` to be numbers of shape \(3\)"),
        ({"learned__ties_": lambda t: t.int()}, "`ties_` to be booleans"),
        ({"learned__objective_": lambda t: t / 0}, "`objective_` to be finite"),
        ({"annotators__log": lambda t: t * torch.nan}, "`annotators.log` to be finite"),
        ({"annotators__log": lambda t: t * 2}, "`confusion_` to be probabilities that sum to one"),
        ({"annotators__log": lambda t: t[:5]}, r"`annotators.log` to be of shape \(6, 3, 3\)"),
        ({"learned__groups_": lambda t: t + 2**30}, "`groups_` to be below 3"),
        ({"annotators__log": lambda t: t.float()}, "`annotators.log` to be torch.float64"),
    ],
)
def test_tensors_are_checked(run, changes, message):
    change_tensors(run, **changes)
    with pytest.raises(RunError, match=message):
        at.load(run)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "judge"}, "`kind` to be one of aggregation, classifier"),
        ({"kind": ["x"]}, "`kind`"),
        ({"kind": "classifier"}, "it lacks custom_backbone"),
        ({"method": "magic"}, "there is no aggregation 'magic'"),
        ({"method": "x" * 1000}, "`method` to be a short name"),
        ({"ties": -1}, "`ties` to be a whole number of at least 0"),
        ({"is_vote": 1}, "`is_vote` to be True or False"),
        ({"counts": {"items": 60}}, "`counts` to be a dict with the keys items"),
        ({"counts": {"items": 61, "annotators": 6, "labels": 180, "classes": 3}}, "counts"),
        ({"sha256": "../../etc/passwd"}, "`sha256` to be 64 hexadecimal digits"),
        ({"sha256": {"/dev/zero": "0"}}, "`sha256` to be 64 hexadecimal digits"),
        ({"versions": {"annotrace": 1}}, "`versions` to be a dict whose values are each text"),
        ({"extra": 1}, "unknown fields: 'extra'"),
        (
            {"learned": {}},
            "it lacks converged_, gold_candidates_, n_iter_, structure_, .*versions_",
        ),
        ({"params": {"max_iter": -1}}, "`max_iter` to be a whole number larger than 0"),
        ({"params": {"tol": 10**39, "max_iter": "x"}}, "`max_iter`"),
        ({"params": {"checkpoint": "/tmp/x"}}, "no parameters 'checkpoint' that a run can set"),
    ],
)
def test_the_description_is_checked(run, changes, message):
    change_description(run, **changes)
    with pytest.raises(RunError, match=message):
        at.load(run)


def test_only_declared_attributes_are_set(run):
    described = json.loads((run / "run.json").read_text())
    change_description(run, learned=described["learned"] | {"predict": "x"})
    with pytest.raises(RunError, match="unknown fields: 'predict'"):
        at.load(run)


def test_all_tensors_must_be_known(run):
    tensors = load((run / "model.safetensors").read_bytes())
    for name in ("x", "network.weight", "labels.x", "result.x", "learned.x_", "annotators.x"):
        write_model(run, save(tensors | {name: torch.zeros(2)}))
        with pytest.raises(RunError, match=r"unknown fields: '(x|x_|network|annotators.x)'"):
            at.load(run)


@pytest.mark.parametrize(
    ("structure", "name"), [("per-class", "structure.pattern"), ("low-rank", "structure.shared")]
)
def test_tensors_of_a_structure_are_as_large_as_the_table_says(crowd, tmp_path, structure, name):
    make("dawid-skene", structure=structure, tol=0.01).fit(crowd).save(tmp_path)
    change_tensors(tmp_path, **{f"annotators.{name}": lambda t: t[..., :2]})
    with pytest.raises(RunError, match=f"`annotators.{name}` to be of shape"):
        at.load(tmp_path)
