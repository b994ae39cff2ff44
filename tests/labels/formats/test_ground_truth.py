import json

import pytest

from annotrace.errors import LimitError
from annotrace.labels import LabelTable
from annotrace.limits import Limits


def test_pressed_buttons_are_the_label(tmp_path):
    for folder, pressed in (("0", "yes"), ("1", "no")):
        content = {"buttons": {"yes": pressed == "yes", "no": pressed == "no"}}
        answer = {"workerId": "w1", "answerContent": content}
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.json").write_text(json.dumps({"answers": [answer]}))
    table = LabelTable.read(tmp_path)
    assert table.to_frame().rows() == [("0", "w1", "yes"), ("1", "w1", "no")]


def test_json_within_json_has_the_limit_of_depth(read):
    answer = {"workerId": "w1", "answerContent": '{"a":' + "[" * 5000}
    with pytest.raises(LimitError, match="max_depth"):
        read(json.dumps({"answers": [answer]}), "a.json")


def test_the_limit_holds_for_json_within_json(read):
    content = {"a": {"label": "x", "other": [[[0]]]}}
    answers = [{"workerId": "w1", "answerContent": json.dumps(content)}]
    exported = json.dumps({"answers": answers})
    with pytest.raises(LimitError, match="5 nested levels exceed the limit of 4"):
        read(exported, "a.json", limits=Limits(max_depth=4))
    table = read(exported, "a.json", classes=["x", "y"], limits=Limits(max_depth=5))
    assert table.n_labels == 1
