"""`annotrace encode` on tables of texts and folders of images, with tiny models."""

import sys
import tarfile

import numpy as np
import pytest
from PIL import Image

from annotrace.data import EncodedSource, encode, read_features

TEXTS = {"a": "a good film", "b": "the dog runs", "c": "bad"}


@pytest.fixture
def command(annotrace, tmp_path, models, monkeypatch):
    """Return a function that encodes in the folder of texts.csv, pairs.csv and photos/."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    rows = "".join(f"{name},{text}\n" for name, text in TEXTS.items())
    (tmp_path / "texts.csv").write_text(f"item,text\n{rows}")
    (tmp_path / "pairs.csv").write_text("pair,one,two\n1,a dog,a cat\n2,a film,the plot\n")
    (tmp_path / "photos").mkdir()
    for level in (10, 200):
        pixels = np.full((20, 30, 3), level, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{level}.png")

    def run(given, model, *options, out="X.npz"):
        return annotrace("encode", given, "--encoder", models / model, "--out", out, *options)

    return run


def test_texts_of_a_table(command, tmp_path, models):
    done = command("texts.csv", "text")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (
        f"Encoded 3 texts with {models / 'text'} as 16 features each; 3 had to be computed.\n"
        "Wrote X.npz.\nNext: annotrace fit LABELS --features X.npz --out run\n"
    )
    assert done.stderr == "encoded 3/3\n"
    source = read_features(tmp_path / "X.npz")
    assert isinstance(source, EncodedSource)
    assert source.items.tolist() == list(TEXTS)
    expected = encode(list(TEXTS.values()), models / "text", cache=False)
    np.testing.assert_array_equal(source.X, expected.X)
    assert source.encoder == expected.encoder


def test_pairs_are_two_columns(command, tmp_path, models):
    done = command("pairs.csv", "text", "--text", "one", "--text", "two", "--item", "pair")
    assert "Encoded 2 pairs with" in done.stdout
    source = read_features(tmp_path / "X.npz")
    expected = encode([("a dog", "a cat"), ("a film", "the plot")], models / "text", cache=False)
    np.testing.assert_array_equal(source.X, expected.X)
    assert source.encoder.kind == "pairs"


def test_a_folder_of_images(command, tmp_path):
    done = command("photos", "image", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    source = read_features(tmp_path / "X.npz")
    assert source.items.tolist() == ["10.png", "200.png"]
    assert (source.encoder.kind, source.X.shape) == ("images", (2, 16))


def test_images_of_a_tar_file_and_broken_ones(command, tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(tmp_path / "photos", "photos")
        archive.add(tmp_path / "texts.csv", "photos/broken.png")
    assert "x.tar, member 'photos/broken.png'" in command("x.tar", "image").stderr
    done = command("x.tar", "image", "--skip-broken")
    assert done.exit_code == 0, done.stderr
    assert "Warning: 1 image of x.tar cannot be read" in done.stderr
    source = read_features(tmp_path / "X.npz")
    assert sorted(source.items.tolist()) == ["photos/10.png", "photos/200.png"]


def test_the_same_command_computes_nothing_and_writes_the_same_file(command, tmp_path):
    assert command("texts.csv", "text").exit_code == 0
    before = (tmp_path / "X.npz").read_bytes()
    assert (tmp_path / "caches" / "annotrace" / "encodings").is_dir()
    again = command("texts.csv", "text", "--overwrite")
    assert "0 had to be computed" in again.stdout
    assert (tmp_path / "X.npz").read_bytes() == before
    assert "3 had to be" in command("texts.csv", "text", "--no-cache", out="Y.npz").stdout
    assert (tmp_path / "Y.npz").read_bytes() == before
    assert "3 had to be" in command("texts.csv", "text", "--cache", "own", out="Z.npz").stdout
    assert len(list((tmp_path / "own").iterdir())) == 2


def test_features_train_a_classifier(command, annotrace, tmp_path):
    assert command("texts.csv", "sentence", "--quiet").exit_code == 0
    rows = "".join(f"{item},{who},{item > 'a'}\n" for item in "abc" for who in ("ann", "bob"))
    (tmp_path / "labels.csv").write_text(f"item,annotator,label\n{rows}")
    options = ("--method", "trace", "--epochs", 2, "--no-report", "--quiet")
    done = annotrace("fit", "labels.csv", "--features", "X.npz", "--out", "run", *options)
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("nowhere.csv", (), "nowhere.csv: no such file."),
        ("pairs.csv", (), "expected a column 'text'"),
        ("pairs.csv", ("--text", "one"), "expected a column 'item'"),
        ("texts.csv", ("--device", "gpu"), "Expected `device` to be"),
        ("texts.csv", ("--max-columns", 1), "2 columns exceed the limit of 1"),
        ("texts.csv", ("--cache", "texts.csv"), "the cache cannot be used"),
        ("texts.csv", ("--cache", "x", "--no-cache"), "Give --cache FOLDER or --no-cache"),
        ("photos", ("--text", "one"), "--item and --text are columns of a table"),
        ("photos", (), "has no image processor"),
    ],
)
def test_what_is_wrong_is_one_line(command, tmp_path, given, options, message):
    done = command(given, "text", *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert not (tmp_path / "X.npz").exists()


def test_an_existing_file_is_not_overwritten_by_mistake(command, tmp_path):
    (tmp_path / "X.npz").write_text("mine")
    done = command("texts.csv", "text")
    assert done.stderr == "Error: X.npz already exists; choose another --out, or add --overwrite.\n"
    assert (tmp_path / "X.npz").read_text() == "mine"


def test_large_images_are_refused(command):
    done = command("photos", "image", "--max-pixels", 5)
    assert "10.png has 30 x 20 pixels" in done.stderr
    assert "--max-pixels" in done.stderr


def test_a_damaged_cache_is_a_warning(command, tmp_path):
    command("texts.csv", "text", "--cache", "own")
    for path in (tmp_path / "own").iterdir():
        path.write_bytes(b"damaged" * 1000)
    done = command("texts.csv", "text", "--cache", "own", "--overwrite")
    assert done.exit_code == 0
    assert done.stderr.count("is damaged") == 2
    assert done.stderr.count("Warning: own/") == 2


def test_ctrl_c_says_how_to_resume(command, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("annotrace.data.pretrained.TextModel.__call__", stop)
    done = command("texts.csv", "text", "--cache", "own")
    assert done.exit_code == 130
    assert done.stderr == (
        "Interrupted after encoding 0 items. They are kept in own; the same command or call "
        "resumes from there.\n"
    )


def test_without_the_extra_the_remedy_is_named(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    done = command("texts.csv", "text")
    assert done.stderr == (
        "Error: This encoder needs the package transformers. Install the encoders: pip install "
        '"annotrace[encoders]".\n'
    )
