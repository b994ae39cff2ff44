import sys

from annotrace.training import Epoch, best_epoch, held_out_loss, join_histories
from annotrace.training.history import NoProgress, ProgressBar, ProgressLines, show_progress


def test_nothing_is_shown_if_not_verbose(capsys):
    with show_progress(False, 2) as progress:
        progress.update(Epoch(2, 0.5, 0.25, 1.0))
    assert isinstance(progress, NoProgress)
    assert capsys.readouterr() == ("", "")


def test_a_log_gets_the_last_epoch_as_a_line(capsys):
    with show_progress(True, 2) as progress:
        progress.update(Epoch(1, 0.5, None, 1.0))
        progress.update(Epoch(2, 0.5, 0.25, 1.0))
    assert isinstance(progress, ProgressLines)
    assert capsys.readouterr().err == "epoch 2/2  loss 0.5000  held-out 0.2500\n"


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with show_progress(True, 2) as progress:
        progress.update(Epoch(1, 0.5, 0.25, 1.0))
    assert isinstance(progress, ProgressBar)


def test_without_rich_a_terminal_gets_lines(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert isinstance(show_progress(True, 2), ProgressLines)


def test_the_best_epoch():
    history = [Epoch(k + 1, 0.0, held_out, 0.0) for k, held_out in enumerate([0.3, -0.1, 0.2])]
    assert best_epoch(history).number == 2
    assert best_epoch([Epoch(1, 0.0, None, 0.0)]) is None
    assert held_out_loss(history) == -0.1
    assert held_out_loss([]) == 0.0


def test_joined_histories_continue_numbers_and_times():
    first = [Epoch(1, 0.9, None, 2.0), Epoch(2, 0.8, None, 4.0)]
    joined = join_histories(first, [Epoch(1, 0.7, 0.5, 3.0)])
    assert joined == [*first, Epoch(3, 0.7, 0.5, 7.0)]
    assert join_histories([], first) == first
