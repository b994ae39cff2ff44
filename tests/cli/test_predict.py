import numpy as np
import polars as pl
import pytest

from annotrace.version import FORMAT

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said")


def test_new_items_get_a_class_and_probabilities(annotrace, run):
    X = np.array([[9, 0, 0], [0, 0, 9], [0, 9, 0]], np.float32)
    np.savez(run / "new.npz", X=X, items=np.array(["x", "y", "z"]))
    result = annotrace("predict", "run", "--features", "new.npz", "--out", "p.csv")
    assert result.exit_code == 0, result.output
    predicted = pl.read_csv(run / "p.csv")
    assert predicted.columns == ["item", "label", "confidence", "cat", "dog", "hen"]
    assert predicted.select("item", "label").rows() == [("x", "cat"), ("y", "hen"), ("z", "dog")]
    assert np.allclose(predicted.select("cat", "dog", "hen").sum_horizontal(), 1)


def test_rows_without_names_are_positions(annotrace, run):
    np.save(run / "new.npy", np.eye(3, dtype=np.float32) * 9)
    assert annotrace("predict", "run", "--features", "new.npy", "--out", "p.csv").exit_code == 0
    assert pl.read_csv(run / "p.csv")["item"].to_list() == [0, 1, 2]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("none", "--features", "features.npz", "--out", "p.csv"), "none: no run here"),
        (("run", "--features", "wide.npy", "--out", "p.csv"), "Expected items of shape (3,)"),
        (("run", "--features", "features.npz", "--out", "no/p.csv"), "there is no folder 'no'"),
        (("run", "--features", "features.npz", "--out", "labels.csv"), "already exists"),
        (("run", "--features", "features.npz", "--out", "run"), "run is a folder"),
        (("run", "--images", "photos", "--out", "p.csv"), "on features; use --features instead"),
        (("labels-only", "--features", "features.npz", "--out", "p.csv"), "no classifier"),
    ],
)
def test_bad_input_is_one_line(annotrace, run, args, message):
    np.save(run / "wide.npy", np.zeros((2, 5), np.float32))
    assert annotrace("aggregate", "labels.csv", *COLUMNS, "--out", "labels-only").exit_code == 0
    result = annotrace("predict", *args)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (run / "p.csv").exists()


def test_a_description_without_its_parts_is_rejected(annotrace, run):
    (run / "run" / "run.json").write_text(f'{{"format": {FORMAT}}}')
    result = annotrace("predict", "run", "--features", "features.npz", "--out", "p.csv")
    assert result.exit_code == 2
    assert "damaged" in result.stderr


def test_a_damaged_run_is_rejected(annotrace, run):
    with (run / "run" / "model.safetensors").open("ab") as file:
        file.write(b"more")
    result = annotrace("predict", "run", "--features", "features.npz", "--out", "p.csv")
    assert result.exit_code == 2
    assert "damaged" in result.stderr
