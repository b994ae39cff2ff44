"""Damaged and hostile files: reading returns a valid table or raises one error in one line."""

import gzip
import io
import json
import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workbooks import sheet, workbook

from annotrace.data import read_features
from annotrace.errors import AnnotraceError
from annotrace.labels import LabelTable
from annotrace.labels.formats import FORMATS

pl = pytest.importorskip("polars")
pytestmark = pytest.mark.fuzz

SAMPLES = Path(__file__).parent / "samples"
N_EXAMPLES = int(os.environ.get("ANNOTRACE_FUZZ_EXAMPLES", "200"))
LONG = {
    "item": ["a", "a", "b", "b", "c", "c"],
    "annotator": ["kim", "lee", "kim", "lee", "kim", "lee"],
    "label": ["yes", "no", "no", "no", "yes", "yes"],
    "truth": ["yes", "yes", "no", "no", None, None],
}
WIDE = np.array([[0, 1, -1], [1, 1, 0], [-1, 0, 0]])
ROWS = [list(LONG), *zip(*LONG.values(), strict=True)]


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def packed(members):
    def write(file):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name), content)

    return written(write)


def arrays(**named):
    return written(lambda file: np.savez_compressed(file, **named))


def sqlite_file():
    """Return the bytes of a SQLite database with one table."""
    with TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/a")) as connection:
        with connection:
            connection.execute(f"CREATE TABLE labels ({', '.join(LONG)})")
            connection.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", ROWS[1:])
        return Path(folder, "a").read_bytes()


def npz(content):
    return packed({"labels.npy": content, "X.npy": content})


def table_files():
    """Small valid files of every type, by name."""
    frame = pl.DataFrame(LONG)
    nested = frame.group_by("item", maintain_order=True).agg("annotator", "label")
    status = pl.lit("submitted").repeat_by(pl.col("label").list.len())
    argilla = nested.with_columns(status.alias("q.responses.status")).rename(
        {"item": "id", "label": "q.responses", "annotator": "q.responses.users"}
    )
    csv = frame.write_csv().encode()
    return {
        "long.csv": csv,
        "long.tsv": frame.write_csv(separator="\t", quote_style="always").encode(),
        "wide.csv": b"image,kim,lee\na,1,2\nb,2,\nc,1,1\n",
        "long.json": json.dumps(frame.to_dicts()).encode(),
        "columns.json": json.dumps({k: dict(enumerate(v)) for k, v in LONG.items()}).encode(),
        "long.jsonl": frame.write_ndjson().encode(),
        "long.xlsx": workbook(ROWS),
        "long.parquet": written(frame.write_parquet),
        "plain.parquet": written(lambda f: frame.write_parquet(f, compression="uncompressed")),
        "argilla.parquet": written(argilla.write_parquet),
        "long.arrow": written(frame.write_ipc_stream),
        "packed.arrow": written(lambda file: frame.write_ipc_stream(file, compression="zstd")),
        "argilla.arrow": written(argilla.write_ipc_stream),
        "wide.npy": written(lambda file: np.save(file, WIDE)),
        "text.npy": written(lambda file: np.save(file, WIDE.astype("U2"))),
        "bytes.npy": written(lambda file: np.save(file, np.asfortranarray(WIDE).astype("S2"))),
        "floats.npy": written(lambda file: np.save(file, np.where(WIDE < 0, np.nan, WIDE))),
        "wide.npz": arrays(labels=WIDE, items=["a", "b", "c"], classes=["no", "yes"]),
        "long.npz": arrays(item=[0, 1, 1], annotator=["k", "k", "l"], label=[1.0, 0.0, 1.0]),
        "long.zip": packed({"long.csv": csv}),
        "long.csv.gz": gzip.compress(csv, mtime=0),
        "long.sqlite": sqlite_file(),
    }


def export_files():
    paths = (path for path in sorted(SAMPLES.rglob("*")) if path.is_file())
    return {str(path.relative_to(SAMPLES)): path.read_bytes() for path in paths}


def feature_files():
    frame = pl.DataFrame({"item": ["a", "b"], "x": [1.0, 2.0], "y": [[1.0, 2.0], [3.0, 4.0]]})
    X = np.arange(12.0).reshape(4, 3)
    return {
        "X.npy": written(lambda file: np.save(file, X)),
        "half.npy": written(lambda file: np.save(file, X.astype(np.float16))),
        "X.npz": arrays(X=X, items=list("abcd")),
        "stored.npz": written(lambda file: np.savez(file, X=X)),
        "X.parquet": written(frame.write_parquet),
    }


TABLES, EXPORTS, FEATURES = table_files(), export_files(), feature_files()
ARRAYS = {name: content for name, content in (TABLES | FEATURES).items() if name.endswith("npy")}
TOKENS = [
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"\x93NUMPY"),
    *(b'"', b"'", b",", b"\n", b"\r", b"[" * 200, b'{"a":' * 200, b"<a>" * 200, b"<!DOCTYPE a>"),
    *(b"9" * 5000, b"1e999", b"-1", b"NaN", b"null", b"true", b"{}", b"[]", b'""', b"\\u0000"),
    *(b"\\ud800", "\u202e\u2028\x85".encode(), b"\xed\xa0\x80", b"&#65;", b"]]>", b"=1+1"),
]
CHANGES = ("flip", "set", "cut", "remove", "repeat", "insert", "splice")


