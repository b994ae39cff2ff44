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
