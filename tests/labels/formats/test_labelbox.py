import json
from pathlib import Path

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable

SAMPLES = Path(__file__).parents[1] / "samples"


def test_items_may_be_named_by_the_external_id():
    table = LabelTable.read(SAMPLES / "labelbox.ndjson", item="external_id")
    assert table.items.tolist() == ["yard-1.jpg", "yard-2.jpg"]


def test_several_checked_answers_are_rejected(tmp_path):
    text = (SAMPLES / "labelbox.ndjson").read_text(encoding="utf-8")
    checked = '"checklist_answers": [{"name": "Cat"}, {"name": "Dog"}], "radio_answer":'
    (tmp_path / "a.ndjson").write_text(text.replace('"radio_answer":', checked, 1))
    with pytest.raises(InputError, match=r"has several labels in one answer \('Cat', 'Dog'\)"):
        LabelTable.read(tmp_path / "a.ndjson")


def test_details_that_were_not_exported_are_not_needed(tmp_path):
    cat, dog = ({"name": "animal", "radio_answer": {"name": name}} for name in ("Cat", "Dog"))
    with (tmp_path / "a.ndjson").open("w") as file:
        for item, answers in enumerate(
            [{"classifications": [cat]}, {"classifications": [dog]}, {"objects": []}]
        ):
            projects = {"project": {"labels": [{"annotations": answers}]}}
            file.write(json.dumps({"data_row": {"id": f"i{item}"}, "projects": projects}) + "\n")
    table = LabelTable.read(tmp_path / "a.ndjson", annotator_name="ann")
    assert table.to_frame().rows() == [("i0", "ann", "Cat"), ("i1", "ann", "Dog")]
