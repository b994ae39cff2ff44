"""A short version of the benchmark: one kill of a real process, resumed in this one."""

import random

import pytest

from annotrace.data import encode
from annotrace.labels.side_tables import read_texts

pytest.importorskip("transformers")
from encoding_kills import (
    BATCH_SIZE,
    START,
    count_repeats,
    kill_later,
    read_log,
    start,
    write_texts,
)
from tiny_models import write_text_model

N_ITEMS = 120


def test_a_killed_encoding_is_resumed_from_its_last_batch(tmp_path):
    write_text_model(tmp_path / "model")
    write_texts(tmp_path / "texts.csv", N_ITEMS, random.Random(0))
    log = tmp_path / "log.jsonl"
    assert kill_later(start(tmp_path, "killed", log), log, random.Random(1))
    assert not (tmp_path / "killed.npz").exists()
    started = [texts for event, texts in read_log(log) if event == START]
    assert 0 < len(started) < N_ITEMS // BATCH_SIZE

    texts = read_texts(tmp_path / "texts.csv").texts
    options = {"batch_size": BATCH_SIZE}
    resumed = encode(texts, tmp_path / "model", cache=tmp_path / "killed-cache", **options)
    n_kept = N_ITEMS - resumed.n_computed
    assert n_kept in (BATCH_SIZE * len(started), BATCH_SIZE * (len(started) - 1))
    whole = encode(texts, tmp_path / "model", cache=False, **options)
    assert resumed.X.tobytes() == whole.X.tobytes()


def test_repeats_outside_of_batches_in_flight_are_counted(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text(
        '["start", ["a", "b"]]\n["end", ["a", "b"]]\n["start", ["c"]]\n["start", ["c", "a"]]\n["st'
    )
    found = count_repeats(log, in_flight=["c"])
    assert found == {"distinct": 3, "in_flight": 1, "repeats": 2, "other_repeats": 1}
