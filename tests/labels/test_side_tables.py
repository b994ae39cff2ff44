import numpy as np
import pytest

from annotrace.errors import InputError, LimitError
from annotrace.labels.columns import ColumnNames
from annotrace.labels.side_tables import LabelColumns, read_by_annotator, read_gold, read_texts
from annotrace.limits import Limits

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
    columns = LabelColumns([write(tmp_path, "item,gpt,qwen\na,yes,no\nb,no,no\n")], ColumnNames())
    with pytest.raises(InputError, match="needs one row per label"):
        columns.by_annotator("gpt")
    with pytest.raises(InputError, match="needs one row per label"):
        columns.by_label("gpt")


def test_arrays_have_no_names(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2), int))
    with pytest.raises(InputError, match="contains arrays"):
        read_gold(tmp_path / "a.npy")


@pytest.mark.parametrize("header", ["item,text", "id,Review", "tweet_id,tweet", "id,question"])
def test_texts_are_found_by_usual_names(tmp_path, header):
    found = read_texts(write(tmp_path, f'{header}\n7,"good, film"\n3,bad\n'))
    assert (found.items, found.texts) == (["7", "3"], ["good, film", "bad"])
    assert found.columns == (header.split(",")[1],)


def test_texts_may_be_repeated_in_every_row_of_an_item(tmp_path):
    labels = "item,annotator,label,text\nb,ann,1,two\na,ann,0,one\nb,bob,0,\na,bob,1,one\n"
    found = read_texts(write(tmp_path, labels))
    assert (found.items, found.texts) == (["b", "a"], ["two", "one"])


def test_two_columns_of_texts_are_pairs(tmp_path):
    path = write(tmp_path, "pair,premise,hypothesis\n1,a dog,a pet\n2,rain,sun\n")
    found = read_texts(path, item="pair", text=["hypothesis", "premise"])
    assert (found.items, found.texts) == (["1", "2"], [("a pet", "a dog"), ("sun", "rain")])


def test_texts_of_other_file_types(tmp_path):
    found = read_texts(write(tmp_path, '{"id": "a", "text": "x\\ny"}\n', "texts.jsonl"))
    assert (found.items, found.texts) == (["a"], ["x\ny"])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "item,label\na,x\n",
            {},
            "expected a column 'text', but it has ['item', 'label']. Name it",
        ),
        (
            "name,text\na,x\n",
            {},
            "expected a column 'item', but it has ['name', 'text']. Name it w",
        ),
        ("item,text\na,x\n", {"text": ["t"]}, "has no column 't'; it has 'item', 'text'"),
        ("item,text\na,x\n", {"item": "text"}, "has no column 'text'"),
        ("item,text\na,x\n", {"text": ["text", "text"]}, "or the two of pairs, but got 'text', "),
        ("item,text\na,x\na,y\n", {}, "row 3, column 'text': 'a' has 'y' here and 'x' in"),
        ("item,text\na,x\n,y\n", {}, "is empty. Every row needs a name"),
        ("item,text\na,x\nb,\nc,\n", {}, "column 'text': 2 items have no text ('b', 'c'). Fill"),
    ],
)
def test_wrong_texts(tmp_path, text, options, message):
    with pytest.raises(InputError) as caught:
        read_texts(write(tmp_path, text), **options)
    assert message in str(caught.value)


def test_texts_have_limits(tmp_path):
    path = write(tmp_path, f"item,text\nabc,{'x' * 200_000}\n")
    assert read_texts(path).texts == ["x" * 200_000]
    with pytest.raises(LimitError, match="item column: a cell of 3 characters"):
        read_texts(path, limits=Limits(max_cell=2))
    with pytest.raises(LimitError, match="2 columns exceed the limit of 1"):
        read_texts(path, limits=Limits(max_columns=1))
