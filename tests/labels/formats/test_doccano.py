from pathlib import Path

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.formats.doccano import DOCCANO

SAMPLES = Path(__file__).parents[1] / "samples"


def test_one_doccano_file_needs_a_name():
    path = SAMPLES / "doccano" / "ann.jsonl"
    with pytest.raises(
        InputError,
        match=r"ann\.jsonl, line 1: the file does not name the annotator.*annotator_name=",
    ):
        LabelTable.read(path)
    assert LabelTable.read(path, annotator_name="Ann B").annotators.tolist() == ["Ann B"]


def test_a_list_of_labels_alone_is_not_doccano():
    assert DOCCANO.sniff({"id": 1, "text": "a", "label": ["x"]})
    assert not DOCCANO.sniff({"id": 1, "label": ["x"]})
    assert not DOCCANO.sniff({"id": 1, "text": "a", "label": "x"})
    assert not DOCCANO.sniff({"id": 1, "text": "a", "label": ["x"], "worker": "kim"})
