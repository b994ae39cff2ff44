"""Damaged samples: a table, or one line that names the file, the record and the remedy."""

import json
import random
from pathlib import Path

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable

SAMPLES = Path(__file__).parents[1] / "samples"
OPTIONS = {
    "label_studio.json": {"question": "sentiment"},
    "doccano/bob.jsonl": {"annotator_name": "bob"},
}

# The damage to a sample (text that is replaced, or where it is cut), and the expected message.
DAMAGE = [
    ("label_studio.json", 700, "line 17: not JSON"),
    (
        "label_studio.json",
        ('"annotations": [', '"notes": ['),
        "record 1: field 'annotations' is not",
    ),
    (
        "label_studio.json",
        ('"completed_by": 8', '"by": 8'),
        "record 1: the file does not name the annotator",
    ),
    ("label_studio_min.json", -40, "not JSON"),
    ("label_studio_min.json", ('"id": 102,', ""), "record 3: 'id' cannot name the item"),
    (
        "label_studio_min.json",
        ('"Positive"', '{"choices": ["a", "b"]}'),
        "record 1: item '101' has s",
    ),
    ("prodigy_choice.jsonl", -30, "line 6: not JSON"),
    (
        "prodigy_choice.jsonl",
        ('"answer":"accept"', '"answer":"yes"'),
        "line 1: the answer is 'yes'",
    ),
    (
        "prodigy_choice.jsonl",
        ('["TECH"]', '["TECH","SPORT"]'),
        "line 1: item '1842734674' has sever",
    ),
    (
        "prodigy_binary.jsonl",
        ('"_input_hash":52', '"hash":52'),
        "line 3: '_input_hash' cannot name",
    ),
    ("prodigy_binary.jsonl", ('"label":"SPORT",', ""), "line 1: the record has neither 'accept'"),
    (
        "prodigy_binary.jsonl",
        ('"SPORT"', '"TECH"'),
        "there are several questions ('TECH', 'SPORT')",
    ),
    ("argilla.json", -50, "not JSON"),
    (
        "argilla.json",
        ('"value": "bad"', '"value": ["good", "bad"]'),
        "record 1: item 'r-1' has sev",
    ),
    ("argilla.json", ('"id": "r-2"', '"id": null'), "record 2: 'id' cannot name the item"),
    ("argilla_columns.json", ('["good", "bad"]', '["good"]'), "1 answers by 2 users"),
    ("argilla_columns.json", ('["r-1", ', "["), "fields have different lengths"),
    ("argilla_columns.json", ('"id": [', '"key": ['), "'id' cannot name the item"),
    ("doccano/bob.jsonl", -30, "line 3: not JSON"),
    (
        "doccano/bob.jsonl",
        ('["praise"]', '["praise", "complaint"]'),
        "line 3: item '3' has several",
    ),
    (
        "doccano/bob.jsonl",
        ('["complaint"]', '[[0, 3, "X"]]'),
        "line 1: 'label' contains spans of text",
    ),
    ("cvat/job_11/annotations.xml", -40, "invalid XML"),
    ("cvat/job_11/annotations.xml", (' name="photos/2.jpg"', ""), "an image without a name"),
    (
        "cvat/job_11/annotations.xml",
        ('<tag label="cat"', '<tag name="cat"'),
        "a tag without a label",
    ),
    ("labelbox.ndjson", -30, "line 3: not JSON"),
    ("labelbox.ndjson", ('"projects"', '"project"'), "line 1: field 'projects' is not an object"),
    (
        "labelbox.ndjson",
        ('"created_by"', '"made_by"'),
        "line 1: the file does not name the annotator",
    ),
    ("ground_truth_request.json", -20, "not JSON"),
    ("ground_truth_request.json", ('"content"', '"s3Uri"'), "record 1: an answer has no content"),
    (
        "ground_truth_request.json",
        ('\\"label\\": \\"Cat\\"', ""),
        "the answer for item 's3://bucket",
    ),
    ("ground_truth_workers.manifest", ("FromAllWorkers", ""), "line 1: a consolidated manifest"),
    ("peerannot.json", -5, "not JSON"),
    ("peerannot.json", ('"1": 2', '"1": [1, 2]'), "task '0': item '0' has several labels"),
    ("peerannot.json", ('{"0": 0}', '{"0": 0.5}'), "line 1, label of item '2': '0.5' is a score"),
]


@pytest.mark.parametrize(("sample", "damage", "message"), DAMAGE, ids=range(len(DAMAGE)))
def test_damage_gets_one_line_that_names_file_record_and_remedy(sample, damage, message, tmp_path):
    text = (SAMPLES / sample).read_text(encoding="utf-8")
    if isinstance(damage, int):
        text = text[:damage]
    else:
        assert damage[0] in text
        text = text.replace(*damage, 1)
    path = tmp_path / Path(sample).name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        LabelTable.read(path, **OPTIONS.get(sample, {}))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", ")."))


def put_something_else(value, rng):
    """Change one value of a JSON file, chosen at random."""
    places = []

    def walk(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(value)
    node, key = rng.choice(places)
    if rng.random() < 0.1:
        del node[key]
    else:
        node[key] = rng.choice([None, True, "", 1.5, [], {}, [None], ["a", "b"], {"a": 1}, [[1]]])


@pytest.mark.parametrize(
    "sample", sorted({sample for sample, _, _ in DAMAGE if not sample.endswith("xml")})
)
def test_any_damage_gives_a_table_or_one_line(sample, tmp_path):
    text = (SAMPLES / sample).read_text(encoding="utf-8")
    by_line = not sample.endswith(".json")
    rng, reported = random.Random(0), []
    for _ in range(50):
        records = list(map(json.loads, text.splitlines() if by_line else [text]))
        put_something_else(records, rng)
        (tmp_path / "a").write_text("".join(json.dumps(record) + "\n" for record in records))
        try:
            LabelTable.read(tmp_path / "a", **OPTIONS.get(sample, {}))
        except InputError as error:
            reported.append(str(error))
    assert reported
    assert not any("\n" in message for message in reported)
