import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotrace.errors import InputError
from annotrace.labels import LabelTable

NAMES = ["csv", "tsv", "jsonl", "parquet", "csv.gz", "tsv.gz", "jsonl.gz"]

names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\t\n\r"), min_size=1
)
label_rows = st.lists(
    st.tuples(names, names, st.sampled_from(["NA", "001", 'a "quoted", one', "line\nbreak"])),
    min_size=2,
).filter(lambda rows: len({label for _, _, label in rows}) > 1)


@pytest.mark.parametrize("ending", NAMES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=label_rows)
def test_what_is_read_back_equals_what_was_written(tmp_path, ending, rows):
    items, annotators, labels = zip(*rows, strict=True)
    truth = {item: label for item, _, label in rows}
    table = LabelTable.from_long(
        {
            "item": items,
            "annotator": annotators,
            "label": labels,
            "truth": [truth[item] for item in items],
        }
    )
    path = tmp_path / f"labels.{ending}"
    table.write(path)
    assert LabelTable.read(path) == table


def test_integers_come_back_as_text(tmp_path):
    LabelTable.from_codes([0, 1], [0, 0], [0, 1]).write(tmp_path / "labels.csv")
    table = LabelTable.read(tmp_path / "labels.csv")
    assert table.items.tolist() == ["0", "1"]
    assert table.classes.tolist() == ["0", "1"]


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    path.write_text("precious")
    import polars as pl

    def fail(frame, file, **options):
        file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(pl.DataFrame, "write_csv", fail)
    with pytest.raises(OSError, match="disk is full"):
        LabelTable.from_codes([0, 1], [0, 0], [0, 1]).write(path)
    assert path.read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["labels.csv"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("labels.xlsx", r"must end in \.csv, \.tsv or \.jsonl"),
        ("labels.parquet.gz", "must end in"),
        ("nowhere/labels.csv", "there is no folder"),
    ],
)
def test_names_that_cannot_be_written(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        LabelTable.from_codes([0, 1], [0, 0], [0, 1]).write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
