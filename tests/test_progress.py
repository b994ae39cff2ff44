import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from annotrace.progress import (
    NoProgress,
    ProgressBar,
    ProgressLines,
    StageParts,
    report_stage,
    show_progress,
    show_stages,
)


def test_nothing_is_shown_if_not_verbose(capsys):
    with show_progress(False, 2, "epoch") as progress:
        progress.update(2)
    assert isinstance(progress, NoProgress)
    assert capsys.readouterr() == ("", "")


def test_a_log_gets_the_end_as_a_line(capsys):
    with show_progress(True, 2, "epoch") as progress:
        progress.update(1, "loss 0.9")
        progress.update(2, "loss 0.5")
    assert isinstance(progress, ProgressLines)
    assert capsys.readouterr().err == "epoch 2/2  loss 0.5\n"


def test_a_log_gets_a_line_every_ten_seconds(capsys, monkeypatch):
    seconds = iter([0.0, 9.0, 11.0, 11.0, 12.0])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    with show_progress(True, 9, "item") as progress:
        for done in (1, 2, 3):
            progress.update(done)
    assert capsys.readouterr().err == "item 2/9\n"


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with show_progress(True, 2, "epoch") as progress:
        progress.update(1, "loss 0.9")
    assert isinstance(progress, ProgressBar)


def test_without_rich_a_terminal_gets_lines(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert isinstance(show_progress(True, 2, "epoch"), ProgressLines)


def work(seconds, monkeypatch):
    """Two stages of four parts, each part of which takes some seconds."""
    clock = iter(range(0, 10**6, seconds))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    for stage in ("reading", "writing"):
        for done in range(5):
            report_stage(stage, done, 4, "rows")


def test_each_long_stage_is_shown(capsys, monkeypatch):
    with show_stages(True):
        work(20, monkeypatch)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "writing 4/4  rows"
    assert {line.split()[0] for line in lines} == {"reading", "writing"}


def test_short_stages_and_quiet_commands_show_nothing(capsys, monkeypatch):
    with show_stages(True):
        report_stage("reading", 1, 2)
    with show_stages(False):
        work(20, monkeypatch)
    work(20, monkeypatch)
    assert capsys.readouterr() == ("", "")


def test_parts_are_counted_over_threads(capsys, monkeypatch):
    clock = iter(range(0, 10**6, 20))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    parts = StageParts("reading", 6)
    with show_stages(True), ThreadPoolExecutor(2) as threads:
        for _ in range(7):
            threads.submit(copy_context().run, parts.finish_one)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "reading 6/6"
    assert [int(line.split()[1][0]) for line in lines] == list(range(1, 7))
