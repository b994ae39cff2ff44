import pytest
from fake_label_studio import TOKEN

from annotrace.connect import LabelStudio, Prediction
from annotrace.errors import ConnectError, InputError
from annotrace.labels.building import TableOptions


def triplets(table):
    names = (table.items[table.item], table.annotators[table.annotator], table.classes[table.label])
    return sorted(zip(*(part.tolist() for part in names), strict=True))


def test_pull(project):
    pulled = project.pull()
    assert pulled.table.items.tolist() == ["1", "2", "3", "4", "5", "6"]
    assert pulled.table.annotators.tolist() == ["ann@example.com", "bo@example.com"]
    assert pulled.table.classes.tolist() == ["Positive", "Negative", "Neutral"]
    assert triplets(pulled.table)[-2:] == [
        ("4", "bo@example.com", "Negative"),
        ("5", "ann@example.com", "Negative"),
    ]
    assert pulled.data["6"] == {"text": "text 6"}
    assert pulled.used.question == "sentiment"


def test_skipped_answers_are_counted_and_no_classes(fake, url):
    fake.answer(6, 2, "Neutral")
    fake.answer(6, 3, "Positive", was_cancelled=True)
    options = TableOptions(skip=["Neutral"])
    pulled = LabelStudio(url, 7, TOKEN, options=options).pull()
    assert pulled.table.classes.tolist() == ["Positive", "Negative"]
    assert pulled.used.skipped == {"cancelled": 1}


def test_a_class_that_is_no_longer_a_choice_is_kept(fake, project):
    fake.answer(6, 2, "Mixed")
    assert project.pull().table.classes.tolist() == ["Positive", "Negative", "Neutral", "Mixed"]


def test_repeats_are_by_time(fake, url):
    fake.answer(1, 2, "Negative")
    last = LabelStudio(url, 7, TOKEN, options=TableOptions(repeats="last")).pull()
    assert ("1", "ann@example.com", "Negative") in triplets(last.table)
    first = LabelStudio(url, 7, TOKEN, options=TableOptions(repeats="first")).pull()
    assert ("1", "ann@example.com", "Positive") in triplets(first.table)


def test_tasks_without_any_label(fake, project):
    fake.annotations.clear()
    pulled = project.pull()
    assert pulled.table is None
    assert list(pulled.data) == ["1", "2", "3", "4", "5", "6"]


def test_tasks_can_be_named_by_a_field(fake, url):
    by_text = LabelStudio(url, 7, TOKEN, item="text")
    assert by_text.pull().table.items.tolist()[0] == "text 1"
    assert by_text.push([Prediction("text 3", "Positive", 0.7)]).n_sent == 1
    assert fake.predictions[0]["task"] == 3
    fake.tasks[2]["data"] = {"text": "text 1"}
    with pytest.raises(InputError, match="tasks 1 and 2 have the same 'text'"):
        by_text.pull()


def test_truth_goes_both_ways(fake, project):
    project.pull()
    marked = project.mark_gold({"1": "Positive", "4": "Neutral", "6": "Positive"})
    assert marked == (0, 1, ["4", "6"])
    pulled = project.pull()
    assert pulled.table.truth.tolist() == [0, -1, -1, -1, -1, -1]
    assert pulled.table.n_labels == 9
    assert project.mark_gold({"1": "Positive"}) == (1, 0, [])


def test_an_annotation_that_was_deleted_meanwhile_is_not_marked(fake, project):
    project.pull()
    fake.annotations.clear()
    assert project.mark_gold({"1": "Positive"}) == (0, 0, ["1"])


def test_push_sets_the_project(fake, project):
    pulled = project.pull()
    pushed = project.push([Prediction(item, "Positive", 0.123456) for item in pulled.data])
    assert (pushed.n_sent, pushed.n_gone) == (6, 0)
    assert fake.predictions[0]["score"] == 0.1235
    assert fake.predictions[0]["result"][0]["value"] == {"choices": ["Positive"]}
    assert fake.project["model_version"] == pushed.version
    assert fake.project["maximum_annotations"] == 2
    titles = [view["data"]["title"] for view in fake.views.values()]
    assert titles == ["Default", "doubtful first (annotrace)"]


def test_a_queue_gives_out_tasks_by_doubt(fake, project):
    project.pull()
    scores = {"1": 0.9, "2": 0.8, "3": 0.7, "4": 0.6, "5": 0.5, "6": 0.4}
    project.push([Prediction(item, "Positive", score) for item, score in scores.items()])
    project.queue({"cy@example.com": ["1", "3", "2"]})
    tab = list(fake.views.values())[-1]["data"]
    given = []
    while (answer := fake.next_task({}, tab, 4))[0] == 200:
        given.append(answer[1]["id"])
        fake.answer(given[-1], 4, "Positive")
    assert given == [3, 2, 1]


def test_no_control_to_write_to(fake, project):
    project.pull()
    fake.project["parsed_label_config"] = {"boxes": {"type": "RectangleLabels", "to_name": ["i"]}}
    fake.annotations.clear()
    project.pull()
    with pytest.raises(ConnectError, match="no single control"):
        project.push([Prediction("1", "Positive", 0.5)])


def test_a_webhook_that_is_refused(fake, project):
    fake.failures.append(("POST /api/webhooks/", 403, {}))
    with pytest.raises(ConnectError, match=r"\(403\). It blocks addresses.*SSRF_PROTECTION"):
        project.subscribe("http://127.0.0.1:9/annotrace")


def test_webhooks_are_added_once_and_removed(fake, project):
    for _ in range(2):
        project.subscribe("http://127.0.0.1:9/annotrace")
    assert [hook["url"] for hook in fake.hooks.values()] == ["http://127.0.0.1:9/annotrace"]
    assert "PROJECT_UPDATED" not in next(iter(fake.hooks.values()))["actions"]
    project.unsubscribe("http://127.0.0.1:9/annotrace")
    assert fake.hooks == {}
