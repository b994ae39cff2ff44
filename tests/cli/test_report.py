import json

import numpy as np
import pytest
from PIL import Image

import annotrace as at

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said")


@pytest.fixture
def aggregated(annotrace, crowd):
    made = ("aggregate", "labels.csv", *COLUMNS, "--out", "run")
    result = annotrace(*made)
    assert result.exit_code == 0, result.output
    return crowd / "run"


def read(path):
    return path.read_text(encoding="utf-8")


def test_an_aggregation_writes_a_report_and_says_where(annotrace, crowd):
    result = annotrace("aggregate", "labels.csv", *COLUMNS, "--out", "run")
    assert "report.html in a browser" in result.output
    assert ">ann</bdi>" in read(crowd / "run" / "report.html")


def test_a_run_may_have_no_report_or_an_anonymous_one(annotrace, crowd):
    made = ("aggregate", "labels.csv", *COLUMNS, "--out", "run")
    assert annotrace(*made, "--anonymous").exit_code == 0
    page = read(crowd / "run" / "report.html")
    assert ">ann</bdi>" not in page
    assert "Annotator 3" in page
    assert "already has" in annotrace(*made).output
    assert annotrace(*made, "--no-report", "--overwrite").exit_code == 0
    assert not (crowd / "run" / "report.html").exists()


def test_a_report_is_written_from_a_run_as_it_was_when_fitted(annotrace, aggregated):
    before = read(aggregated / "report.html")
    result = annotrace("report", "run", "--out", "again.html")
    assert result.exit_code == 0, result.output
    assert "again.html" in result.output
    again = read(aggregated.parent / "again.html")
    assert again == before
    refused = annotrace("report", "run", "--out", "again.html")
    assert refused.exit_code == 2
    assert "again.html already exists" in refused.output


def test_a_classifier_has_a_report_with_pictures(annotrace, crowd):
    (crowd / "photos").mkdir()
    for k in range(90):
        Image.fromarray(np.full((8, 8), k, np.uint8)).save(crowd / "photos" / f"photo-{k}.png")
    made = ("fit", "labels.csv", *COLUMNS, "--features", "features.npz", "--method", "trace")
    result = annotrace(*made, "--epochs", 2, "--out", "run")
    assert result.exit_code == 0, result.output
    assert "<img" not in read(crowd / "run" / "report.html")
    assert annotrace("report", "run", "--images", "photos", "--title", "Pets").exit_code == 0
    page = read(crowd / "run" / "report.html")
    assert '<img src="data:image/png' in page
    assert "<title>Pets:" in page


def test_a_broken_picture_is_skipped_on_request(annotrace, aggregated, tmp_path):
    (tmp_path / "photos").mkdir()
    for k in range(90):
        (tmp_path / "photos" / f"photo-{k}.png").write_bytes(b"broken")
    show = ("report", "run", "--images", "photos")
    failed = annotrace(*show)
    assert failed.exit_code == 2
    assert "--skip-broken" in failed.stderr
    done = annotrace(*show, "--skip-broken")
    assert done.exit_code == 0, done.output
    assert "Warning: A picture is skipped. photos/photo-" in done.stderr
    assert "<img" not in read(aggregated / "report.html")


def test_a_folder_that_is_no_run_is_rejected(annotrace, tmp_path):
    (tmp_path / "empty").mkdir()
    result = annotrace("report", "empty")
    assert result.exit_code == 2
    assert "no run here" in result.output


def test_at_load_reads_aggregations_with_what_they_were_made_with(aggregated):
    run = at.load(aggregated)
    assert isinstance(run, at.aggregation.Ensemble)
    assert (run.method, run.max_iter) == ("ensemble", 300)
    saved = json.loads(read(aggregated / "run.json"))
    assert run.diagnosis_.verdict == saved["diagnosis"]["verdict"]
    np.testing.assert_allclose(run.prior_.sum(), 1)
