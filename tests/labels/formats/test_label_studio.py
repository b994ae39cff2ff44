import json
from pathlib import Path

from annotrace.labels import LabelTable

SAMPLES = Path(__file__).parents[1] / "samples"


def test_the_truth_of_label_studio_is_no_label():
    table = LabelTable.read(SAMPLES / "label_studio.json", question="sentiment")
    assert table.classes[table.truth[0]] == "Positive"
    assert table.truth[1] == -1
    assert "9" not in table.annotators


def test_ratings_of_label_studio_are_classes(tmp_path):
    common = {"id": 1, "annotator": 3, "annotation_id": 1, "lead_time": 1}
    records = [{**common, "id": k, "stars": [{"rating": stars}]} for k, stars in enumerate([4, 5])]
    (tmp_path / "a.json").write_text(json.dumps(records))
    assert LabelTable.read(tmp_path / "a.json", question="stars").classes.tolist() == ["4", "5"]


def test_a_task_without_the_wanted_answer_is_skipped(tmp_path):
    common = {"annotator": 3, "annotation_id": 1, "lead_time": 1}
    records = [{"id": k, "mood": mood, **common} for k, mood in enumerate(["good", "bad"])]
    (tmp_path / "a.json").write_text(json.dumps([*records, {"id": 2, "note": "?", **common}]))
    table = LabelTable.read(tmp_path / "a.json", question="mood")
    assert table.to_frame().rows() == [("0", "3", "good"), ("1", "3", "bad")]
