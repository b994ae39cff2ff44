import pytest
from fake_label_studio import TOKEN

from annotrace.connect.label_studio.api import LabelStudioApi
from annotrace.connect.label_studio.tabs import MAX_TASKS, allow_annotations, write_tabs


@pytest.fixture
def api(url):
    return LabelStudioApi(url, 7, TOKEN)


def shown(view):
    return [each["value"] for each in view["data"]["filters"]["items"]]


def test_tabs_are_made_once_and_then_changed(fake, api, url):
    first = write_tabs(api, {"ann": [1, 2], "bo": []})
    again = write_tabs(api, {"ann": [3], "bo": [4]})
    assert first == again
    by_title = {view["data"]["title"]: view for view in fake.views.values()}
    assert list(by_title) == ["Default", "ann (annotrace)", "bo (annotrace)"]
    assert shown(by_title["ann (annotrace)"]) == [3]
    assert first["ann"] == f"{url}/projects/7/data?tab={by_title['ann (annotrace)']['id']}"


def test_a_tab_without_tasks_shows_none(fake, api):
    write_tabs(api, {"ann": []})
    assert shown(list(fake.views.values())[-1]) == [0]


def test_a_tab_is_ordered_by_doubt_and_tells_no_answers(fake, api):
    write_tabs(api, {"doubtful first": None})
    tab = list(fake.views.values())[-1]["data"]
    assert tab["ordering"] == ["tasks:predictions_score"]
    assert "filters" not in tab
    assert "tasks:predictions_results" in tab["hiddenColumns"]["explore"]
    assert "tasks:annotations_results" in tab["hiddenColumns"]["labeling"]


def test_tabs_of_the_user_stay(fake, api):
    fake.write_view({}, {"project": 7, "data": {"title": "mine"}}, 1)
    write_tabs(api, {"ann": [1]})
    assert [view["data"]["title"] for view in fake.views.values()] == ["mine", "ann (annotrace)"]


def test_a_long_queue_is_cut(fake, api):
    write_tabs(api, {"ann": range(1, 1000)})
    assert len(shown(list(fake.views.values())[-1])) == MAX_TASKS


def test_annotations_are_allowed_but_never_reduced(fake, api):
    allow_annotations(api, 3)
    allow_annotations(api, 2)
    assert fake.project["maximum_annotations"] == 3
