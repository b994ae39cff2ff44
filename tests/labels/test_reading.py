import gzip
import io
import os
import threading
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable

CSV = "task,worker,answer\nb,kim,NA\na,lee,001\nb,lee,null\nc,kim,1e5\n"
EXPECTED = [("a", "lee", "001"), ("b", "kim", "NA"), ("b", "lee", "null"), ("c", "kim", "1e5")]


def rows(table):
    return sorted(
        zip(
            table.items[table.item].tolist(),
            table.annotators[table.annotator].tolist(),
            table.classes[table.label].tolist(),
            strict=True,
        )
    )


@pytest.fixture
def read(tmp_path):
    """Write content to a file of some name and read it as labels."""

    def read(content, name="labels.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return LabelTable.read(path, **options)

    return read


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def parquet(**columns):
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def json_lines(text):
    header, *records = (line.split(",") for line in text.splitlines())
    return "".join(
        "{" + ", ".join(f'"{k}": "{v}"' for k, v in zip(header, record, strict=True)) + "}\n"
        for record in records
    )


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        CSV.replace(",", "\t"),
        CSV.replace(",", ";"),
        CSV.replace("\n", "\r\n"),
        CSV.replace("\n", "\r"),
        CSV.rstrip(),
        CSV + "\n\n",
        CSV.replace("\na", "\n\na"),
        "\ufeff" + CSV,
        CSV.replace("NA", '"NA"'),
        json_lines(CSV),
        json_lines(CSV).replace("\n", "\r\n\n"),
        f"[{','.join(json_lines(CSV).splitlines())}]",
        gzip.compress(CSV.encode(), mtime=0),
        gzip.compress(json_lines(CSV).encode(), mtime=0),
    ],
)
def test_text_survives_in_every_format_whatever_the_name(read, content):
    table = read(content, "labels.dat")
    assert rows(table) == EXPECTED
    assert table.items.tolist() == ["b", "a", "c"]


def test_typed_parquet_becomes_text(read):
    columns = {"image": [7, 8], "rater": [1.0, 2.0], "label": ["x", "y"]}
    assert rows(read(parquet(**columns))) == [("7", "1", "x"), ("8", "2", "y")]


def test_json_numbers_stay_as_written(read):
    content = '{"item": 1e5, "worker": 007.0, "label": 1}\n'.replace("007.0", "7.0")
    table = read(content + '{"item": 2, "worker": 7.0, "label": true}\n')
    assert rows(table) == [("1e5", "7.0", "1"), ("2", "7.0", "true")]


def test_json_nan_is_missing(read):
    lines = ['{"item": 1, "a": NaN, "b": "x"}', '{"item": 2, "a": "y", "b": "NaN"}']
    assert rows(read("\n".join(lines))) == [("1", "b", "x"), ("2", "a", "y"), ("2", "b", "NaN")]


LONG = {"task": ["1", "2", "1"], "worker": ["kim", "kim", "lee"], "answer": ["x", "y", None]}


@pytest.mark.parametrize("index", [None, ["p", "q", "r"]])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("orient", ["columns", "index"])
def test_a_frame_that_pandas_wrote_as_an_object(read, index, indent, orient):
    frame = pd.DataFrame(LONG, index=index)
    table = read(frame.to_json(orient=orient, indent=indent), "labels.json", skip=[""])
    assert rows(table) == [("1", "kim", "x"), ("2", "kim", "y")]
    last = 2 if index is None else "r"
    with pytest.raises(InputError, match=f"index {last}: field 'answer' is empty"):
        read(frame.to_json(orient=orient), "labels.json")


@pytest.mark.parametrize("orient", ["columns", "index"])
def test_a_wide_frame_that_pandas_wrote_as_an_object(read, orient):
    wide = pd.DataFrame({"item": ["1", "2"], "kim": ["x", "y"], "lee": ["y", None]})
    table = read(wide.to_json(orient=orient), "labels.json")
    assert rows(table) == [("1", "kim", "x"), ("1", "lee", "y"), ("2", "kim", "y")]


