import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.formats.argilla import ARGILLA

SAMPLES = Path(__file__).parents[1] / "samples"


def test_argilla_by_id_and_as_parquet(tmp_path):
    expected = LabelTable.read(SAMPLES / "argilla.json")
    records = json.loads((SAMPLES / "argilla.json").read_text())
    (tmp_path / "by_id.json").write_text(json.dumps({record["id"]: record for record in records}))
    assert LabelTable.read(tmp_path / "by_id.json") == expected
    columns = json.loads((SAMPLES / "argilla_columns.json").read_text())
    pl.DataFrame(columns).write_parquet(tmp_path / "data.parquet")
    assert LabelTable.read(tmp_path / "data.parquet") == expected
    for make in (dict, pd.DataFrame, pl.DataFrame):
        assert LabelTable.from_long(make(columns), label="mood") == expected


def test_a_record_without_responses_has_no_labels(tmp_path):
    expected = LabelTable.read(SAMPLES / "argilla.json")
    records = json.loads((SAMPLES / "argilla.json").read_text())
    unseen = records[0] | {"id": "r-9", "responses": None}
    (tmp_path / "a.json").write_text(json.dumps([*records, unseen]))
    assert LabelTable.read(tmp_path / "a.json") == expected


def test_an_error_in_a_frame_names_the_row():
    columns = json.loads((SAMPLES / "argilla_columns.json").read_text())
    columns["mood.responses.users"][1] = ["only one"]
    with pytest.raises(InputError, match=r"^the frame, row 2: "):
        LabelTable.from_long(pl.DataFrame(columns), label="mood")


def test_fields_or_responses_alone_are_not_argilla():
    record = {"fields": {"text": "a"}, "responses": {"mood": []}}
    assert ARGILLA.sniff(record)
    for name in record:
        assert not ARGILLA.sniff({name: record[name]})


def test_the_csv_of_a_dataset_is_refused(tmp_path):
    """Lists are printed into cells as numpy prints them, without commas."""
    rows = [f"rec-{k},pending,\"['bad' 'good']\",\"['u1' 'u2']\",0" for k in range(5)]
    header = "id,status,mood.responses,mood.responses.users,mood.suggestion"
    (tmp_path / "ds.csv").write_text("\n".join([header, *rows]))
    with pytest.raises(InputError, match=r"row 2: .*the csv of Argilla.*to_list\(flatten=True\)"):
        LabelTable.read(tmp_path / "ds.csv")
