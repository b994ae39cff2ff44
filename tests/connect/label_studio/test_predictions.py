"""Predictions: named by content, complete or not there, and nobody else's touched."""

import pytest
from fake_label_studio import TOKEN, choice

from annotrace.connect.label_studio.api import LabelStudioApi
from annotrace.connect.label_studio.predictions import make_current, version_of, write_predictions
from annotrace.errors import ConnectError


@pytest.fixture
def api(url):
    return LabelStudioApi(url, 7, TOKEN)


@pytest.fixture
def made():
    return [{"task": k, "result": choice("Positive"), "score": 0.5} for k in range(1, 7)]


def test_a_version_is_named_by_its_content(made):
    assert version_of(made) == version_of(made[::-1])
    assert version_of(made) != version_of(made[1:])
    assert version_of(made) != version_of([made[0] | {"score": 0.6}, *made[1:]])


def test_the_same_predictions_are_sent_once(fake, api, made):
    version = version_of(made)
    assert write_predictions(api, made) == (version, 6, 0)
    assert write_predictions(api, made) == (version, 0, 0)
    assert fake.versions() == {version: 6}


def test_a_push_that_was_cut_off_is_completed(fake, api, made):
    version = version_of(made)
    fake.predictions = [each | {"model_version": version} for each in made[:4]]
    assert write_predictions(api, made) == (version, 6, 0)
    assert fake.versions() == {version: 6}


def test_an_import_whose_answer_was_lost_is_not_repeated(fake, api, made):
    fake.failures.append(("import/predictions", "lost"))
    with pytest.raises(ConnectError) as raised:
        write_predictions(api, made)
    assert raised.value.is_temporary
    assert write_predictions(api, made)[1] == 0
    assert fake.versions() == {version_of(made): 6}


def test_predictions_that_are_there_twice_are_written_anew(fake, api, made):
    version = version_of(made)
    fake.predictions = [each | {"model_version": version} for each in made * 2]
    write_predictions(api, made)
    assert fake.versions() == {version: 6}


def test_a_task_that_was_deleted_is_left_out(fake, api, made):
    fake.delete_task(2)
    assert write_predictions(api, made) == (version_of([made[0], *made[2:]]), 5, 1)


def test_predictions_that_are_refused_for_another_reason(fake, api, made):
    fake.failures.append(("import/predictions", 400, {"detail": "no"}))
    with pytest.raises(ConnectError, match="400: no"):
        write_predictions(api, made)


def test_a_project_that_never_has_the_right_number(fake, api, made):
    def lose(place):
        if place.startswith("GET"):
            fake.predictions.clear()

    fake.before = lose
    with pytest.raises(ConnectError, match=r"has 0 predictions.*after 6 were sent"):
        write_predictions(api, made)


def test_the_current_version_is_hidden_and_alone_of_annotrace(fake, api, made):
    fake.predictions = [{"task": 1, "model_version": name} for name in ("bert", "annotrace-old")]
    fake.project["model_version"] = "annotrace-old"
    version, _, _ = write_predictions(api, made)
    make_current(api, version)
    assert fake.versions() == {"bert": 1, version: 6}
    assert fake.project["model_version"] == version
    assert fake.project["show_collab_predictions"] is False
