import gzip
import json
import tracemalloc

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.reading import open_document


def test_numbers_stay_as_they_are_written(tmp_path):
    (tmp_path / "a.json").write_text('[{"id": 1e5, "n": [1.50, 9007199254740993], "b": true}]')
    assert open_document(tmp_path / "a.json").head == [
        {"id": "1e5", "n": ["1.50", "9007199254740993"], "b": True}
    ]


def test_an_object_over_several_lines_is_one_record(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"0": {"ann": 1}, "1": {"ann": 0}}, indent=2))
    document = open_document(tmp_path / "a.json")
    assert (document.unit, len(document.head)) == ("record", 1)
    assert LabelTable.read(tmp_path / "a.json").n_items == 2


def test_a_byte_order_mark_and_gzip_are_taken_off(tmp_path):
    text = '{"answer": "accept"}\n{"answer": "reject"}\n'
    (tmp_path / "a").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode(), mtime=0))
    records = list(open_document(tmp_path / "a").records())
    assert records == [(1, {"answer": "accept"}), (2, {"answer": "reject"})]


def test_a_damaged_gzip_of_json_lines_is_told(tmp_path):
    packed = gzip.compress(b'{"answer": "accept"}\n' * 10_000, mtime=0)
    (tmp_path / "a").write_bytes(packed[:-12])
    with pytest.raises(InputError, match="the gzip file is damaged"):
        list(open_document(tmp_path / "a").records())


def test_xml_with_entities_is_refused(tmp_path):
    (tmp_path / "a.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "cc">]><annotations>&b;</annotations>'
    )
    with pytest.raises(InputError, match="defines XML entities"):
        open_document(tmp_path / "a.xml")


def test_json_lines_are_not_held_in_memory(tmp_path):
    record = {"text": "x" * 50_000, "_input_hash": 1, "accept": ["a"], "answer": "accept"}
    with (tmp_path / "a.jsonl").open("w") as file:
        for k in range(300):
            label = ["a", "b"][k % 2]
            file.write(json.dumps(record | {"_input_hash": k, "accept": [label]}) + "\n")
    LabelTable.read(tmp_path / "a.jsonl", annotator_name="ann")  # what is imported once
    tracemalloc.start()
    table = LabelTable.read(tmp_path / "a.jsonl", annotator_name="ann")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table.n_labels == 300
    assert peak < 3e6  # of 15 MB
