"""Each format read from a sample in the schema that its tool documents, whole and damaged."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.formats import FORMATS
from annotrace.labels.formats.documents import open_document
from annotrace.labels.importing import find_format, tell_skipped
from annotrace.labels.reading import list_files

SAMPLES = Path(__file__).parents[1] / "samples"
USER = "b1f1c0de-0000-4000-8000-00000000000"

# Written by hand: the sample, the options, the format, and the table in the long form.
EXPECTED = {
    "label_studio.json": (
        {"question": "sentiment"},
        "label-studio",
        "item,annotator,label,truth\n"
        "101,ann@example.com,Positive,Positive\n"
        "101,8,Negative,Positive\n"
        "102,8,Negative,\n",
        "3 answers skipped (1 cancelled, 1 empty, 1 draft)",
    ),
    "label_studio_min.json": (
        {},
        "label-studio-min",
        "item,annotator,label\n101,7,Positive\n101,8,Negative\n102,8,Negative\n",
        "1 answer skipped (1 empty)",
    ),
    "prodigy_choice.jsonl": (
        {"item": "doc"},
        "prodigy",
        "item,annotator,label\nn-1,news-ann,TECH\nn-1,news-bob,SPORT\nn-2,news-bob,SPORT\n",
        "3 answers skipped (1 ignored, 1 empty, 1 rejected)",
    ),
    "prodigy_binary.jsonl": (
        {},
        "prodigy",
        "item,annotator,label\n"
        "-487516519,news-ann,accept\n"
        "-487516519,news-bob,reject\n"
        "52,news-ann,reject\n",
        "1 answer skipped (1 ignored)",
    ),
    "argilla.json": (
        {},
        "argilla",
        f"item,annotator,label\nr-1,{USER}1,good\nr-1,{USER}2,bad\nr-2,{USER}1,bad\n",
        "2 answers skipped (1 draft, 1 discarded)",
    ),
    "argilla_columns.json": (
        {"item": "text"},
        "argilla",
        "item,annotator,label\n"
        f"Fast and quiet,{USER}1,good\n"
        f"Fast and quiet,{USER}2,bad\n"
        f"Broke at once,{USER}1,bad\n",
        "2 answers skipped (1 draft, 1 discarded)",
    ),
    "doccano": (
        {},
        "doccano",
        "item,annotator,label\n"
        "1,ann,complaint\n"
        "1,bob,complaint\n"
        "2,ann,praise\n"
        "2,bob,complaint\n"
        "3,bob,praise\n",
        "1 answer skipped (1 empty)",
    ),
    "cvat": (
        {},
        "cvat",
        "item,annotator,label\n"
        "photos/1.jpg,ann,cat\n"
        "photos/1.jpg,job_12,dog\n"
        "photos/2.jpg,ann,dog\n"
        "photos/2.jpg,job_12,dog\n"
        "photos/3.jpg,ann,dog\n",
        "1 answer skipped (1 empty)",
    ),
    "labelbox.ndjson": (
        {},
        "labelbox",
        "item,annotator,label\n"
        "yard-1,ann@example.com,Cat\n"
        "yard-1,bob@example.com,Dog\n"
        "yard-2,ann@example.com,Dog\n",
        "2 answers skipped (1 empty, 1 skipped)",
    ),
    "ground_truth_request.json": (
        {},
        "ground-truth",
        "item,annotator,label\n"
        "s3://bucket/photos/1.jpg,private.eu-west-1.aaa,Cat\n"
        "s3://bucket/photos/1.jpg,private.eu-west-1.bbb,Dog\n"
        "s3://bucket/photos/2.jpg,private.eu-west-1.aaa,Dog\n",
        "1 answer skipped (1 empty)",
    ),
    "ground_truth_workers.manifest": (
        {},
        "ground-truth",
        "item,annotator,label\n"
        "s3://bucket/photos/1.jpg,private.eu-west-1.aaa,Cat\n"
        "s3://bucket/photos/1.jpg,private.eu-west-1.bbb,Dog\n"
        "s3://bucket/photos/2.jpg,private.eu-west-1.aaa,Dog\n",
        "1 answer skipped (1 empty)",
    ),
    "ground_truth_responses": (
        {},
        "ground-truth",
        "item,annotator,label\n"
        "0,private.eu-west-1.aaa,Cat\n"
        "0,private.eu-west-1.bbb,Dog\n"
        "1,private.eu-west-1.aaa,Dog\n",
        None,
    ),
    "peerannot.json": (
        {},
        "peerannot",
        "item,annotator,label\n0,0,2\n0,1,2\n0,3,1\n1,1,1\n1,3,1\n2,0,0\n",
        None,
    ),
    "crowd_kit.csv": (
        {},
        None,
        "item,annotator,label\nt1,w1,cat\nt1,w2,dog\nt2,w1,dog\n",
        None,
    ),
    "cleanlab.csv": (
        {},
        None,
        "item,annotator,label\n0,annotator_1,cat\n1,annotator_1,dog\n1,annotator_2,cat\n",
        None,
    ),
}


def as_long(table, path):
    table.write(path)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("sample", EXPECTED)
def test_a_sample_becomes_the_table_written_by_hand(sample, tmp_path):
    options, _, expected, _ = EXPECTED[sample]
    table = LabelTable.read(SAMPLES / sample, **options)
    assert as_long(table, tmp_path / "labels.csv") == expected
    again = LabelTable.read(tmp_path / "labels.csv")
    assert as_long(again, tmp_path / "again.csv") == expected


@pytest.mark.parametrize("sample", EXPECTED)
def test_no_sample_is_taken_for_another_format(sample):
    for file in list_files(SAMPLES / sample):
        document = open_document(file)
        head = [] if document is None else document.head
        said = [known.name for known in FORMATS if any(map(known.sniff, head))]
        assert said == [name for name in [EXPECTED[sample][1]] if name]


@pytest.mark.parametrize("sample", [name for name in EXPECTED if EXPECTED[name][1]])
def test_what_is_left_out_is_counted(sample):
    from annotrace.labels.codes import Choices
    from annotrace.labels.columns import Named
    from annotrace.labels.importing import Request
    from annotrace.labels.reading import read_table

    options, name, _, told = EXPECTED[sample]
    request = Request(name, options.get("question"))
    used = read_table(SAMPLES / sample, Named(options.get("item")), Choices(), request)[1]
    assert (tell_skipped(used.skipped) if used.skipped else None) == told


def test_the_truth_of_label_studio_is_no_label():
    table = LabelTable.read(SAMPLES / "label_studio.json", question="sentiment")
    assert table.classes[table.truth[0]] == "Positive"
    assert table.truth[1] == -1
    assert "9" not in table.annotators


def test_items_by_another_field():
    table = LabelTable.read(SAMPLES / "label_studio.json", question="sentiment", item="slug")
    assert table.items.tolist() == ["review/1", "review/2"]
    table = LabelTable.read(SAMPLES / "labelbox.ndjson", item="external_id")
    assert table.items.tolist() == ["yard-1.jpg", "yard-2.jpg"]
    table = LabelTable.read(SAMPLES / "argilla.json", item="text")
    assert table.items.tolist() == ["Fast and quiet", "Broke at once"]


def test_argilla_by_id_and_as_parquet(tmp_path):
    expected = LabelTable.read(SAMPLES / "argilla.json")
    records = json.loads((SAMPLES / "argilla.json").read_text())
    (tmp_path / "by_id.json").write_text(json.dumps({record["id"]: record for record in records}))
    assert LabelTable.read(tmp_path / "by_id.json") == expected
    columns = json.loads((SAMPLES / "argilla_columns.json").read_text())
    pl.DataFrame(columns).write_parquet(tmp_path / "data.parquet")
    assert LabelTable.read(tmp_path / "data.parquet") == expected
    assert LabelTable.from_long(pl.DataFrame(columns)) == expected


def test_one_doccano_file_needs_a_name():
    path = SAMPLES / "doccano" / "ann.jsonl"
    with pytest.raises(InputError, match=r"ann\.jsonl, line 1: nobody is named .*annotator_name="):
        LabelTable.read(path)
    assert LabelTable.read(path, annotator_name="Ann B").annotators.tolist() == ["Ann B"]


def test_a_format_named_by_the_caller_wins():
    with pytest.raises(InputError, match=r"line 1: field 'data' is not an object"):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="label-studio")
    with pytest.raises(InputError, match="found no annotator"):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="table")
    with pytest.raises(InputError, match="no format 'excel'; there are argilla, cvat, doccano"):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="excel")


def test_files_of_two_formats_are_not_mixed():
    with pytest.raises(InputError, match=r"prodigy_binary.jsonl is Prodigy JSON lines and .*ann"):
        LabelTable.read([SAMPLES / "doccano" / "ann.jsonl", SAMPLES / "prodigy_binary.jsonl"])


@pytest.mark.parametrize(
    ("sample", "options", "message"),
    [
        ("label_studio.json", {}, "record 1: there are several questions ('sentiment', 'style')"),
        ("label_studio.json", {"question": "tone"}, "no question 'tone'; it has 'sentiment', 'st"),
        ("label_studio.json", {"question": "style"}, "'101' has several labels in one answer ('cl"),
        ("prodigy_choice.jsonl", {"item": "uid"}, "line 1: 'uid' cannot name the item"),
        ("peerannot.json", {"question": "tone"}, "no question 'tone'; leave out question="),
        ("peerannot.json", {"item": "name"}, "Leave out item="),
        ("doccano", {"label": "label"}, "is doccano export, where label= (--label) has no column"),
        ("ground_truth_consolidated.manifest", {}, "line 1: a consolidated manifest has one label"),
    ],
)
def test_what_a_format_cannot_say_is_asked_for(sample, options, message):
    with pytest.raises(InputError) as caught:
        LabelTable.read(SAMPLES / sample, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# What is done to a sample (text that is replaced, or where it is cut), and what is said of it.
DAMAGE = [
    ("label_studio.json", 700, "line 17: not JSON"),
    (
        "label_studio.json",
        ('"annotations": [', '"notes": ['),
        "record 1: field 'annotations' is not",
    ),
    ("label_studio.json", ('"completed_by": 8', '"by": 8'), "record 1: nobody is named"),
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
    ("prodigy_binary.jsonl", ('"label":"SPORT",', ""), "line 1: there is neither 'accept'"),
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
    ("argilla_columns.json", ('["r-1", ', "["), "fields of unequal length"),
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
        "line 1: 'label' holds spans of text",
    ),
    ("cvat/job_11/annotations.xml", -40, "not whole XML"),
    ("cvat/job_11/annotations.xml", (' name="photos/2.jpg"', ""), "an image without a name"),
    (
        "cvat/job_11/annotations.xml",
        ('<tag label="cat"', '<tag name="cat"'),
        "a tag without a label",
    ),
    ("labelbox.ndjson", -30, "line 3: not JSON"),
    ("labelbox.ndjson", ('"projects"', '"project"'), "line 1: field 'projects' is not an object"),
    ("labelbox.ndjson", ('"created_by"', '"made_by"'), "line 1: nobody is named as the annotator"),
    ("ground_truth_request.json", -20, "not JSON"),
    ("ground_truth_request.json", ('"content"', '"s3Uri"'), "record 1: an answer without content"),
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
        damaged = text[:damage]
    else:
        assert damage[0] in text
        damaged = text.replace(*damage, 1)
    path = tmp_path / Path(sample).name
    path.write_text(damaged, encoding="utf-8")
    options = dict(EXPECTED.get(sample, ({},))[0])
    options.pop("item", None)
    if sample.startswith("doccano"):
        options["annotator_name"] = "bob"
    with pytest.raises(InputError) as caught:
        LabelTable.read(path, **options)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", ")."))


HOSTILE = [
    "say \"hi\", 'there'",
    "👩‍🔬 été ß",
    "<script>alert(1)</script> & <b>",
    "مرحبا\u202eabc",
    "=HYPERLINK(1)",
    "null",
    "a|b;c",
    "x" * 500,
]


def labels_of(names):
    """Every name once as item, annotator and label, and a second label for each item."""
    shifted = names[1:] + names[:1]
    return sorted(
        {*zip(names, names, names, strict=True), *zip(names, shifted, names, strict=True)}
    )


def cvat(rows):
    root = ET.Element("annotations")
    ET.SubElement(ET.SubElement(ET.SubElement(root, "meta"), "job"), "assignee")
    for item, _, label in rows:
        image = ET.SubElement(root, "image", name=item)
        ET.SubElement(image, "tag", label=label)
    return ET.tostring(root, encoding="unicode")


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


WRITERS = {
    "label-studio": lambda rows: json.dumps(
        [
            {
                "id": 1,
                "data": {"name": item},
                "annotations": [
                    {
                        "completed_by": {"email": who},
                        "result": [
                            {"from_name": "q", "type": "choices", "value": {"choices": [label]}}
                        ],
                    }
                ],
            }
            for item, who, label in rows
        ]
    ),
    "label-studio-min": lambda rows: json.dumps(
        [
            {"name": i, "id": 1, "q": label, "annotator": a, "annotation_id": 1, "lead_time": 1}
            for i, a, label in rows
        ]
    ),
    "prodigy": lambda rows: lines(
        {"name": i, "_input_hash": 1, "accept": [label], "answer": "accept", "_annotator_id": a}
        for i, a, label in rows
    ),
    "argilla": lambda rows: json.dumps(
        [
            {"id": i, "fields": {"name": i}, "responses": {"q": [{"value": label, "user_id": a}]}}
            for i, a, label in rows
        ]
    ),
    "labelbox": lambda rows: lines(
        {
            "data_row": {"id": i, "name": i},
            "projects": {
                "p": {
                    "labels": [
                        {
                            "label_details": {"created_by": a},
                            "annotations": {
                                "classifications": [{"name": "q", "radio_answer": {"name": label}}]
                            },
                        }
                    ]
                }
            },
        }
        for i, a, label in rows
    ),
    "ground-truth": lambda rows: json.dumps(
        [
            {
                "datasetObjectId": "0",
                "dataObject": {"name": i},
                "annotations": [
                    {
                        "workerId": a,
                        "annotationData": {"content": json.dumps({"q": {"label": label}})},
                    }
                ],
            }
            for i, a, label in rows
        ]
    ),
    "peerannot": lambda rows: json.dumps(
        {i: {a: label for j, a, label in rows if j == i} for i, _, _ in rows}
    ),
    "doccano": lambda rows: lines(
        {"id": 1, "name": i, "text": i, "label": [c]} for i, _, c in rows
    ),
    "cvat": cvat,
}


@pytest.mark.parametrize("format", [known.name for known in FORMATS])
def test_hostile_names_come_through_unchanged(format, tmp_path):
    rows = labels_of(HOSTILE)
    (tmp_path / "export").write_text(WRITERS[format](rows), encoding="utf-8")
    options = {} if format in ("peerannot", "cvat") else {"item": "name"}
    if format in ("doccano", "cvat"):
        options["annotator_name"] = HOSTILE[0]
        rows = [(item, HOSTILE[0], label) for item, _, label in rows]
    table = LabelTable.read(tmp_path / "export", **options)
    assert sorted(table.to_frame().rows()) == sorted(rows)


def test_detection_order_is_told_and_every_name_is_once():
    names = [known.name for known in FORMATS]
    assert len(set(names)) == len(names)
    assert names[-1] == "peerannot"
    assert find_format([], [], "table") is None
