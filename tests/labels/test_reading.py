import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.formats import FORMATS
from annotrace.labels.reading import describe_skipped, find_format

SAMPLES = Path(__file__).parent / "samples"

CSV = "task,worker,answer\nb,kim,NA\na,lee,001\nb,lee,null\nc,kim,1e5\n"
EXPECTED = [("a", "lee", "001"), ("b", "kim", "NA"), ("b", "lee", "null"), ("c", "kim", "1e5")]


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
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


def test_named_columns_and_truth(read):
    text = "when,what,who,said,is\n1,a,kim,x,x\n2,b,kim,y,\n"
    table = read(text, item="what", annotator="who", label="said", truth="is")
    assert rows(table) == [("a", "kim", "x"), ("b", "kim", "y")]
    assert table.truth.tolist() == [0, -1]


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
    "broken npz": (npz(A=np.eye(3, dtype=int))[:-40], {}, "is a damaged zip file"),
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


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv: no such file"):
        LabelTable.read(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="is a folder without label files"):
        LabelTable.read(tmp_path)


@pytest.fixture
def write(tmp_path):
    def write(**contents):
        for name, content in contents.items():
            (tmp_path / f"{name}.csv").write_text(content)
        return tmp_path

    return write


def test_endings_in_capitals_are_endings(tmp_path):
    (tmp_path / "LABELS.CSV").write_text("item,worker,label\na,kim,x\nb,kim,y\n", encoding="utf-8")
    assert LabelTable.read(tmp_path).items.tolist() == ["a", "b"]


def test_hidden_files_and_others_in_a_folder_are_ignored(write):
    folder = write(a="item,worker,label\na,kim,x\nb,kim,y\n")
    (folder / ".b.csv").write_text("no table")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    (folder / "metadata.json").write_text('{"n_classes": 2}')
    assert LabelTable.read(folder).n_labels == 2


def test_arrays_are_read_one_file_at_a_time(tmp_path):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.array([[0, 1], [1, 1]]))
    with pytest.raises(InputError, match=r"a\.npy contains arrays: read it separately"):
        LabelTable.read([tmp_path / "a.npy", tmp_path / "b.npy"])


def test_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match="at least one file"):
        LabelTable.read([])


CROWD = Path(__file__).parents[2] / ".." / "shared" / "data" / "crowd"

# The published crowd label sets against the counts of their sources.
needs_crowds = pytest.mark.skipif(not CROWD.is_dir(), reason="the real files are not here")

# items, annotators, labels, classes, items with truth
COUNTS = {
    "snow2008_rte": (800, 164, 8000, 2, 800),
    "snow2008_temp": (462, 76, 4620, 2, 462),
    "snow2008_wsd": (177, 34, 1770, 3, 177),
    "bluebirds": (108, 39, 4212, 2, 108),
    "dog": (807, 109, 8070, 4, 807),
    "product_match": (8315, 176, 24945, 2, 8315),
    "weather_sentiment_amt": (300, 110, 6025, 5, 300),
    "sentiment_polarity_amt500": (500, 143, 10000, 2, 500),
    "zencrowd_us": (2040, 74, 11155, 2, 2040),
    "adult_content2": (11040, 825, 89799, 4, 333),
    "adult_content3": (496, 338, 35323, 5, 0),
    "hitspam_crowdflower": (5380, 153, 38593, 2, 100),
    "hitspam_mturk": (5840, 135, 28354, 2, 0),
    "anesthesia_with_repeats": (45, 5, 315, 4, 0),
}


@needs_crowds
@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_published_labels(name):
    table = LabelTable.read(CROWD / "label_only" / f"{name}.csv.gz")
    n_truth = 0 if table.truth is None else int(np.sum(table.truth >= 0))
    counts = (table.n_items, table.n_annotators, table.n_labels, table.n_classes, n_truth)
    assert counts == COUNTS[name]


@needs_crowds
def test_annotator_accuracy_against_the_truth():
    table = LabelTable.read(CROWD / "label_only" / "dog.csv.gz")
    assert np.mean(table.truth[table.item] == table.label) == pytest.approx(0.6964, abs=5e-5)


@needs_crowds
def test_scores_are_rejected():
    with pytest.raises(InputError, match=r"row 2, column 'truth': '3\.1' is a score"):
        LabelTable.read(CROWD / "label_only" / "snow2008_wordsim.csv.gz")


@needs_crowds
def test_counts_of_patterns_are_rejected():
    with pytest.raises(InputError, match=r"it is unclear which columns are items"):
        LabelTable.read(CROWD / "label_only" / "caries_pattern_counts.csv.gz")


@needs_crowds
@pytest.mark.parametrize(
    ("name", "options", "counts"),
    [
        ("labelme", {"truth": "y_train"}, (1000, 59, 2547, 8)),
        ("face_sentiment", {"truth": "y"}, (584, 27, 5242, 4)),
        ("sentiment_polarity", {"truth": "y"}, (4999, 203, 27746, 2)),
        ("cifar10n", {"label": "R", "truth": "clean"}, (50000, 3, 150000, 10)),
    ],
)
def test_counts_of_published_arrays(name, options, counts):
    table = LabelTable.read(CROWD / f"{name}.npz", **options)
    assert (table.n_items, table.n_annotators, table.n_labels, table.n_classes) == counts
    assert table.positional
    assert np.all(table.truth >= 0)


def test_files_are_named_without_their_endings(tmp_path):
    record = '{"id": 1, "text": "a", "label": ["x"]}\n{"id": 2, "text": "b", "label": ["y"]}\n'
    for name in ("ann.b@example.com.jsonl", "cy.jsonl"):
        (tmp_path / name).write_text(record)
    assert LabelTable.read(tmp_path).annotators.tolist() == ["ann.b@example.com", "cy"]


def test_a_format_named_by_the_caller_takes_precedence():
    with pytest.raises(InputError, match=r"line 1: field 'data' is not an object"):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="label-studio")
    with pytest.raises(InputError, match="found no annotator"):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="table")
    with pytest.raises(
        InputError,
        match=r"Expected `format` to be one of argilla, cvat, doccano, .* but got 'excel'",
    ):
        LabelTable.read(SAMPLES / "doccano" / "ann.jsonl", format="excel")


def test_files_of_two_formats_are_not_mixed():
    with pytest.raises(InputError, match=r"prodigy_binary.jsonl is Prodigy JSON lines and .*ann"):
        LabelTable.read([SAMPLES / "doccano" / "ann.jsonl", SAMPLES / "prodigy_binary.jsonl"])


def test_detection_order_is_reported_and_every_name_is_once():
    names = [known.name for known in FORMATS]
    assert len(set(names)) == len(names)
    assert names[-1] == "peerannot"
    assert find_format([], "table") is None


def test_skipped_answers_are_described():
    assert describe_skipped({"draft": 1}) == "1 answer skipped (1 draft)"
    assert describe_skipped({"cancelled": 2000, "draft": 1}) == (
        "2,001 answers skipped (2,000 cancelled, 1 draft)"
    )


def test_a_csv_file_is_no_export(tmp_path):
    (tmp_path / "a.csv").write_text("item,worker,label\na,kim,x\nb,kim,y\n")
    with pytest.raises(InputError, match=r"a\.csv is a table, but not one of Prodigy"):
        LabelTable.read(tmp_path / "a.csv", format="prodigy")
