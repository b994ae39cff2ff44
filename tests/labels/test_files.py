import gzip
import os
import threading

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.files import standard_input
from annotrace.labels.reading import open_document

CSV = "task,worker,answer\nb,kim,NA\na,lee,001\nb,lee,null\nc,kim,1e5\n"


EXPECTED = [("a", "lee", "001"), ("b", "kim", "NA"), ("b", "lee", "null"), ("c", "kim", "1e5")]


def json_lines(text):
    header, *records = (line.split(",") for line in text.splitlines())
    return "".join(
        "{" + ", ".join(f'"{k}": "{v}"' for k, v in zip(header, record, strict=True)) + "}\n"
        for record in records
    )


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


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


def test_a_byte_order_mark_and_gzip_are_taken_off(tmp_path):
    text = '{"answer": "accept"}\n{"answer": "reject"}\n'
    (tmp_path / "a").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode(), mtime=0))
    records = list(open_document(tmp_path / "a").records())
    assert records == [(1, {"answer": "accept"}), (2, {"answer": "reject"})]


def test_a_damaged_gzip_of_json_lines_is_reported(tmp_path):
    packed = gzip.compress(b'{"answer": "accept"}\n' * 10_000, mtime=0)
    (tmp_path / "a").write_bytes(packed[:-12])
    with pytest.raises(InputError, match="the gzip file is damaged"):
        list(open_document(tmp_path / "a").records())


def test_standard_input_may_be_closed(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="Standard input is closed"):
        standard_input()
