import os
import shutil
from pathlib import Path

import pytest

from annotrace.data import model_files
from annotrace.data.model_files import find_model, fingerprint_model
from annotrace.errors import InputError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that is offline, with one model in its cache: org/name."""
    constants = pytest.importorskip("huggingface_hub").constants
    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    snapshot = cache / "models--org--name" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"weights")
    (cache / "models--org--name" / "refs").mkdir()
    (cache / "models--org--name" / "refs" / "main").write_text(COMMIT)
    return snapshot


def test_a_folder_is_a_model(folder):
    for name in (folder, str(folder)):
        found = find_model(name)
        assert (found.name, found.folder, found.revision) == (str(folder), folder, None)
    assert not found.is_sentence_model
    (folder / "modules.json").write_text("[]")
    assert found.is_sentence_model


def test_a_model_of_the_hub_has_its_commit(hub, capsys):
    found = find_model("org/name", verbose=True)
    assert (found.name, found.folder, found.revision) == ("org/name", hub, COMMIT)
    assert find_model("org/name", COMMIT) == found
    assert capsys.readouterr().err == "Looking for org/name on the Hugging Face hub.\n"


@pytest.mark.parametrize("name", ["org/other", "other"])
@pytest.mark.usefixtures("hub")
def test_a_model_that_cannot_be_had_is_one_line(name):
    with pytest.raises(InputError) as caught:
        find_model(name)
    assert str(caught.value).startswith(
        f"{name} is not a folder here, and cannot be had from the Hugging Face hub (there is no "
        "connection, and it was not downloaded before)."
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("RepositoryNotFoundError", "it has no such model, or a private one"),
        ("GatedRepoError", "its owner has not granted you access"),
        ("RevisionNotFoundError", "this version of it is no longer there"),
        (None, "No space left on device"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_the_reason_of_the_hub_is_said_in_short(monkeypatch, kind, reason):
    hub = pytest.importorskip("huggingface_hub")
    if kind is None:
        error = OSError(28, "No space left on device")
    else:
        error = getattr(hub.errors, kind).__new__(getattr(hub.errors, kind))

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(hub, "snapshot_download", fail)
    with pytest.raises(InputError, match=reason):
        find_model("org/name")


def test_old_weights_are_downloaded_only_if_there_are_no_others(monkeypatch, tmp_path, folder):
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def download(name, *, revision, ignore_patterns):
        asked.append("*.bin" not in ignore_patterns)
        assert "*.py" in ignore_patterns
        return str(folder)

    monkeypatch.setattr(hub, "snapshot_download", download)
    find_model("org/name")
    (folder / "model.safetensors").unlink()
    find_model("org/name")
    assert asked == [False, False, True]


@pytest.mark.parametrize("name", ["nowhere/at/all", "./nowhere", "/nowhere", "a b", ""])
def test_a_path_that_is_not_there_is_not_asked_of_the_hub(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    message = "has no config.json" if name == "" else "no such folder"
    with pytest.raises(InputError, match=message):
        find_model(name)


def test_a_file_and_a_folder_without_a_model_are_refused(folder):
    with pytest.raises(InputError, match="no such folder"):
        find_model(folder / "config.json")
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"has no config\.json, so that it is not the folder of"):
        find_model(folder)


def change_weights(folder):
    (folder / "model.safetensors").write_bytes(b"others!")


def change_config(folder):
    (folder / "config.json").write_text("{ }")


def add_tokenizer(folder):
    (folder / "tokenizer.json").write_text("{}")


def add_module(folder):
    (folder / "modules.json").write_text("[]")


@pytest.mark.parametrize("change", [change_weights, change_config, add_tokenizer, add_module])
@pytest.mark.parametrize("remembered", [True, False])
def test_a_changed_model_has_another_fingerprint(folder, tmp_path, change, remembered):
    cache = tmp_path / "cache" if remembered else None
    before = fingerprint_model(folder, cache)
    assert fingerprint_model(folder, cache) == before
    change(folder)
    assert fingerprint_model(folder, cache) != before


def test_a_module_in_a_subfolder_counts(folder):
    (folder / "modules.json").write_text("[]")
    before = fingerprint_model(folder, None)
    (folder / "1_Dense").mkdir()
    (folder / "1_Dense" / "model.safetensors").write_bytes(b"dense")
    assert fingerprint_model(folder, None) != before


@pytest.mark.parametrize(
    "name", ["README.md", "train.py", ".gitattributes", "pytorch_model.bin", "onnx/config.json"]
)
def test_what_is_not_read_does_not_count(folder, name):
    before = fingerprint_model(folder, None)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("text")
    assert fingerprint_model(folder, None) == before


def test_a_copy_has_the_same_fingerprint(folder, tmp_path, hub):
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    assert fingerprint_model(copy, None) == fingerprint_model(folder, tmp_path / "cache")
    assert fingerprint_model(hub, None) == fingerprint_model(folder, None)


def test_files_are_read_once_as_long_as_size_and_time_stay(folder, tmp_path, monkeypatch):
    read = []
    digest = model_files.digest_file

    def count(file):
        read.append(Path(file.name).name if isinstance(file.name, str) else file.name)
        return digest(file)

    monkeypatch.setattr(model_files, "digest_file", count)
    fingerprint_model(folder, tmp_path)
    assert len(read) == 2
    fingerprint_model(folder, tmp_path)
    assert len(read) == 2
    os.utime(folder / "config.json", ns=(1, 1))
    fingerprint_model(folder, tmp_path)
    assert len(read) == 3
