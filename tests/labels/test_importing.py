from pathlib import Path

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.formats import FORMATS
from annotrace.labels.importing import describe_skipped, find_format

SAMPLES = Path(__file__).parent / "samples"


def test_files_are_named_without_their_endings(tmp_path):
    record = '{"id": 1, "text": "a", "label": ["x"]}\n{"id": 2, "text": "b", "label": ["y"]}\n'
    for name in ("ann.b@example.com.jsonl", "cy.jsonl"):
        (tmp_path / name).write_text(record)
    assert LabelTable.read(tmp_path).annotators.tolist() == ["ann.b@example.com", "cy"]


def test_a_format_named_by_the_caller_wins():
    with pytest.raises(InputError, match=r"line 1: field 'data' is not an object"):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="label-studio")
    with pytest.raises(InputError, match="found no annotator"):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="table")
    with pytest.raises(
        InputError,
        match=r"Expected `format` to be one of argilla, cvat, doccano, .* but got 'excel'",
    ):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="excel")


def test_files_of_two_formats_are_not_mixed():
    with pytest.raises(InputError, match=r"prodigy_binary.jsonl is Prodigy JSON lines and .*ann"):
        LabelTable.read([SAMPLES / "doccano" / "ann.jsonl", SAMPLES / "prodigy_binary.jsonl"])


def test_detection_order_is_told_and_every_name_is_once():
    names = [known.name for known in FORMATS]
    assert len(set(names)) == len(names)
    assert names[-1] == "peerannot"
    assert find_format([], "table") is None


def test_skipped_answers_are_described():
    assert describe_skipped({"draft": 1}) == "1 answer skipped (1 draft)"
    assert describe_skipped({"cancelled": 2000, "draft": 1}) == (
        "2,001 answers skipped (2,000 cancelled, 1 draft)"
    )


def test_a_csv_file_is_no_export(tmp_path):
    (tmp_path / "a.csv").write_text("item,worker,label\na,kim,x\nb,kim,y\n")
    with pytest.raises(InputError, match=r"a\.csv is neither JSON nor XML, so not Prodigy"):
        LabelTable.read(tmp_path / "a.csv", format="prodigy")
