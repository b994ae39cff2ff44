import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotrace.labels import LabelTable

COLUMNS = {"image": ["a", "a", "b"], "annotator": ["kim", "lee", "kim"], "label": [1, 0, -1]}
FEATURES = {
    "image": {"dtype": "string", "_type": "Value"},
    "annotator": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["no", "yes"], "_type": "ClassLabel"},
}
EXPECTED = [("a", "kim", "yes"), ("a", "lee", "no")]


class ClassLabel:
    """What is used of a `datasets.ClassLabel`."""

    def __init__(self, names):
        self.names = names


class Dataset:
    """What is used of a `datasets.Dataset`: rows selected are not those of the table below."""

    def __init__(self, columns, features, selected):
        self.table, self.features, self.selected = pa.table(columns), features, selected

    def with_format(self, type):
        assert type == "arrow"
        return self

    def __getitem__(self, rows):
        assert rows == slice(None)
        return self.table.take(self.selected)


def test_a_dataset_gives_the_rows_selected_and_the_names_of_classes():
    dataset = Dataset(COLUMNS, {"image": object(), "label": ClassLabel(["no", "yes"])}, [1, 0])
    table = LabelTable.from_long(dataset)
    assert sorted(table.to_frame().rows()) == EXPECTED


def test_a_parquet_file_tells_the_names_of_classes(tmp_path):
    info = json.dumps({"info": {"features": FEATURES}})
    pq.write_table(
        pa.table(COLUMNS).replace_schema_metadata({"huggingface": info}), tmp_path / "a.parquet"
    )
    table = LabelTable.read(tmp_path / "a.parquet", skip=[""])
    assert sorted(table.to_frame().rows()) == EXPECTED


def test_a_saved_dataset_is_a_folder_of_arrow_files(tmp_path):
    columns = pa.table(COLUMNS)
    for place, rows in enumerate([columns.slice(0, 2), columns.slice(2, 1)]):
        path = tmp_path / f"data-{place:05}-of-00002.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows)
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    (tmp_path / "state.json").write_text("{}")
    table = LabelTable.read(tmp_path, skip=[""])
    assert sorted(table.to_frame().rows()) == EXPECTED


@pytest.mark.parametrize("info", ["{", "[]", '{"features": 3}', '{"features": {"label": 3}}'])
def test_a_damaged_description_leaves_numbers(tmp_path, info):
    path = tmp_path / "data.arrow"
    columns = pa.table(COLUMNS | {"label": [1, 0, 1]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, columns.schema) as writer:
        writer.write_table(columns)
    (tmp_path / "dataset_info.json").write_text(info)
    assert LabelTable.read(path).classes.tolist() == ["0", "1"]


def test_a_frame_of_cleanlab_names_items_by_its_index(tmp_path):
    frame = pd.DataFrame({"w1": [0.0, 1.0, None], "w2": [None, 1.0, 0.0]}, index=["a", "b", "c"])
    table = LabelTable.from_wide(frame)
    assert table.items.tolist() == ["a", "b", "c"]
    assert table.annotators.tolist() == ["w1", "w2"]
    assert not table.positional
    frame.to_parquet(tmp_path / "a.parquet")
    assert LabelTable.read(tmp_path / "a.parquet").to_wide().tolist() == table.to_wide().tolist()
    assert LabelTable.from_wide(pl.DataFrame({"item": [1, 2], "w": [0, 1]})).n_annotators == 1
