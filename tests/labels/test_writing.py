import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.delimited import read_delimited
from annotrace.labels.writing import write_classes, write_confusion

NAMES = ["csv", "tsv", "jsonl", "parquet", "csv.gz", "tsv.gz", "jsonl.gz"]

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
# Names that a spreadsheet would take for formulas, that look guarded, and numbers.
names |= st.builds(
    "".join, st.lists(st.sampled_from([*"'=+-@\t\r1.e", "a"]), min_size=1, max_size=4)
)
label_rows = st.lists(
    st.tuples(
        names, names, names | st.sampled_from(["NA", "001", 'a "quoted", one', "line\nbreak"])
    ),
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


FORMULAS = ["=1+1", "-", "'@x", "-1"]


def written(path, **options):
    columns = {"item": FORMULAS, "annotator": ["ann"] * 4, "label": FORMULAS}
    LabelTable.from_long(columns).write(path, **options)
    return path.read_text()


def test_formulas_are_text_in_a_spreadsheet(tmp_path):
    expected = "item,annotator,label\n'=1+1,ann,'=1+1\n'-,ann,'-\n''@x,ann,''@x\n-1,ann,-1\n"
    assert written(tmp_path / "labels.csv") == expected
    assert written(tmp_path / "labels.tsv") == expected.replace(",", "\t")


def test_formulas_can_be_written_as_they_are(tmp_path):
    raw = written(tmp_path / "labels.csv", raw=True)
    assert raw == "item,annotator,label\n=1+1,ann,=1+1\n-,ann,-\n'@x,ann,'@x\n-1,ann,-1\n"


def test_other_files_have_formulas_as_they_are(tmp_path):
    assert written(tmp_path / "labels.jsonl").startswith('{"item":"=1+1"')


@pytest.mark.parametrize("raw", [False, True])
def test_columns_of_classes_are_guarded_too(tmp_path, raw):
    path = tmp_path / "truth.csv"
    classes = np.array(["-", "=A1", "'+", "2"])
    write_classes(path, ["@a", "-1"], classes, np.array([[1, 0, 0, 0], [0, 0, 1, 0]]), raw=raw)
    header, first, second = path.read_text().splitlines()
    if raw:
        assert (header, first[:5]) == ("item,label,confidence,-,=A1,'+,2", "@a,-,")
    else:
        assert (header, first[:7]) == ("item,label,confidence,'-,'=A1,''+,2", "'@a,'-,")
        assert second.startswith("-1,''+,1")
        frame, _ = read_delimited(path.read_bytes(), "truth.csv")
        assert frame.columns == ["item", "label", "confidence", *classes.tolist()]
        assert frame["item"].to_list() == ["@a", "-1"]
        assert frame["label"].to_list() == ["-", "'+"]


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


def test_confusion_matrices_are_written_with_names(tmp_path):
    table = LabelTable.from_long(
        {"item": ["a", "a"], "annotator": ["kim", "lee"], "label": ["x", "y"]}
    )
    confusion = np.random.default_rng(0).dirichlet(np.ones(2), (2, 2))
    write_confusion(tmp_path, table, confusion)
    with np.load(tmp_path / "confusion.npz") as written:
        np.testing.assert_array_equal(written["confusion"], confusion)
        assert written["annotators"].tolist() == ["kim", "lee"]
        assert written["classes"].tolist() == ["x", "y"]


def test_equal_tables_give_equal_files_at_any_time(tmp_path, monkeypatch):
    table = LabelTable.from_long({"item": [1, 2], "annotator": [1, 1], "label": ["x", "y"]})
    for day in (1, 2):
        monkeypatch.setattr("time.time", lambda day=day: 86_400.0 * day)
        table.write(tmp_path / f"{day}.csv.gz")
    assert (tmp_path / "1.csv.gz").read_bytes() == (tmp_path / "2.csv.gz").read_bytes()
