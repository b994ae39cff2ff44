import numpy as np
import polars as pl
import pytest

from annotrace import LabelTable


def arrays_of(path):
    with np.load(path) as arrays:
        return dict(arrays)


def test_what_is_simulated_can_be_learned_from(annotrace, tmp_path):
    assert annotrace("simulate", "--out", "sim").exit_code == 0
    fit = ("fit", "sim/labels.csv", "--features", "sim/features.npz", "--epochs", 2)
    result = annotrace(*fit, "--method", "vanilla", "--out", "run")
    assert result.exit_code == 0, result.output
    predict = ("predict", "run", "--features", "sim/test.npz", "--out", "p.csv")
    assert annotrace(*predict).exit_code == 0
    assert len(pl.read_csv(tmp_path / "p.csv")) == 397


def test_labels_follow_the_matrices(annotrace, tmp_path):
    args = ("--annotators", "hammer", "--skill", 0.8, "--n-annotators", 3)
    result = annotrace("simulate", *args, "--labels-per-item", "all", "--out", "sim")
    assert result.exit_code == 0, result.output
    table = LabelTable.read(tmp_path / "sim" / "labels.csv")
    assert (table.n_labels, table.n_annotators, table.n_classes) == (4200, 3, 10)
    # Correct if they know the class (0.8), and in one of ten guesses.
    assert np.mean(table.label == table.truth[table.item]) == pytest.approx(0.82, abs=0.02)
    saved = arrays_of(tmp_path / "sim" / "confusion.npz")
    assert saved["annotators"].tolist() == table.annotators.tolist()
    assert np.allclose(np.diagonal(saved["confusion"], axis1=1, axis2=2), 0.82, atol=0.05)


def test_items_of_labels_features_and_test_have_their_own_names(annotrace, tmp_path):
    annotrace("simulate", "--out", "sim")
    table = LabelTable.read(tmp_path / "sim" / "labels.csv")
    features = arrays_of(tmp_path / "sim" / "features.npz")
    test = arrays_of(tmp_path / "sim" / "test.npz")
    assert set(table.items.tolist()) == set(features["items"].tolist())
    assert not set(test["items"].tolist()) & set(features["items"].tolist())
    assert len(test["truth"]) == len(test["X"]) == 397


def test_the_same_seed_gives_the_same_labels(annotrace, tmp_path):
    for out, seed in (("a", 3), ("b", 3), ("c", 4)):
        annotrace("simulate", "--seed", seed, "--out", out)
    a, b, c = ((tmp_path / out / "labels.csv").read_bytes() for out in "abc")
    assert a == b != c


def test_a_crowd_that_names_classes_wrongly_is_noted(annotrace):
    result = annotrace("simulate", "--skill", 0.1, "--out", "sim")
    assert "not diagonally dominant" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--data", "mnist"), "--data-dir"),
        (("--data", "mnist", "--data-dir", "none"), "train-images-idx3-ubyte"),
        (("--data", "cifar10", "--data-dir", "none"), "data_batch_1.bin"),
        (("--annotators", "cifar10", "--skill", "0.5"), "leave out --n-annotators and --skill"),
        (("--labels-per-item", "6"), "from 1 to 5, the number of annotators, but got 6"),
    ],
)
def test_bad_input_is_one_line(annotrace, tmp_path, args, message):
    result = annotrace("simulate", *args, "--out", "sim")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "sim").exists()


def test_labels_per_item_is_a_number_or_all(annotrace):
    result = annotrace("simulate", "--labels-per-item", "some", "--out", "sim")
    assert result.exit_code == 2
    assert "expected a number or 'all', but got 'some'" in result.stderr