@st.composite
def damaged(draw, files):
    """A valid file after a few changes: flipped, removed, repeated, replaced or inserted bytes."""
    content = bytearray(files[draw(st.sampled_from(sorted(files)))])
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        end = min(len(content), at + draw(st.integers(1, 64)))
        change = draw(
            st.sampled_from(["flip", "cut", "remove", "repeat", "insert", "splice", "set"])
        )
        if change == "flip" and content:
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif change == "set" and content:
            content[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        elif change == "cut":
            del content[at:]
        elif change == "remove":
            del content[at:end]
        elif change == "repeat":
            content[at:at] = content[at:end] * draw(st.integers(1, 20))
        elif change == "insert":
            content[at:at] = draw(st.sampled_from(TOKENS) | st.binary(max_size=8))
        else:
            other = files[draw(st.sampled_from(sorted(files)))]
            content[at:end] = other[at : at + draw(st.integers(1, 200))]
    return bytes(content)


def as_bytes(text):
    return text.encode("utf-8", "surrogatepass")


def optional(values):
    return st.none() | values


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "format": st.sampled_from(["table", *(format.name for format in FORMATS)]),
        "question": st.sampled_from(["sentiment", "q", "mood", ""]),
        "annotator_name": st.just("ann"),
        "query": st.sampled_from(["SELECT * FROM labels", "SELECT item, label FROM labels", ""]),
        "annotators": st.sampled_from([["kim", "lee"], ["label"]]),
        "item": st.sampled_from(["item", "id", "text", "name", ""]),
        "label": st.sampled_from(["label", "labels", "q"]),
        "truth": st.sampled_from(["truth", "item"]),
        "classes": st.sampled_from([["yes", "no"], ["0", "1"]]),
        "repeats": st.sampled_from(["first", "error"]),
    },
)
fuzz = settings(max_examples=N_EXAMPLES, deadline=10_000, print_blob=True)


def check_reading(read, content, folder, **options):
    """Check that reading returns something valid or raises one error, and leaves no file."""
    path, message, result = folder / "labels", "", None
    path.write_bytes(content)
    try:
        result = read(path, **options)
    except AnnotraceError as error:
        message = str(error)
    assert len(message.splitlines()) <= 1
    assert "Traceback" not in message
    assert list(folder.iterdir()) == [path]
    return result


def check_table(table):
    if table is None:
        return
    assert table.n_labels > 0
    assert table.n_classes >= 2
    for codes, names in (
        (table.item, table.items),
        (table.annotator, table.annotators),
        (table.label, table.classes),
    ):
        assert 0 <= codes.min() <= codes.max() < len(names)
        listed = names.tolist()
        assert len(set(listed)) == len(listed)
        "".join(map(str, listed)).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", sorted(TABLES.keys() - {"long.zip"}))
def test_the_files_to_damage_are_valid(name, read):
    assert read(TABLES[name], name).n_labels in (3, 5, 6, 7, 9)


@pytest.mark.parametrize("name", FEATURES)
def test_the_features_to_damage_are_valid(name, tmp_path):
    (tmp_path / name).write_bytes(FEATURES[name])
    assert len(read_features(tmp_path / name)) in (2, 4)


@pytest.mark.filterwarnings("ignore:-1 is read as a class")
@fuzz
@given(damaged(TABLES), OPTIONS)
def test_damaged_tables(folder, content, options):
    check_table(check_reading(LabelTable.read, content, folder, **options))


@pytest.mark.filterwarnings("ignore:-1 is read as a class")
@fuzz
@given(damaged(EXPORTS), OPTIONS)
def test_damaged_exports(folder, content, options):
    check_table(check_reading(LabelTable.read, content, folder, **options))


@pytest.mark.filterwarnings("ignore:-1 is read as a class")
@fuzz
@given(damaged(TABLES | EXPORTS).map(lambda content: gzip.compress(content, mtime=0)), OPTIONS)
def test_damaged_files_in_gzip(folder, content, options):
    check_table(check_reading(LabelTable.read, content, folder, **options))


@pytest.mark.filterwarnings("ignore:-1 is read as a class")
@fuzz
@given(damaged({"sheet": sheet(ROWS).encode()}).map(workbook) | damaged(ARRAYS).map(npz), OPTIONS)
def test_damaged_members_of_archives(folder, content, options):
    check_table(check_reading(LabelTable.read, content, folder, **options))


@fuzz
@given(st.binary(max_size=300) | st.text(max_size=300).map(as_bytes), OPTIONS)
def test_random_bytes(folder, content, options):
    check_table(check_reading(LabelTable.read, content, folder, **options))


@fuzz
@given(damaged(FEATURES) | damaged(ARRAYS).map(npz), optional(st.sampled_from(["item", "x"])))
def test_damaged_features(folder, content, item):
    source = check_reading(read_features, content, folder, item=item)
    assert source is None or len(source) > 0
