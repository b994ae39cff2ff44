import json
import tracemalloc

import pandas as pd
import pytest

from annotrace.errors import InputError, LimitError
from annotrace.labels import LabelTable
from annotrace.labels.reading import open_document
from annotrace.limits import Limits


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


def test_xml_with_entities_is_rejected(tmp_path):
    (tmp_path / "a.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "cc">]><annotations>&b;</annotations>'
    )
    with pytest.raises(InputError, match="defines XML entities"):
        open_document(tmp_path / "a.xml")


def test_the_depth_of_xml_is_that_of_the_deepest_element(tmp_path):
    xml = f"<annotations>{'<image/>' * 20}<image><tag/></image></annotations>"
    (tmp_path / "a.xml").write_text(xml)
    open_document(tmp_path / "a.xml", Limits(max_depth=3))
    with pytest.raises(LimitError, match="3 nested levels exceed the limit of 2"):
        open_document(tmp_path / "a.xml", Limits(max_depth=2))


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


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


def test_json_numbers_stay_as_written(read):
    content = '{"item": 1e5, "worker": 007.0, "label": 1}\n'.replace("007.0", "7.0")
    table = read(content + '{"item": 2, "worker": 7.0, "label": true}\n')
    assert rows(table) == [("1e5", "7.0", "1"), ("2", "7.0", "true")]


def test_json_nan_is_missing(read):
    lines = ['{"item": 1, "a": NaN, "b": "x"}', '{"item": 2, "a": "x", "b": "NaN"}']
    assert rows(read("\n".join(lines))) == [("1", "b", "x"), ("2", "a", "x"), ("2", "b", "NaN")]


LONG = {"task": ["1", "2", "1"], "worker": ["kim", "kim", "lee"], "answer": ["x", "y", None]}


@pytest.mark.parametrize("index", [None, ["p", "q", "r"]])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("orient", ["columns", "index"])
def test_a_frame_that_pandas_wrote_as_an_object(read, index, indent, orient):
    frame = pd.DataFrame(LONG, index=index)
    table = read(frame.to_json(orient=orient, indent=indent), "labels.json", skip=[""])
    assert rows(table) == [("1", "kim", "x"), ("2", "kim", "y")]
    last = 2 if index is None else "r"
    with pytest.raises(InputError, match=f"index {last}: field 'answer' is empty"):
        read(frame.to_json(orient=orient), "labels.json")


@pytest.mark.parametrize("orient", ["columns", "index"])
def test_a_wide_frame_that_pandas_wrote_as_an_object(read, orient):
    wide = pd.DataFrame({"item": ["1", "2"], "kim": ["x", "y"], "lee": ["y", None]})
    table = read(wide.to_json(orient=orient), "labels.json")
    assert rows(table) == [("1", "kim", "x"), ("1", "lee", "y"), ("2", "kim", "y")]


def test_a_frame_by_column_with_other_names_is_a_table_if_the_format_says_so(read):
    wide = pd.DataFrame({"key": ["1", "2"], "kim": ["x", "y"]}).to_json()
    table = read(wide, "labels.json", item="key", format="table")
    assert rows(table) == [("1", "kim", "x"), ("2", "kim", "y")]
    by_index = pd.DataFrame({"ann": ["x", "y"], "kim": ["x", "y"]}, index=["p", "q"]).to_json()
    with pytest.raises(InputError, match=r"pass format='peerannot' .* pass format='table'"):
        read(by_index, "labels.json")
    table = read(by_index, "labels.json", format="table")
    assert table.items.tolist() == ["p", "q"]


def test_a_table_may_begin_like_a_tag(read):
    table = read("<b>x</b>,item\ny,a\nz,b\n")
    assert table.annotators.tolist() == ["<b>x</b>"]
