"""The report of a run that others write to."""

import shutil

import pytest

import annotrace as at
from annotrace.errors import RunError
from annotrace.report.live_report import LiveReport


@pytest.fixture
def run(tmp_path, aggregated):
    aggregated.save(tmp_path / "run")
    return tmp_path / "run"


def save_with_report(model, run, title):
    model.save(run)
    at.write_report(model, run / "report.html", title=title)


def test_the_stored_report_is_shown_until_the_run_changes(run, aggregated):
    save_with_report(aggregated, run, "First")
    live = LiveReport(run)
    first, problem = live.current()
    assert problem == ""
    assert first.page == (run / "report.html").read_bytes()
    assert first.counts["labels"] == aggregated.table_.n_labels
    assert first.verdict == aggregated.diagnosis_.verdict
    assert live.current()[0] is first
    save_with_report(aggregated, run, "Second")
    second, _ = live.current()
    assert b"<title>Second" in second.page
    assert second.version != first.version


def test_without_a_report_and_anonymously_the_page_is_made_from_the_run(run, aggregated):
    made = LiveReport(run).current()[0].page.decode()
    assert "mallory" in made
    save_with_report(aggregated, run, "With names")
    assert "mallory" not in LiveReport(run, anonymous=True).current()[0].page.decode()


def test_the_last_report_stays_while_there_is_no_run(run, aggregated):
    live = LiveReport(run)
    first, _ = live.current()
    shutil.rmtree(run)
    kept, problem = live.current()
    assert kept is first
    assert "no run here" in problem
    aggregated.save(run)
    assert live.current()[1] == ""


@pytest.mark.parametrize("content", ["{", "[]", '{"counts": 3}', '{"counts": {"labels": "x"}}'])
def test_a_damaged_run_is_an_error(run, content):
    (run / "run.json").write_text(content)
    with pytest.raises(RunError, match=r"run.json is damaged"):
        LiveReport(run)


def test_a_folder_without_run_is_an_error(tmp_path):
    with pytest.raises(RunError, match="no run here"):
        LiveReport(tmp_path)
