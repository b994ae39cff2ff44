import sys

import pytest

from annotrace.progress import NoProgress, ProgressLines
from annotrace.training import expect_trainings, show_trainings
from annotrace.training.progress import (
    Estimate,
    describe_seconds,
    show_training,
    skip_training,
)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def passes(seconds):
        now[0] += seconds

    return passes


def test_time_left_is_that_of_the_usual_training_times_those_to_come(clock):
    estimate = Estimate()
    estimate.expect(5)
    estimate.begin()
    assert estimate.seconds_left() is None
    clock(6)
    estimate.share = 0.1
    # The first of five trainings seems to take 60 seconds, as it may take all its epochs.
    assert estimate.seconds_left() == pytest.approx(54 + 4 * 60)
    clock(4)
    estimate.finish()
    assert estimate.seconds_left() == pytest.approx(4 * 10)
    estimate.begin()
    clock(5)
    estimate.share = 0.1  # 50 seconds by its epochs, but the first one took 10.
    assert estimate.seconds_left() == pytest.approx(5 + 3 * 10)
    clock(7)
    estimate.share = 0.8  # Longer than usual: 15 seconds by its epochs.
    assert estimate.seconds_left() == pytest.approx(3 + 3 * 10)
    clock(8)
    estimate.finish()
    assert estimate.seconds_left() == pytest.approx(3 * 15)


def test_what_is_computed_between_trainings_counts(clock):
    estimate = Estimate()
    estimate.expect(3)
    for _ in range(2):
        estimate.begin()
        clock(4)
        estimate.finish()
        clock(2)
    # 4 and 6 seconds; 2 of the third one's have passed.
    assert estimate.seconds_left() == pytest.approx(5 - 2)


def test_trainings_of_a_checkpoint_are_done_in_no_time(clock):
    estimate = Estimate()
    estimate.expect(4)
    clock(0.1)
    estimate.skip()
    estimate.begin()
    clock(10)
    estimate.finish()
    assert (estimate.done, estimate.seconds_left()) == (2, pytest.approx(20))


def test_the_number_may_turn_out_smaller_or_larger(clock):
    estimate = Estimate()
    estimate.expect(9)
    estimate.begin()
    clock(10)
    estimate.finish()
    estimate.expect(2)
    assert (estimate.total, estimate.seconds_left()) == (3, pytest.approx(20))
    for _ in range(3):
        estimate.begin()
        estimate.finish()
    assert estimate.total == 4


def test_after_a_time_limit_one_more_training_begins(clock):
    estimate = Estimate()
    estimate.begin()
    estimate.expect(100, by=1030.0)
    clock(10)
    estimate.finish()
    # The limit is in 20 seconds: the present training, 20 seconds of others, and one more.
    assert estimate.seconds_left() == pytest.approx(10 + 20 + 10)
    clock(25)
    estimate.begin()
    estimate.share = 0.5
    assert estimate.seconds_left() == pytest.approx(25 + 10)


def test_a_log_gets_one_count_of_all_trainings(clock, capsys):
    with show_trainings(True):
        expect_trainings(3)
        for number in range(2):
            with show_training(True, 4) as progress:
                for epoch in range(1, 5):
                    clock(4)
                    progress.update(epoch, f"loss {number}.{epoch}")
        skip_training()
    assert capsys.readouterr().err.splitlines() == [
        "training 1/3  epoch 4/4  loss 0.4  0:00:32 left",
        "training 2/3  epoch 3/4  loss 1.3  0:00:20 left",
        "3 trainings in 0:00:28",
    ]


def test_an_error_stays_the_only_line(clock, capsys):
    def fail():
        with show_trainings(True), show_training(True, 4) as progress:
            progress.update(1)
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fail()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_gets_one_bar(monkeypatch, capsys, has_rich):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("FORCE_COLOR", "1")
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    with show_trainings(True):
        expect_trainings(2)
        for _ in range(2):
            with show_training(True, 2) as progress:
                progress.update(1, "loss 0.9")
                progress.update(2, "loss 0.5")
    shown = capsys.readouterr().err
    assert ("2/2" in shown) == has_rich
    assert ("2 trainings in" in shown) == (not has_rich)


def test_one_training_has_its_own_display():
    assert isinstance(show_training(True, 2), ProgressLines)
    with show_trainings(True):
        assert type(show_training(False, 2)) is NoProgress
    with show_trainings(False):
        assert isinstance(show_training(True, 2), ProgressLines)
    expect_trainings(3)
    skip_training()


def test_times_are_described():
    assert [describe_seconds(s) for s in (None, 0.4, 65, 3700)] == [
        "-:--:--",
        "0:00:00",
        "0:01:05",
        "1:01:40",
    ]
