"""Small files that claim or become very large ones: one error that names the limit, at once."""

import contextlib
import csv
import gzip
import io
import json
import os
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import polars as pl
import pytest
from workbooks import MAIN, workbook

from annotrace.data import read_features
from annotrace.errors import InputError, LimitError
from annotrace.labels import LabelTable
from annotrace.limits import Limits

LABELS = "item,annotator,label\na,kim,x\nb,kim,y\n"
SHEET = f'<worksheet xmlns="{MAIN}"><sheetData>{{}}</sheetData></worksheet>'


def blanks_in_gzip(start, gigabytes=5):
    """Compress `start`, and repeat a compressed block of blanks, which is valid gzip."""
    block = gzip.compress(b" " * 2**26, mtime=0)
    return gzip.compress(start, mtime=0) + block * (16 * gigabytes)


def lines_in_gzip():
    block = b'{"item": 1, "annotator": 2, "label": 3}\n' * 2**20
    return gzip.compress(block, mtime=0) * 8


def header(shape):
    file = io.BytesIO()
    described = {"descr": "<i8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue() + bytes(80)


def archive(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return file.getvalue()


def encrypted():
    content = bytearray(archive(labels=header((10, 1))))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def repeated(n_rows):
    return pl.select(item=0, annotator=0, label=0).select(pl.all().repeat_by(n_rows))


def repeated_parquet(n_rows):
    file = io.BytesIO()
    repeated(n_rows).explode(pl.all()).write_parquet(file)
    return file.getvalue()


def repeated_list(n_rows):
    file = io.BytesIO()
    repeated(n_rows).write_parquet(file)
    return file.getvalue()


def repeated_text(n_rows):
    """Return a file that holds a long text once and repeats it in every row."""
    file = io.BytesIO()
    pl.DataFrame({"item": ["a" * 10_000] * n_rows, "label": range(n_rows)}).write_parquet(file)
    return file.getvalue()


def repeated_category(n_rows):
    """Return a file that holds a long category once; polars reads 60,000 of its rows a second."""
    file = io.BytesIO()
    label = pl.Series(["a" * 100_000], dtype=pl.Categorical).gather([0] * n_rows)
    pl.DataFrame({"item": range(n_rows), "annotator": 1, "label": label}).write_parquet(file)
    return file.getvalue()


def repeated_arrow(n_rows):
    file = io.BytesIO()
    repeated(n_rows).explode(pl.all()).write_ipc_stream(file, compression="zstd")
    return file.getvalue()


def entities():
    levels = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    kind = f'<!DOCTYPE annotations [<!ENTITY a0 "aaaaaaaaaa">{levels}]>'
    return f'<?xml version="1.0"?>{kind}<annotations>&a11;</annotations>'.encode()


def wide(n_columns):
    names = ",".join(map(str, range(n_columns)))
    return f"item,{names}\na,{'x,' * n_columns}\n".encode()


def far_cell():
    cell = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    return workbook(SHEET.format(f'<row r="1"><c r="A1"><v>1</v></c></row>{cell}'))


# Of these, the sizes are checked against lower limits, to keep the tests quick.
SMALL = {
    "zeros.npz": (lambda: archive(labels=header((2**20, 1)) + bytes(2**23)), "max_expansion"),
    "rows.parquet": (lambda: repeated_parquet(100_000), "max_expansion"),
    "blank.xlsx": (lambda: workbook(SHEET.format(" " * 2**23), packed=True), "max_expansion"),
    "rows.arrow": (lambda: repeated_arrow(100_000), "max_expansion"),
    "text.parquet": (lambda: repeated_text(1000), "max_expansion"),
    "list.parquet": (lambda: repeated_list(100_000), "max_expansion"),
}
BOMBS = {
    "rows.csv.gz": (lambda: blanks_in_gzip(LABELS.encode()), "max_expansion"),
    "line.jsonl.gz": (lambda: blanks_in_gzip(b'{"item": "'), "max_expansion"),
    "lines.jsonl.gz": (lines_in_gzip, "max_expansion"),
    "zeros.gz": (lambda: gzip.compress(bytes(2**20)), "binary data"),
    "claim.npy": (lambda: header((50_000_000_000, 1)), "claims 400,000,000,000 bytes"),
    "claim.npz": (lambda: archive(labels=header((50_000_000_000, 1))), "claims 400,000,000,000"),
    "empty.npy": (lambda: header((0, 10**15)), "max_columns"),
    "encrypted.npz": (encrypted, "is encrypted"),
    "wide.csv": (lambda: wide(1_000_000), "max_columns"),
    "wide.jsonl": (
        lambda: json.dumps(dict.fromkeys(map(str, range(10**6)))).encode(),
        "max_columns",
    ),
    "category.parquet": (lambda: repeated_category(500_000), "max_expansion"),
    "far.xlsx": (far_cell, "max_size"),
    "deep.json": (lambda: b'[{"a":' + b"[" * 200_000, "max_depth"),
    "nested.json": (lambda: b'[{"a":' + b"[" * 200 + b"]" * 200 + b"}]", "max_depth"),
    "deep.jsonl": (lambda: b'{"a":' + b"[" * 200 + b"]" * 200 + b"}\n", "max_depth"),
    "deep.xml": (lambda: b"<annotations>" + b"<a>" * 200_000, "max_depth"),
    "entities.xml": (entities, "entities"),
    "long.csv": (lambda: LABELS.replace("a,", "a" * 200_000 + ",", 1).encode(), "max_cell"),
    "quoted.csv": (lambda: (LABELS + '"' + "a" * 200_000).encode(), "max_cell"),
}


def seconds_to_reject(read, path, message):
    # The time of this process alone, because others may keep the machine busy.
    start = time.process_time()
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    if message.startswith("max_"):
        assert isinstance(caught.value, LimitError)
        assert f"(--{message.replace('_', '-')} on the command line)" in str(caught.value)
    return time.process_time() - start


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_rejected_at_once(name, tmp_path):
    make, message = BOMBS[name]
    (tmp_path / name).write_bytes(make())
    assert seconds_to_reject(LabelTable.read, tmp_path / name, message) < 2


@pytest.mark.parametrize("name", SMALL)
def test_files_that_expand_too_much_are_rejected(name, tmp_path, monkeypatch):
    monkeypatch.setattr("annotrace.limits.FREE_SIZE", 2**20)
    make, message = SMALL[name]
    (tmp_path / name).write_bytes(make())
    assert seconds_to_reject(LabelTable.read, tmp_path / name, message) < 2


@pytest.mark.parametrize("name", ["claim.npy", "claim.npz", "encrypted.npz"])
def test_features_that_claim_too_much_are_rejected(name, tmp_path):
    make, message = BOMBS[name]
    (tmp_path / name).write_bytes(make())
    assert seconds_to_reject(read_features, tmp_path / name, message) < 2


MEMORY = """
import resource, sys
import numpy, polars, narwhals
from annotrace.labels import LabelTable
from annotrace.errors import LimitError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    LabelTable.read(sys.argv[1])
except LimitError:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 2**10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
@pytest.mark.parametrize("name", ["rows.csv.gz", "far.xlsx"])
def test_a_rejected_bomb_takes_little_memory(name, tmp_path):
    (tmp_path / name).write_bytes(BOMBS[name][0]())
    command = [sys.executable, "-c", MEMORY, str(tmp_path / name)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 300  # MiB, of which 128 may be unpacked


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such devices")
def test_endless_devices_are_rejected():
    with pytest.raises(InputError, match="/dev/zero contains binary data"):
        LabelTable.read("/dev/zero")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_pipes_have_the_limit_of_size(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: suppress_broken(pipe))
    writer.start()
    with pytest.raises(LimitError, match="max_size"):
        LabelTable.read(pipe, limits=Limits(max_size=2**21))
    writer.join()


def suppress_broken(pipe):
    with contextlib.suppress(BrokenPipeError), pipe.open("wb") as file:
        file.write(b"a,b\n" * 2**22)


@pytest.mark.parametrize(
    ("content", "limits"),
    [
        (LABELS, {"max_size": len(LABELS) - 1}),
        (LABELS, {"max_columns": 2}),
        (json.dumps([{"item": "a", "worker": "k", "label": 1}]), {"max_columns": 2}),
        (LABELS.replace("kim", "kimberly"), {"max_cell": 7}),
        ('{"item": {"a": [1]}}', {"max_depth": 2}),
        ("<annotations><image><tag/></image></annotations>", {"max_depth": 2}),
    ],
)
def test_every_limit_can_be_set(read, content, limits):
    ((name, value),) = limits.items()
    with pytest.raises(LimitError, match=rf"limit of {value}\b.*Limits\({name}=...\)"):
        read(content, limits=Limits(**limits))
    try:
        read(content, limits=Limits(**{name: 10 * value}))
    except LimitError:
        pytest.fail(f"{name} was raised")
    except InputError:
        assert content != LABELS  # The others lack what a table of labels needs.


def test_cells_longer_than_the_limit_of_the_csv_module(read):
    """A file that only the csv module reads: the last cell of a row is empty, with quotes."""
    name = "a" * 200_000
    content = f'item,annotator,label,truth\n"{name}",kim,x,\nb,kim,y,\n'
    before = csv.field_size_limit()
    try:
        assert read(content, limits=Limits(max_cell=300_000)).items.tolist() == [name, "b"]
    finally:
        csv.field_size_limit(before)