def test_a_frame_by_column_with_other_names_is_a_table_if_said_so(read):
    wide = pd.DataFrame({"key": ["1", "2"], "kim": ["x", "y"]}).to_json()
    table = read(wide, "labels.json", item="key", format="table")
    assert rows(table) == [("1", "kim", "x"), ("2", "kim", "y")]
    with pytest.raises(InputError, match=r"If the file is a table, pass format='table'"):
        read(wide, "labels.json", label="kim")


def test_quoted_cells_with_separators_and_line_breaks(read):
    table = read('item,worker,label\n"a, b",kim,x\n"c\nd",kim,"say ""y"""\n')
    assert rows(table) == [("a, b", "kim", "x"), ("c\nd", "kim", 'say "y"')]


def test_a_comma_in_a_quoted_header_is_no_separator(read):
    table = read('"left, right";item;kim\nx;a;y\ny;b;x\n')
    assert table.annotators.tolist() == ["left, right", "kim"]


def test_a_table_may_begin_like_a_tag(read):
    table = read("<b>x</b>,item\ny,a\nz,b\n")
    assert table.annotators.tolist() == ["<b>x</b>"]


def test_wide_csv(read):
    table = read("image,kim,lee,truth\na,x,,x\nb,,,y\nc,y,x,\n")
    assert rows(table) == [("a", "kim", "x"), ("c", "kim", "y"), ("c", "lee", "x")]
    assert table.truth.tolist() == [0, 1, -1]
    assert table.labels_per_item().tolist() == [1, 0, 2]


def test_wide_csv_with_the_index_of_pandas(read):
    assert rows(read(",kim\na,x\nb,y\n")) == [("a", "kim", "x"), ("b", "kim", "y")]


def test_named_columns_and_truth(read):
    text = "when,what,who,said,is\n1,a,kim,x,x\n2,b,kim,y,\n"
    table = read(text, item="what", annotator="who", label="said", truth="is")
    assert rows(table) == [("a", "kim", "x"), ("b", "kim", "y")]
    assert table.truth.tolist() == [0, -1]


def test_npy_is_positional(read):
    buffer = io.BytesIO()
    np.save(buffer, np.array([[2, -1], [10, 2]], dtype=np.int8))
    table = read(buffer.getvalue())
    assert table.positional
    assert table.classes.tolist() == ["2", "10"]
    assert table.to_wide().tolist() == [[0, -1], [1, 0]]


def test_minus_one_is_missing_in_arrays_of_whole_floats(read):
    table = read(npz(labels=np.array([[0.0, -1.0], [2.0, 0.0]])), "labels.npz")
    assert rows(table) == [(0, "0", "0"), (1, "0", "2"), (1, "1", "0")]


def test_npz_with_an_array_of_answers_and_names(read):
    table = read(
        npz(
            A=np.array([[0, -1], [1, 0]], dtype=np.int8),
            items=np.array(["a", "b"]),
            annotators=np.array([5, 6]),
            classes=np.array(["dog", "cat", "cow"]),
            truth=np.array([2, -1]),
            X=np.zeros((2, 3)),
        )
    )
    assert table.classes.tolist() == ["dog", "cat", "cow"]
    assert rows(table) == [("a", "5", "dog"), ("b", "5", "cat"), ("b", "6", "dog")]
    assert table.truth.tolist() == [2, -1]


def test_npz_with_answers_whose_names_are_named(read):
    answers = np.array([[0, 1], [1, 1], [0, 0]])
    content = npz(labels=answers, ids=np.array(["a", "b", "c"]), who=np.array(["kim", "lee"]))
    table = read(content, "labels.npz", item="ids", annotator="who")
    assert table.items.tolist() == ["a", "b", "c"]
    assert table.annotators.tolist() == ["kim", "lee"]
    assert not table.positional
    with pytest.raises(InputError, match="Expected 3 names in the items of"):
        read(content, "labels.npz", item="who")


