import json

from annotrace.labels import LabelTable


def test_tasks_without_answers_have_no_labels(tmp_path):
    answers = {"0": {"w1": 2, "w2": 1}, "1": {}, "2": {"w1": 1}}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    table = LabelTable.read(tmp_path / "answers.json")
    assert table.to_frame().rows() == [("0", "w1", "2"), ("0", "w2", "1"), ("2", "w1", "1")]
