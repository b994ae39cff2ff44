import sys
from pathlib import Path

import numpy as np
import pytest

from annotrace.data.encoding_cache import EncodingCache, cache_folder, default_cache_folder
from annotrace.errors import InputError

KEYS = [number.to_bytes(32, "little") for number in range(1200)]
ROWS = np.random.default_rng(0).normal(size=(1200, 3)).astype(np.float32)


@pytest.fixture
def cache(tmp_path):
    return EncodingCache(tmp_path, "model")


def test_rows_come_back_to_the_last_bit(cache):
    cache.write(KEYS[:900], ROWS[:900])
    positions, rows = cache.read(KEYS[::-1])
    assert positions.tolist() == list(range(300, 1200))
    np.testing.assert_array_equal(rows, ROWS[:900][::-1])


def test_an_empty_cache_has_no_rows(cache):
    positions, rows = cache.read(KEYS)
    assert len(positions) == len(rows) == 0


def test_models_do_not_share_rows(cache, tmp_path):
    cache.write(KEYS[:1], ROWS[:1])
    assert len(EncodingCache(tmp_path, "other").read(KEYS)[0]) == 0


def test_a_value_that_is_no_row_is_missing(cache):
    cache.store.put([(KEYS[0], b"12345"), (KEYS[1], b"")])
    assert len(cache.read(KEYS)[0]) == 0


def test_rows_of_two_lengths_are_refused(cache):
    cache.write(KEYS[:2], ROWS[:2])
    cache.write(KEYS[2:4], ROWS[2:4, :2])
    with pytest.raises(InputError, match=r"model\.sqlite has rows of 2 and of 3 numbers"):
        cache.read(KEYS)


def test_the_folder_of_the_cache(tmp_path, monkeypatch):
    assert cache_folder(False) is None
    assert cache_folder("here") == Path("here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder(None) == default_cache_folder()


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "/caches", "/caches"),
        ("linux", "XDG_CACHE_HOME", "", "/home/ann/.cache"),
        ("linux", "XDG_CACHE_HOME", "relative", "/home/ann/.cache"),
        ("darwin", "XDG_CACHE_HOME", "/caches", "/home/ann/Library/Caches"),
        ("win32", "LOCALAPPDATA", "/local", "/local"),
        ("win32", "LOCALAPPDATA", "", "/home/ann/AppData/Local"),
    ],
)
def test_the_default_folder_is_where_the_system_has_caches(
    monkeypatch, platform, variable, value, expected
):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ann"))
    monkeypatch.setenv(variable, value)
    assert default_cache_folder() == Path(expected) / "annotrace" / "encodings"
