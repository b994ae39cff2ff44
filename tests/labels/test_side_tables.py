import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.labels.columns import ColumnNames
from annotrace.labels.side_tables import LabelColumns, read_by_annotator, read_gold

LABELS = """doc,judge,label,kind,month
a,gpt,yes,llm,2025-01
a,eve,no,person,2025-02
b,gpt,yes,llm,
"""


def write(folder, text, name="file.csv"):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("header", ["item,truth", "id,label", "task,gold_label", "item,class"])
def test_gold_is_found_by_usual_names(tmp_path, header):
    path = write(tmp_path, f"{header}\n007,yes\nb,\nc,no\n")
    assert read_gold(path) == {"007": "yes", "c": "no"}


def test_the_truth_column_is_preferred_to_labels(tmp_path):
    assert read_gold(write(tmp_path, "item,label,truth\na,no,yes\n")) == {"a": "yes"}


def test_gold_of_other_file_types(tmp_path):
    path = write(
        tmp_path, '{"item": "a", "truth": "yes"}\n{"item": "b", "truth": "no"}\n', "g.jsonl"
    )
    assert read_gold(path) == {"a": "yes", "b": "no"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,truth\na,yes\na,no\n", r"row 3, column 'truth': 'a' has 'no' here and 'yes'"),
        ("item,truth\n,yes\n", r"row 2, column 'item' is empty"),
        ("item,colour\na,red\n", r"expected a column 'label', but it has \['item', 'colour'\]"),
        ("truth\nyes\n", "expected a column 'item'"),
    ],
)
def test_wrong_gold(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_gold(write(tmp_path, text))


def test_columns_about_annotators(tmp_path):
    path = write(tmp_path, "judge,cost\ngpt,2.5\nqwen,\n")
    assert read_by_annotator(path, "cost") == {"gpt": "2.5"}
    with pytest.raises(InputError, match="has no column 'kind'"):
        read_by_annotator(path, "kind")


def test_further_columns_of_labels(tmp_path):
    columns = LabelColumns([write(tmp_path, LABELS)], ColumnNames(item="doc"))
    assert columns.by_annotator("kind") == {"gpt": "llm", "eve": "person"}
    assert columns.by_label("month") == {("a", "gpt"): "2025-01", ("a", "eve"): "2025-02"}
    with pytest.raises(InputError, match="'gpt' has 'person' here and 'llm'"):
        LabelColumns(
            [write(tmp_path, LABELS.replace("b,gpt,yes,llm", "b,gpt,yes,person"))],
            ColumnNames(item="doc"),
        ).by_annotator("kind")
    with pytest.raises(InputError, match="has no column 'year'"):
        columns.by_label("year")


def test_several_files_are_read_together(tmp_path):
    more = LABELS.replace("a,", "c,").replace("b,gpt", "d,qwen")
    files = [write(tmp_path, LABELS, "1.csv"), write(tmp_path, more, "2.csv")]
    columns = LabelColumns(files, ColumnNames(item="doc"))
    assert columns.by_annotator("kind") == {"gpt": "llm", "eve": "person", "qwen": "llm"}


def test_wide_tables_have_no_further_columns(tmp_path):
    with pytest.raises(InputError, match="needs one row per label"):
        LabelColumns([write(tmp_path, "item,gpt,qwen\na,yes,no\n")], ColumnNames())


def test_arrays_have_no_names(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2), int))
    with pytest.raises(InputError, match="contains arrays"):
        read_gold(tmp_path / "a.npy")