def test_npz_with_three_columns(read):
    table = read(npz(item=np.array([3, 4]), worker=np.array(["k", "l"]), label=np.array([0, 1])))
    assert rows(table) == [("3", "k", "0"), ("4", "l", "1")]


def test_npz_by_the_only_integers_of_two_dimensions_or_by_name(read):
    one, two = np.array([[0, 1]]), np.array([[1, 0, 1]])
    assert read(npz(R=one, X=np.zeros((1, 5)))).n_annotators == 2
    assert read(npz(R=one, S=two), label="S").n_annotators == 3


ARCHIVE = io.BytesIO()
with zipfile.ZipFile(ARCHIVE, "w") as archive:
    archive.writestr("content.xml", "<spreadsheet/>")

OBJECTS = io.BytesIO()
np.save(OBJECTS, np.array([[None, 1]], dtype=object), allow_pickle=True)

BAD_FILES = {
    "empty": (b"", {}, "is empty"),
    "blank": (b"\n\n", {}, "is empty"),
    "byte order mark alone": (b"\xef\xbb\xbf\n", {}, "is empty"),
    "header only": ("item,worker,label\n", {}, "has a header and no rows below it"),
    "no such column": (CSV, {"label": "vote"}, "has no column 'vote'; it has 'task', 'worker'"),
    "duplicate headers": ("item,worker,item\n1,2,3\n", {}, "columns 1 and 3 are both named 'item'"),
    "empty cell": (CSV + "d,,x\n", {}, "row 6, column 'worker' is empty"),
    "quoted empty cell": (CSV + 'd,"",x\n', {}, "row 6, column 'worker' is empty"),
    "short row": (
        CSV + "d,kim\ne,kim,x\n",
        {},
        "row 6: expected 3 fields as in the header, but got 2 ('d,kim')",
    ),
    "long row": (CSV + "d,kim,x,y\n", {}, "row 6: expected 3 fields as in the header, but got 4"),
    "short row beside an empty last column": (
        "when,item,worker,label,truth\n1,a,kim,x,\nb,kim,x,y\n",
        {},
        "row 3: expected 5 fields as in the header, but got 4",
    ),
    "short row of a wide table": ("item,kim,lee\na,x,\nb,y\n", {}, "row 3: expected 3 fields"),
    "row after a blank line": (CSV + "\nd,kim\n", {}, "row 7: expected 3 fields"),
    "open quote": (CSV + 'd,"kim,x\n', {}, "row 6: unexpected end of data"),
    "unknown class": (
        CSV,
        {"classes": ["NA", "001", "null"]},
        "row 5, column 'answer': '1e5' is not among the given classes ('NA', '001', 'null')",
    ),
    "unknown class of a wide table": (
        "item,kim,lee\na,x,y\nb,y,z\n",
        {"classes": ["x", "y"]},
        "row 3, column 'lee': 'z' is not among",
    ),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x01", {}, "binary data in an unknown format"),
    "not UTF-8": (CSV.encode() + b"d,ren\xe9,x\n", {}, "line 6: byte 0xe9 is not UTF-8"),
    "UTF-16": (CSV.encode("utf-16"), {}, "is UTF-16 text. Save it as UTF-8"),
    "broken gzip": (gzip.compress(CSV.encode(), mtime=0)[:-12], {}, "the gzip file is damaged"),
    "broken parquet": (b"PAR1" + b"x" * 50 + b"PAR1", {}, "damaged parquet"),
    "broken npz": (npz(A=np.eye(3, dtype=int))[:-40], {}, "is damaged"),
    "broken json line": (json_lines(CSV) + '{"task": 3,\n', {}, "line 5: not JSON"),
    "json line that is no object": (json_lines(CSV) + "3\n", {}, "line 5: not a JSON object"),
    "json line without a field": (
        json_lines(CSV) + '\n{"task": "d", "worker": "kim"}\n',
        {},
        "line 6: field 'answer' is empty",
    ),
    "json list of labels": (
        json_lines(CSV) + '{"task": "d", "worker": "kim", "answer": ["x", "y"]}\n',
        {},
        "contains several labels",
    ),
    "json array cut short": (b'[{"item": 1},\n{"it', {}, "line 2: not JSON"),
    "empty json array": (b"[]", {}, "is an empty list"),
    "json array of other things": (b'[{"item": 1}, 3]', {}, "record 2: not a JSON object"),
    "half a character": (
        json_lines(CSV) + '{"task": "\\ud83d", "worker": "kim", "answer": "x"}\n',
        {},
        "line 5: not JSON (unpaired surrogate at character 11)",
    ),
    "unknown xml": (
        b"<?xml version='1.0'?><labels/>",
        {},
        "is XML in an unknown format",
    ),
    "pickled npy": (OBJECTS.getvalue(), {}, "pickle can run code"),
    "npz of unclear arrays": (
        npz(P=np.eye(2, dtype=int), Q=np.eye(3, dtype=int)),
        {},
        "which array contains the labels; it has 'P' of shape (2, 2), 'Q' of shape (3, 3)",
    ),
    "npz without the array named": (npz(A=np.eye(2, dtype=int)), {"label": "B"}, "no array 'B'"),
    "npz with too few class names": (
        npz(A=np.array([[0, 2]]), classes=np.array(["x", "y"])),
        {},
        "label 2 has no name, because `classes` has 2 names",
    ),
    "npz with a truth of another length": (
        npz(A=np.array([[0, 2]]), truth=np.array([0, 1])),
        {},
        "'truth' has 2 entries for 1 item",
    ),
    "npz with a truth that is no class": (
        npz(A=np.array([[0, 2], [0, 2]]), truth=np.array([0, 1])),
        {},
        "truth index 1: the truth '1' is not a class",
    ),
    "npz columns of unequal length": (
        npz(item=np.arange(3), worker=np.arange(3), label=np.arange(2)),
        {},
        "expected arrays of equal length",
    ),
    "unknown xml in one line": (
        "<labels><a>1</a></labels>",
        {},
        "is XML in an unknown format",
    ),
    "npz with one array for two roles": (
        npz(item=np.arange(3), who=np.arange(3), label=np.arange(3)),
        {"annotator": "item"},
        "'item' cannot be both the item and the annotator column",
    ),
    "npy of one dimension": (npz(labels=np.arange(3)), {}, "cannot detect which array"),
    "archive": (ARCHIVE.getvalue(), {}, "is a zip archive, but not an npz or xlsx file"),
    "prose": (
        "Dear all,\nplease find\n",
        {},
        "row 2: expected 2 fields as in the header, but got 1",
    ),
    "repeats": (CSV + "c,kim,NA\n", {"repeats": "error"}, "labels.csv, row 6"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_gets_one_line_that_names_it(read, kind):
    content, options, message = BAD_FILES[kind]
    with pytest.raises(InputError) as caught:
        read(content, **options)
    assert message in str(caught.value)
    assert "labels.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [CSV.encode(), gzip.compress(CSV.encode()), json_lines(CSV).encode()],
    ids=["csv", "gzip", "json lines"],
)
def test_a_pipe_is_read_like_a_file(tmp_path, content):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[content], daemon=True)
    writer.start()
    table = LabelTable.read(tmp_path / "pipe")
    writer.join()
    assert rows(table) == EXPECTED


def test_nothing_in_a_device():
    with pytest.raises(InputError, match="/dev/null is empty"):
        LabelTable.read("/dev/null")


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv: no such file"):
        LabelTable.read(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="is a folder without label files"):
        LabelTable.read(tmp_path)
