import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from annotrace.data import EncodedSource, encode
from annotrace.errors import InputError

TEXTS = ["a good film", "the dog runs and the cat sleeps", "bad", "a good film", "", "the cat"]


class Counting:
    """An encoder of texts by length and vowels, which keeps the batches that it is given."""

    fingerprint = "counting 1"

    def __init__(self):
        self.batches = []

    def __call__(self, items):
        self.batches.append(items)
        texts = [item if isinstance(item, str) else " ".join(item) for item in items]
        return np.array([[len(text), text.count("a"), text.count("o")] for text in texts])

    @property
    def seen(self):
        return [item for batch in self.batches for item in batch]


EXPECTED = Counting()(TEXTS)


@pytest.fixture
def counting():
    return Counting()


def test_rows_are_in_the_order_of_the_items(counting):
    source = encode(TEXTS, counting, batch_size=2, cache=False)
    assert isinstance(source, EncodedSource)
    assert source.X.dtype == np.float32
    np.testing.assert_array_equal(source.X, EXPECTED)
    assert source.n_computed == 5


def test_batches_go_from_long_to_short_and_repeat_nothing(counting):
    encode(TEXTS, counting, batch_size=2, cache=False)
    assert counting.batches == [[TEXTS[1], TEXTS[0]], ["the cat", "bad"], [""]]


def test_names_are_kept(counting):
    names = ["f", "e", "d", "c", "b", "a"]
    assert encode(TEXTS, counting, names=names, cache=False).items.tolist() == names
    assert encode(TEXTS, counting, cache=False).items is None


def test_pairs_and_images_reach_a_function(counting):
    pairs = [("a", "film"), ("a", "dog")]
    encode(pairs, counting, cache=False)
    assert sorted(counting.seen) == sorted(pairs)
    images = np.full((3, 4, 5), [[[10]], [[20]], [[30]]], np.uint8)
    source = encode(images, lambda some: [[image.getpixel((0, 0))[2]] for image in some])
    assert source.X.tolist() == [[10], [20], [30]]
    assert source.encoder.kind == "images"


@pytest.mark.parametrize(
    "convert",
    [np.asarray, torch.tensor, lambda rows: torch.tensor(rows, dtype=torch.bfloat16), list],
)
def test_a_function_may_return_an_array_a_tensor_or_lists(convert):
    source = encode(["a", "abc"], lambda texts: convert([[float(len(text))] for text in texts]))
    assert source.X.tolist() == [[1.0], [3.0]]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([1.0, 2.0], r"numbers of shape \(2, n_features\), but got float64 of shape \(2,\)"),
        ([[1.0]], r"but got float64 of shape \(1, 1\)"),
        ([[], []], r"but got float64 of shape \(2, 0\)"),
        ([["a"], ["b"]], "but got <U1"),
        ([[1.0], [1.0, 2.0]], "but got object"),
        (None, r"but got object of shape \(\)"),
        ([[1.0], [1e300]], r"too large for item 0 \('short'\)"),
        ([[1.0], [np.nan]], r"NaN, infinite or too large for item 0 \('short'\)"),
    ],
)
def test_a_wrong_output_is_named(output, message):
    with pytest.raises(InputError, match=message):
        encode(["a", "abc"], lambda texts: output, names=["short", "long"])


def test_rows_of_another_length_are_refused(counting):
    with pytest.raises(InputError, match=r"shape \(1, 4\), but got int64 of shape \(1, 1\)"):
        encode(["a", "abcd"], lambda texts: np.zeros((1, len(texts[0])), int), batch_size=1)


def test_nothing_to_encode_is_refused(counting):
    with pytest.raises(InputError, match="at least one item"):
        encode([], counting)
    with pytest.raises(InputError, match="`batch_size` to be a whole number larger than 0"):
        encode(TEXTS, counting, batch_size=0)
    with pytest.raises(InputError, match="`n_workers` to be a whole number of at least 0 or None"):
        encode(TEXTS, counting, n_workers=-1)


# The cache


def test_only_what_has_changed_is_encoded_again(counting, tmp_path):
    encode(TEXTS, counting, cache=tmp_path)
    counting.batches.clear()
    source = encode(["new", *TEXTS[::-1]], counting, cache=tmp_path)
    assert counting.seen == ["new"]
    assert source.n_computed == 1
    np.testing.assert_array_equal(source.X[1:], EXPECTED[::-1])
    np.testing.assert_array_equal(source.X[0], [3, 0, 0])
    counting.batches.clear()
    np.testing.assert_array_equal(encode(TEXTS, counting, cache=tmp_path).X, EXPECTED)
    assert counting.batches == []


