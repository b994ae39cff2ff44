import base64
import io
import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from PIL import Image

import annotrace as at
from annotrace.cli.main import main


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The run folder, and what was printed."""
    out = tmp_path_factory.mktemp("demo") / "run"
    result = CliRunner().invoke(main, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.stdout.splitlines()


def numbers(line):
    return [float(number) for number in re.findall(r"[\d.]+", line)]


def test_the_demo_beats_a_classifier_on_majority_vote(demo):
    out, lines = demo
    rows = {line.split("  ")[0]: line for line in lines}
    (vote,) = numbers(rows["majority vote"])
    (plain,) = numbers(rows["classifier on majority vote"])
    labelled, new = numbers(rows["annotrace"])
    assert 0.45 < vote < 0.55
    assert new > plain + 0.25
    assert labelled > 0.9
    test = at.data.load_digits().split(1400)[1]
    assert round(at.load(out).score(test.X, test.y), 3) == new


def test_the_annotators_are_reported_with_true_and_estimated_skill(demo):
    out, lines = demo
    start = next(k for k, line in enumerate(lines) if "true skill" in line)
    rows = [numbers(line) for line in lines[start + 1 : start + 6]]
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4]
    assert sum(row[1] for row in rows) == 1400
    assert all(abs(true - 0.5) < 0.05 and abs(guess - true) < 0.15 for *_, true, guess in rows)
    written = pl.read_csv(out / "annotators.csv")["skill"]
    assert [guess for *_, guess in rows] == written.round(3).to_list()


def test_the_report_shows_the_pictures_of_its_items(demo):
    out, _ = demo
    page = (out / "report.html").read_text(encoding="utf-8")
    shown = re.findall(r'base64,([^"]+)".*?<bdi class="name">(\d+)</bdi>', page)
    assert len(shown) > 20
    digits = at.data.load_digits().split(1400)[0].X.reshape(-1, 8, 8)
    for picture, item in shown:
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))))
        np.testing.assert_array_equal(pixels, np.round(digits[int(item)] / 16 * 255))


def test_an_earlier_run_is_not_overwritten_without_the_option(annotrace, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "truth.csv").write_text("mine")
    result = annotrace("demo", "--out", "run")
    assert result.exit_code == 2
    assert (tmp_path / "run" / "truth.csv").read_text() == "mine"
