"""Watching: rounds when enough is new, one line when the server goes, and nothing done twice."""

from threading import Event

import pytest
from fake_label_studio import TOKEN
from fake_server import serving

from annotrace.connect import LabelStudio
from annotrace.connect.watch import Pace, Watch
from annotrace.errors import ConnectError


@pytest.fixture
def lines():
    return []


@pytest.fixture
def fits():
    return []


@pytest.fixture
def watch(project, fits, lines):
    def refit(pulled):
        fits.append(pulled.table.n_labels)
        return pulled

    return Watch(project, refit, Pace(5, 2), lines.append, Event())


def test_it_fits_when_enough_is_new(fake, watch, fits):
    watch.look()
    watch.look()
    assert fits == [9]
    fake.answer(6, 2, "Positive")
    watch.look()
    assert fits == [9]
    fake.answer(6, 3, "Positive")
    watch.look()
    assert fits == [9, 11]


def test_a_changed_answer_is_seen(fake, watch, fits):
    watch.look()
    for answer in list(fake.annotations.values())[:2]:
        answer["result"][0]["value"]["choices"] = ["Neutral"]
        fake.tasks[answer["task"]]["updated_at"] = fake.tick()
    watch.look()
    assert fits == [9, 9]


def test_nothing_is_pulled_if_nothing_changed(fake, watch):
    watch.look()
    fake.page_sizes.clear()
    fake.predictions.append({"task": 1, "model_version": "ours"})
    watch.look()
    assert fake.page_sizes == [1]


def test_answers_that_come_during_a_fit_are_not_lost(fake, project, lines):
    fits = []

    def refit(pulled):
        if not fits:
            fake.answer(6, 2, "Positive")
            fake.answer(6, 3, "Positive")
        fits.append(pulled.table.n_labels)
        return pulled

    watch = Watch(project, refit, Pace(5, 2), lines.append, Event())
    watch.look()
    watch.look()
    assert fits == [9, 11]


def test_a_restart_is_one_line_and_the_round_is_repeated(fake, fits, lines):
    with serving(fake) as url:
        project = LabelStudio(url, 7, TOKEN)
        watch = Watch(project, lambda p: fits.append(1) or p, Pace(5, 2), lines.append, Event())
    for _ in range(3):
        watch.look()
    assert len(lines) == 1
    assert "Trying again" in lines[0]
    with serving(fake, int(url.rpartition(":")[2])):
        watch.look()
    assert fits == [1]
    assert lines[1:] == ["The server answers again."]


def test_a_refused_token_ends_it(fake, watch):
    watch.look()
    fake.tokens.clear()
    with pytest.raises(ConnectError, match="answered 401: the token is not accepted"):
        watch.look()


def test_contradictory_truth_is_reported_once(fake, watch, fits, lines):
    for name in ("Positive", "Negative"):
        fake.answer(1, 1, name, ground_truth=True)
    watch.look()
    watch.look()
    assert fits == []
    assert len(lines) == 1
    assert "An item has one true class" in lines[0]
    fake.annotations.popitem()
    fake.tasks[1]["updated_at"] = fake.tick()
    watch.look()
    assert fits == [9]


def test_run_stops_on_an_interrupt(watch, fits):
    def interrupt(pulled):
        raise KeyboardInterrupt

    watch._refit = interrupt
    with pytest.raises(KeyboardInterrupt):
        watch.run()