def test_a_changed_photo_is_encoded_again(tmp_path):
    folder, cache = tmp_path / "photos", tmp_path / "cache"
    folder.mkdir()

    def save(name, level):
        Image.fromarray(np.full((8, 8, 3), level, np.uint8)).save(folder / name)

    def mean(images):
        seen.append(len(images))
        return [[np.asarray(image).mean()] for image in images]

    seen = []
    for level, name in enumerate(["a.png", "b.png", "c.png"]):
        save(name, level)
    options = {"cache": cache, "cache_key": "mean"}
    source = encode(folder, mean, **options)
    assert (source.items.tolist(), source.X.tolist()) == (
        ["a.png", "b.png", "c.png"],
        [[0], [1], [2]],
    )
    save("b.png", 9)
    (folder / "c.png").rename(folder / "d.png")
    source = encode(folder, mean, **options)
    assert (source.items.tolist(), source.X.tolist()) == (
        ["a.png", "b.png", "d.png"],
        [[0], [9], [2]],
    )
    assert seen == [3, 1]


def test_a_function_is_cached_only_under_a_key(counting, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plain = counting.__call__
    encode(TEXTS, lambda texts: plain(texts))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="name what identifies it with cache_key="):
        encode(TEXTS, lambda texts: plain(texts), cache=tmp_path)
    encode(TEXTS, lambda texts: plain(texts), cache_key="plain")
    assert (tmp_path / "annotrace" / "encodings").is_dir()
    counting.batches.clear()
    encode(TEXTS, lambda texts: plain(texts), cache_key="plain")
    assert counting.batches == []
    encode(TEXTS, lambda texts: plain(texts), cache_key="plain 2")
    encode(TEXTS, lambda texts: plain(texts), cache_key="plain", cache=False)
    assert len(counting.seen) == 10


def test_a_key_that_two_functions_share_does_not_mix_their_rows(counting, tmp_path):
    encode(TEXTS, counting, cache=tmp_path, cache_key="same")
    with pytest.raises(InputError, match="pass another cache_key="):
        encode(
            ["new", *TEXTS], lambda texts: [[1.0]] * len(texts), cache=tmp_path, cache_key="same"
        )


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_encoding_that_stops_is_resumed(counting, tmp_path, error):
    def fail(texts):
        if len(counting.batches) == 2:
            raise error
        return counting(texts)

    options = {"cache": tmp_path, "cache_key": "key", "batch_size": 2}
    with pytest.raises(error) as caught:
        encode(TEXTS, fail, **options)
    if error is KeyboardInterrupt:
        assert str(caught.value) == (
            f"Interrupted after encoding 4 items. They are kept in {tmp_path}; the same command "
            "or call resumes from there."
        )
    done, counting.batches = counting.seen, []
    source = encode(TEXTS, counting, **options)
    assert sorted(done + counting.seen) == sorted(set(TEXTS))
    assert len(done) == 4
    np.testing.assert_array_equal(source.X, EXPECTED)


def test_an_interrupt_without_a_cache_keeps_nothing():
    def stop(texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"after encoding 0 items\. Nothing is kept"):
        encode(TEXTS, stop, cache=False)


def test_a_damaged_cache_is_computed_again(counting, tmp_path):
    encode(TEXTS, counting, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"damaged" * 1000)
    with pytest.warns(UserWarning, match="is damaged"):
        source = encode(TEXTS, counting, cache=tmp_path)
    np.testing.assert_array_equal(source.X, EXPECTED)
    assert len(counting.seen) == 10


# Models


def test_a_model_is_not_loaded_if_all_is_cached(models, tmp_path, monkeypatch):
    before = encode(TEXTS, models / "text", cache=tmp_path)
    assert before.n_computed == 5

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr("annotrace.data.encoders.load_model", fail)
    after = encode(TEXTS, models / "text", cache=tmp_path)
    np.testing.assert_array_equal(after.X, before.X)
    assert (after.n_computed, after.encoder) == (0, before.encoder)


def test_a_model_that_has_changed_encodes_again(models, tmp_path):
    folder = Path(shutil.copytree(models / "text", tmp_path / "model"))
    before = encode(TEXTS, folder, cache=tmp_path / "cache")
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 0x40
    (folder / "model.safetensors").write_bytes(weights)
    after = encode(TEXTS, folder, cache=tmp_path / "cache")
    assert after.n_computed == 5
    assert after.encoder.fingerprint != before.encoder.fingerprint


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("text", TEXTS),
        ("text", [(text, "the cat") for text in TEXTS]),
        ("sentence", TEXTS),
        ("image", np.random.default_rng(0).integers(0, 256, (6, 9, 8, 3), dtype=np.uint8)),
    ],
)
def test_the_size_of_batches_does_not_matter(models, name, items):
    one = encode(items, str(models / name), batch_size=1, cache=False)
    many = encode(items, str(models / name), cache=False)
    np.testing.assert_allclose(one.X, many.X, atol=1e-5)
    assert len(one) == 6


def test_an_encoding_works_in_a_thread(models, tmp_path):
    results = []

    def work():
        results.append(encode(TEXTS, models / "text", cache=tmp_path).n_computed)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [5]


def test_progress_is_shown_if_wanted(counting, capsys):
    encode(TEXTS, counting, cache=False, verbose=True)
    encode(TEXTS, counting, cache=False)
    assert capsys.readouterr() == ("", "encoded 5/5\n")
