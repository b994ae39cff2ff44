import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from annotrace.data.byte_store import ByteStore
from annotrace.errors import InputError


@pytest.fixture
def store(tmp_path):
    return ByteStore(tmp_path / "deep" / "store.sqlite")


def test_values_are_found_by_key(store):
    store.put([(b"a", b"one"), (b"b", b"two"), (b"c", b"")])
    store.put([(b"b", b"three")])
    assert store.get([b"a", b"b", b"c", b"d"]) == {b"a": b"one", b"b": b"three", b"c": b""}
    assert ByteStore(store.path).get([b"a"]) == {b"a": b"one"}


def test_the_folder_is_for_the_user_alone(store):
    assert store.path.parent.stat().st_mode & 0o077 == 0


def test_a_value_that_does_not_match_its_checksum_is_missing(store):
    store.put([(b"a", b"one"), (b"b", b"two"), (b"d", b"four")])
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE entries SET value = value || x'00' WHERE key = ?", [b"a"])
        connection.execute("INSERT INTO entries VALUES (?, ?)", [b"c", "text"])
        connection.execute("INSERT INTO entries VALUES (?, ?)", [b"e", 7])
        connection.execute("UPDATE entries SET key = ? WHERE key = ?", [b"f", b"d"])
    connection.close()
    assert store.get([b"a", b"b", b"c", b"d", b"e", b"f"]) == {b"b": b"two"}


@pytest.mark.parametrize(
    "work", [lambda store: store.get([b"a"]), lambda store: store.put([(b"a", b"one")])]
)
def test_a_damaged_file_is_set_aside(store, work):
    store.path.write_bytes(b"not a database at all" * 100)
    with pytest.warns(UserWarning, match=r"store\.sqlite is damaged \(.*renamed to store\.sqlite"):
        work(store)
    assert store.path.with_name("store.sqlite.damaged").read_bytes().startswith(b"not a database")
    store.put([(b"a", b"two")])
    assert store.get([b"a"]) == {b"a": b"two"}


def test_a_file_whose_pages_are_damaged_is_set_aside(store):
    store.put([(bytes([number]), bytes(3000)) for number in range(200)])
    with store.path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(200 * 3000))
    with pytest.warns(UserWarning, match="is damaged"):
        store.get([bytes([number]) for number in range(200)])
    assert store.get([b"\x00"]) == {}


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"store\.sqlite: the cache cannot be used \(.*--no-cache"):
        ByteStore(tmp_path / "file" / "store.sqlite")
    (tmp_path / "store.sqlite").mkdir()
    with pytest.raises(InputError, match=r"cache cannot be used \(unable to open database file"):
        ByteStore(tmp_path / "store.sqlite").get([b"a"])


def test_writers_at_the_same_time_wait_for_each_other(store):
    keys = [[f"{name} {number}".encode() for number in range(10)] for name in "abc"]

    def write(some):
        for key in some:
            ByteStore(store.path).put([(key, b"value")])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, keys))
    assert len(store.get([key for some in keys for key in some])) == 30
