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
