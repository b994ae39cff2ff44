import io
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotrace.errors import LimitError
from annotrace.labels import LabelTable
from annotrace.limits import Limits

COLUMNS = {"image": ["a", "a", "b"], "annotator": ["kim", "lee", "kim"], "label": [1, 0, -1]}


FEATURES = {
    "image": {"dtype": "string", "_type": "Value"},
    "annotator": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["no", "yes"], "_type": "ClassLabel"},
}


EXPECTED = [("a", "kim", "yes"), ("a", "lee", "no")]


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


def parquet(**columns):
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def test_typed_parquet_becomes_text(read):
    columns = {"image": [7, 8], "rater": [1.0, 2.0], "label": ["x", "y"]}
    assert rows(read(parquet(**columns))) == [("7", "1", "x"), ("8", "2", "y")]


def test_a_parquet_file_has_the_names_of_classes(tmp_path):
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


def test_columns_are_nested_up_to_a_limit(tmp_path):
    nested = [[["x"]], [["y"]]]
    frame = pl.DataFrame({"item": [1, 2], "worker": [3, 3], "label": ["x", "y"], "n": nested})
    frame.write_parquet(tmp_path / "a.parquet")
    assert LabelTable.read(tmp_path / "a.parquet", limits=Limits(max_depth=2)).n_labels == 2
    with pytest.raises(LimitError, match="2 nested levels exceed the limit of 1"):
        LabelTable.read(tmp_path / "a.parquet", limits=Limits(max_depth=1))
