import pytest
from fake_doccano import PASSWORD

from annotrace.connect import Doccano, Prediction
from annotrace.errors import ConnectError, InputError, UnsupportedError


def triplets(table):
    names = (table.items[table.item], table.annotators[table.annotator], table.classes[table.label])
    return sorted(zip(*(part.tolist() for part in names), strict=True))


EXPECTED = [
    *(("1", "ann", "Positive"), ("1", "bo.b", "Positive")),
    *(("2", "ann", "Negative"), ("2", "bo.b", "Negative")),
    *(("3", "ann", "Positive"), ("3", "bo.b", "Positive")),
    *(("4", "ann", "Positive"), ("4", "bo.b", "Negative")),
    ("5", "ann", "Negative"),
]


def test_pull(project):
    pulled = project.pull()
    assert triplets(pulled.table) == EXPECTED
    assert pulled.table.items.tolist() == ["1", "2", "3", "4", "5", "6"]
    assert pulled.table.annotators.tolist() == ["ann", "bo.b"]
    assert pulled.table.classes.tolist() == ["Positive", "Negative", "Neutral"]
    assert pulled.data["6"] == {"text": "text 6"}
    assert pulled.notes == ()


def test_metadata_called_id_replace_the_number_in_the_export(fake, project):
    for number in (1, 4):
        fake.examples[number]["meta"] = {"id": f"row {number}"}
    assert triplets(project.pull().table) == EXPECTED


def test_metadata_called_id_that_occur_twice(fake, project):
    fake.examples[1]["meta"] = {"id": 4}
    with pytest.raises(InputError, match="examples '1' and '4' both with the id '4'"):
        project.pull()


def test_an_export_of_other_examples_is_not_used(fake, project):
    def delete(place):
        if "download" in place:
            fake.examples.pop(6, None)

    fake.before = delete
    with pytest.raises(ConnectError, match="does not have the examples") as raised:
        project.pull()
    assert raised.value.is_temporary


def test_a_collaborative_project(fake, project):
    fake.project["collaborative_annotation"] = True
    fake.members.remove(3)
    pulled = project.pull()
    renamed = sorted((item, who.replace("bo.b", "3"), label) for item, who, label in EXPECTED)
    assert triplets(pulled.table) == renamed
    assert "POST /v1/projects/7/download" not in fake.requests


def test_labels_of_former_members_are_noted(fake, project):
    fake.members.remove(3)
    pulled = project.pull()
    assert triplets(pulled.table) == [row for row in EXPECTED if row[1] == "ann"]
    assert "no longer a member" in pulled.notes[0]


def test_examples_without_any_label(fake, project):
    fake.labels.clear()
    pulled = project.pull()
    assert pulled.table is None
    assert list(pulled.data) == ["1", "2", "3", "4", "5", "6"]


def test_intents_are_classes(fake, project):
    fake.project["project_type"] = "IntentDetectionAndSlotFilling"
    assert triplets(project.pull().table) == EXPECTED


def test_a_project_without_classes(fake, project):
    fake.project["project_type"] = "Seq2seq"
    with pytest.raises(InputError, match="of the type Seq2seq, whose answers are not classes"):
        project.pull()


def test_several_labels_in_one_answer(fake, url, project):
    fake.label(1, 2, "Neutral")
    with pytest.raises(InputError, match="ann has given item '1' several labels"):
        project.pull()
    pulled = Doccano(url, 7, "admin", PASSWORD, skip=["Neutral"]).pull()
    assert triplets(pulled.table) == EXPECTED
    assert pulled.table.classes.tolist() == ["Positive", "Negative"]
    with pytest.raises(InputError, match="no class 'neutral' to skip; it has 'Positive'"):
        Doccano(url, 7, "admin", PASSWORD, skip=["neutral"]).pull()


def test_examples_can_be_named_by_a_field(fake, url):
    by_text = Doccano(url, 7, "admin", PASSWORD, item="text").pull()
    assert triplets(by_text.table)[0] == ("text 1", "ann", "Positive")
    for number, example in fake.examples.items():
        example["meta"] = {"key": f"k{number}"}
    by_key = Doccano(url, 7, "admin", PASSWORD, item="key")
    assert triplets(by_key.pull().table)[0] == ("k1", "ann", "Positive")
    fake.examples[2]["meta"] = {"key": "k1"}
    with pytest.raises(InputError, match="examples 1 and 2 have the same 'key'"):
        by_key.pull()
    fake.examples[2]["meta"] = {}
    with pytest.raises(InputError, match="example 2 has no 'key'"):
        by_key.pull()


def test_the_file_of_an_image_is_a_field(fake, project):
    fake.examples[1] |= {"text": None, "upload_name": "cat.jpg"}
    assert project.pull().data["1"] == {"filename": "cat.jpg"}


def test_the_marker_changes_with_labels(fake, project):
    before = project.marker()
    assert project.marker() == before
    fake.label(6, 4, "Neutral")
    changed = project.marker()
    assert changed != before
    fake.add_example(7, "new")
    assert project.marker() != changed


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda tool: tool.push([Prediction("1", "Positive", 0.9)]), "stores no predictions"),
        (lambda tool: tool.queue({"ann": ["1"]}), "assigns no examples"),
        (lambda tool: tool.mark_gold({"1": "Positive"}), "marks no labels as ground truth"),
        (lambda tool: tool.subscribe("http://127.0.0.1:9/annotrace"), "calls no webhooks"),
    ],
)
def test_what_doccano_cannot_do(fake, project, ask, said):
    with pytest.raises(UnsupportedError, match=f"^doccano .*{said}"):
        ask(project)
    assert fake.requests == []
