import json

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable


def write(path, *records):
    path.write_text("".join(json.dumps({"_input_hash": 1} | record) + "\n" for record in records))
    return path


def test_the_session_names_the_annotator_if_nothing_else_does(tmp_path):
    common = {"options": [], "answer": "accept"}
    path = write(
        tmp_path / "a.jsonl",
        {**common, "accept": ["x"], "_session_id": "s-1"},
        {**common, "accept": ["y"], "_session_id": "s-2", "_annotator_id": "ann"},
    )
    assert LabelTable.read(path).annotators.tolist() == ["ann", "s-1"]


def test_other_binary_questions_are_ignored(tmp_path):
    records = [
        {"_input_hash": k, "label": label, "answer": answer, "_annotator_id": "ann"}
        for k, (label, answer) in enumerate(
            [("TECH", "accept"), ("SPORT", "reject"), ("TECH", "reject")]
        )
    ]
    path = write(tmp_path / "a.jsonl", *records)
    with pytest.raises(InputError, match="there are several questions"):
        LabelTable.read(path)
    table = LabelTable.read(path, question="TECH")
    assert table.to_frame().rows() == [("0", "ann", "accept"), ("2", "ann", "reject")]


def test_a_rejected_choice_is_skipped_however_many_labels_it_has(tmp_path):
    common = {"options": [], "_annotator_id": "ann"}
    path = write(
        tmp_path / "a.jsonl",
        {**common, "accept": ["x"], "answer": "accept"},
        {**common, "_input_hash": 2, "accept": ["y"], "answer": "accept"},
        {**common, "_input_hash": 3, "accept": ["x", "y"], "answer": "reject"},
    )
    assert LabelTable.read(path).items.tolist() == ["1", "2"]
