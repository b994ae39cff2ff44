"""Each format read from a sample in the schema that its tool documents."""

from pathlib import Path

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.building import TableOptions
from annotrace.labels.columns import ColumnNames
from annotrace.labels.formats import FORMATS
from annotrace.labels.reading import (
    ExportOptions,
    describe_skipped,
    list_files,
    open_document,
    read_parts,
)

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
        found = [known.name for known in FORMATS if any(map(known.sniff, document.head))]
        assert found == [name for name in [EXPECTED[sample][1]] if name]


@pytest.mark.parametrize("sample", [name for name in EXPECTED if EXPECTED[name][1]])
def test_what_is_left_out_is_counted(sample):
    options, name, _, reported = EXPECTED[sample]
    export = ExportOptions(name, options.get("question"))
    names = ColumnNames(options.get("item"))
    used = read_parts(SAMPLES / sample, names, TableOptions(), export)[1]
    assert (describe_skipped(used.skipped) if used.skipped else None) == reported


def test_items_by_another_field():
    table = LabelTable.read(SAMPLES / "label_studio.json", question="sentiment", item="slug")
    assert table.items.tolist() == ["review/1", "review/2"]
    table = LabelTable.read(SAMPLES / "labelbox.ndjson", item="external_id")
    assert table.items.tolist() == ["yard-1.jpg", "yard-2.jpg"]
    table = LabelTable.read(SAMPLES / "argilla.json", item="text")
    assert table.items.tolist() == ["Fast and quiet", "Broke at once"]


@pytest.mark.parametrize(
    ("sample", "options", "message"),
    [
        ("label_studio.json", {}, "record 1: there are several questions ('sentiment', 'style')"),
        ("label_studio.json", {"question": "tone"}, "no question 'tone'; it has 'sentiment', 'st"),
        ("label_studio.json", {"question": "style"}, "'101' has several labels in one answer ('cl"),
        ("prodigy_choice.jsonl", {"item": "uid"}, "line 1: 'uid' cannot name the item"),
        ("peerannot.json", {"question": "tone"}, "no question 'tone'; remove question="),
        ("peerannot.json", {"item": "name"}, "Remove item="),
        (
            "doccano",
            {"label": "label"},
            "is doccano export, which has no column for label= (--label)",
        ),
        ("ground_truth_consolidated.manifest", {}, "line 1: a consolidated manifest has one label"),
    ],
)
def test_missing_information_of_a_format_is_requested(sample, options, message):
    with pytest.raises(InputError) as caught:
        LabelTable.read(SAMPLES / sample, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
