import csv

import numpy as np
import pytest
from PIL import Image


@pytest.mark.parametrize(
    "args",
    [("fit", "labels.csv"), ("predict", "run"), ("aggregate", "labels.csv"), ("simulate",)],
)
def test_out_is_required(annotrace, args):
    result = annotrace(*args)
    assert result.exit_code == 2
    assert "Missing option '--out'" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("demo", "--seed", "99999999999999999999"), "is not in the range 0<=x<=4294967295"),
        (("fit", "labels.csv", "--seed", "-1", "--out", "run"), "is not in the range 0<=x"),
        (("aggregate", "labels.csv", "--seed", "-1", "--out", "run"), "is not in the range 0<=x"),
        (("simulate", "--seed", "-1", "--out", "sim"), "is not in the range 0<=x"),
        (("fit", "a.csv", "--image-size", 100_000, "--out", "run"), "in the range 1<=x<=2048"),
    ],
)
def test_seeds_out_of_range_are_rejected(annotrace, args, message):
    result = annotrace(*args)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.fixture
def formulas(tmp_path):
    """Write labels whose items, annotators and classes look like formulas, and features."""
    items = [f"={k}+1" for k in range(12)]
    rows = [
        f"{item},{who},{['-', '@'][k % 2]}" for k, item in enumerate(items) for who in ("+a", "+b")
    ]
    (tmp_path / "formulas.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    X = np.eye(2, dtype=np.float32)[np.arange(12) % 2]
    np.savez(tmp_path / "formulas.npz", X=X, items=items)
    return tmp_path


def cells(path):
    return {cell for row in csv.reader(path.read_text().splitlines()) for cell in row}


@pytest.mark.parametrize("raw", [(), ("--raw",)])
def test_every_csv_is_guarded_unless_raw(annotrace, formulas, raw):
    features = ("--features", "formulas.npz")
    (formulas / "people.csv").write_text("annotator\n'+a\n'-new\n")
    fit = ("fit", "formulas.csv", *features, "--method", "vanilla", "--epochs", 2)
    for command in (
        (*fit, "--out", "fitted"),
        ("aggregate", "formulas.csv", "--out", "run"),
        ("predict", "fitted", *features, "--out", "predicted.csv"),
        ("next", "run", "--budget", 3, "--annotators", "people.csv"),
    ):
        result = annotrace(*command, *raw)
        assert result.exit_code == 0, result.output
    names = {
        "fitted/truth.csv": {"=0+1", "-", "@"},
        "fitted/annotators.csv": {"+a", "+b"},
        "run/truth.csv": {"=0+1", "-", "@"},
        "run/annotators.csv": {"+a", "+b"},
        "predicted.csv": {"=0+1", "-", "@"},
        "run/next.csv": {"-new"},
    }
    for file, expected in names.items():
        written = cells(formulas / file)
        guarded = {f"'{name}" for name in expected}
        assert (expected if raw else guarded) <= written, file
        assert written.isdisjoint(guarded if raw else expected), file


@pytest.fixture
def linked(annotrace, tmp_path):
    """A folder `photos` with a link to an image outside it, and a run of both items."""
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (40, 40), "red").save(tmp_path / "photos" / "a.png")
    Image.new("RGB", (40, 40), "blue").save(tmp_path / "b.png")
    (tmp_path / "photos" / "b.png").symlink_to("../b.png")
    rows = ["a,ann,x", "a,bob,y", "b,ann,y", "b,bob,x"]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    assert annotrace("aggregate", "labels.csv", "--out", "run").exit_code == 0
    return tmp_path


IMAGES = ("--images", "photos")


@pytest.mark.parametrize(
    "command",
    [
        ("report", "run", *IMAGES),
        ("fit", "labels.csv", *IMAGES, "--method", "vanilla", "--epochs", 1, "--out", "fitted"),
    ],
)
def test_images_outside_the_folder_or_too_large(annotrace, linked, command):
    refused = annotrace(*command)
    assert refused.exit_code == 2
    assert "photos/b.png is a link that leads out of photos" in refused.stderr
    assert "--follow-links" in refused.stderr
    large = annotrace(*command, "--follow-links", "--max-pixels", 1599)
    assert large.exit_code == 2
    assert "has 40 x 40 pixels" in large.stderr
    read = annotrace(*command, "--follow-links", "--max-pixels", 1600)
    assert read.exit_code == 0, read.output


def test_a_folder_that_is_skipped_is_named(annotrace, linked):
    (linked / "photos" / "b.png").unlink()
    (linked / "elsewhere").mkdir()
    (linked / "photos" / "more").symlink_to("../elsewhere")
    result = annotrace("report", "run", *IMAGES)
    assert result.exit_code == 0, result.output
    assert "Warning: photos/more is a link that leads out of photos" in result.stderr
