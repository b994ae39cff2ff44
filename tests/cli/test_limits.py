import numpy as np
import pytest

import annotrace.cli.limits as limits

LABELS = "item,annotator,label\na,kim,x\nb,kim,y\n"


@pytest.mark.parametrize(
    ("text", "size"), [("10", 10), ("3kB", 3072), ("500MB", 500 * 2**20), ("8gb", 2**33)]
)
def test_sizes_have_units(text, size):
    assert limits.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "8 apples", "-1GB", "1e9", "GB"])
def test_other_sizes_are_rejected(annotrace, text):
    result = annotrace("convert", "labels.csv", "--max-size", text, "--out", "out.csv")
    assert result.exit_code == 2
    assert "Expected a size such as 500MB or 8GB" in result.stderr


@pytest.mark.parametrize(
    ("option", "low", "high"),
    [("--max-size", "10", "1kB"), ("--max-columns", "2", "3"), ("--max-cell", "2", "3")],
)
def test_an_error_names_the_option_that_raises_the_limit(annotrace, tmp_path, option, low, high):
    (tmp_path / "labels.csv").write_text(LABELS)
    arguments = ("convert", str(tmp_path / "labels.csv"), "--out", str(tmp_path / "out.csv"))
    refused = annotrace(*arguments, option, low)
    assert refused.exit_code == 2
    assert f"({option} on the command line)" in refused.stderr
    assert annotrace(*arguments, option, high).exit_code == 0


def test_limits_are_positive(annotrace, tmp_path):
    (tmp_path / "labels.csv").write_text(LABELS)
    result = annotrace(
        "convert", str(tmp_path / "labels.csv"), "--max-depth", "0", "--out", "o.csv"
    )
    assert result.exit_code == 2
    assert "Expected `max_depth` to be a positive integer, but got 0." in result.stderr


def test_the_limits_hold_for_features(annotrace, tmp_path):
    (tmp_path / "labels.csv").write_text(LABELS)
    np.savez(tmp_path / "X.npz", X=np.zeros((2, 300)), items=["a", "b"])
    files = (str(tmp_path / "labels.csv"), "--features", str(tmp_path / "X.npz"))
    result = annotrace("fit", *files, "--max-size", "1kB", "--out", str(tmp_path / "run"))
    assert result.exit_code == 2
    assert "X.npz: " in result.stderr
    assert "--max-size" in result.stderr


@pytest.mark.parametrize("command", ["fit", "aggregate", "convert", "predict"])
def test_help_lists_the_limits_by_themselves(annotrace, command):
    options, _, listed = annotrace(command, "--help").stdout.partition("Limits on the files")
    assert "--max-size SIZE" in listed
    assert "--max-size" not in options
    assert "--out" in options


def test_iterations_are_not_a_limit_on_files(annotrace):
    assert "--max-iter" in annotrace("aggregate", "--help").stdout.partition("Limits on")[0]
