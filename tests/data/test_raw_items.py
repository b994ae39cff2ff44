import hashlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from PIL import Image

from annotrace.data import ArraySource, ImageFolder
from annotrace.data.raw_items import as_raw_items
from annotrace.errors import InputError

TEXTS = ["a film", "", "a dog\n"]
PAIRS = [("a", "b"), ("", "a"), ("c", "")]
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 6, 8, 3), dtype=np.uint8)


def load(raw):
    return [item for _, item in raw.iterate(range(len(raw)), None, 2)]


@pytest.mark.parametrize(
    "items",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS, dtype=np.dtypes.StringDType()),
        pd.Series(TEXTS, index=[5, 6, 7]),
        pl.Series(TEXTS),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS]),
        pl.DataFrame({"text": TEXTS}),
    ],
)
def test_texts_of_any_library(items):
    raw = as_raw_items(items)
    assert (raw.kind, len(raw), load(raw), raw.names) == ("text", 3, TEXTS, None)
    assert all(type(text) is str for text in load(raw))
    assert raw.lengths().tolist() == [6, 0, 6]


@pytest.mark.parametrize(
    "items",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        np.array(PAIRS),
        pd.DataFrame(PAIRS, columns=["premise", "hypothesis"]),
        pl.DataFrame({"question": ["a", "", "c"], "answer": ["b", "a", ""]}),
    ],
)
def test_pairs_of_any_library(items):
    raw = as_raw_items(items)
    assert (raw.kind, load(raw), raw.names) == ("pairs", PAIRS, None)
    assert raw.lengths().tolist() == [2, 1, 1]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_names_its_items(library):
    raw = as_raw_items(library({"id": ["x", "y", "z"], "question": TEXTS}))
    assert (raw.names.tolist(), load(raw)) == (["x", "y", "z"], TEXTS)


def test_names_may_be_given():
    assert as_raw_items(TEXTS, names=[1, 2, 3]).names.tolist() == [1, 2, 3]
    assert as_raw_items(IMAGES, names=list("abc")).names.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match="Expected 3 names in `names`, but got 2"):
        as_raw_items(TEXTS, names=["a", "b"])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["a", None], "row index 1 is 'None' (NoneType)"),
        (["a", ("b", "c")], "row index 1 is"),
        ([("a", "b"), "cd"], "row index 1 is 'cd' (str) among pairs"),
        ([("a", "b", "c")], "row index 0 is"),
        ([("a", None)], "row index 0 is"),
        ([1.5], "row index 0 is '1.5' (float)"),
        (pd.Series(["a", np.nan]), "row index 1 is 'nan' (float)"),
        (7, "but got int"),
        ({"a": "b"}, "but got dict"),
        (np.zeros((2, 5)), "but got float64 of shape (2, 5)"),
        (np.zeros((2, 5, 5, 4), np.uint8), "but got uint8 of shape (2, 5, 5, 4)"),
        (pl.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]}), "Select the columns"),
        (SimpleNamespace(columns=["text"]), "but got SimpleNamespace; collect or select texts"),
        ("nowhere", "nowhere: no such folder"),
    ],
)
def test_what_is_neither_text_nor_image_is_named(items, message):
    with pytest.raises(InputError) as caught:
        as_raw_items(items)
    assert message in str(caught.value)


def test_an_item_of_other_content_has_another_digest():
    texts = as_raw_items(["ab", "ab", "a", ""]).digests()
    pairs = as_raw_items([("a", "b"), ("ab", ""), ("", "ab"), ("a", "b")]).digests()
    images = as_raw_items(np.stack([IMAGES[0], IMAGES[1], IMAGES[0]])).digests()
    turned = as_raw_items(IMAGES.transpose(0, 2, 1, 3)).digests()
    assert (texts[0], pairs[0], images[0]) == (texts[1], pairs[3], images[2])
    assert len({*texts, *pairs, *images, *turned}) == 3 + 3 + 2 + 3
    assert all(len(digest) == 32 for digest in (*texts, *pairs, *images))


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, pixels in zip("bac", IMAGES, strict=True):
        Image.fromarray(pixels).save(folder / f"{name}.png")
    return folder


def test_images_of_a_folder(photos):
    for items in (photos, str(photos), ImageFolder(photos)):
        raw = as_raw_items(items)
        assert (raw.kind, raw.names.tolist()) == ("images", ["a.png", "b.png", "c.png"])
    np.testing.assert_array_equal(np.stack(load(raw)), IMAGES[[1, 0, 2]])
    expected = [hashlib.sha256((photos / name).read_bytes()).digest() for name in raw.names]
    assert raw.digests() == expected


@pytest.mark.parametrize("grey", [True, False])
def test_images_of_an_array_are_in_colour(grey):
    array = IMAGES[..., 0] if grey else IMAGES
    for raw in (as_raw_items(array), as_raw_items(ArraySource(array, items=list("abc")))):
        assert [image.mode for image in load(raw)] == ["RGB"] * 3
        np.testing.assert_array_equal(np.stack(load(raw))[..., 0], IMAGES[..., 0])
    assert raw.names.tolist() == ["a", "b", "c"]


def test_images_are_decoded_for_the_size_of_a_model(tmp_path):
    Image.new("RGB", (400, 200)).save(tmp_path / "x.jpg")
    raw = as_raw_items(tmp_path)
    assert [(at, image.size) for at, image in raw.iterate([0], 50, None)] == [(0, (200, 100))]
    assert [image.size for _, image in raw.iterate([0], None, 1)] == [(400, 200)]


@pytest.mark.parametrize("n_workers", [0, 2])
def test_the_order_is_that_of_the_positions(photos, n_workers):
    positions = [2, 0, 1, 2, 0]
    images = list(as_raw_items(photos).iterate(positions, None, n_workers))
    assert [position for position, _ in images] == positions
    expected = IMAGES[[1, 0, 2]][positions]
    np.testing.assert_array_equal(np.stack([image for _, image in images]), expected)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_broken_image_is_skipped_on_request(photos, is_gone):
    raw = as_raw_items(ImageFolder(photos, on_error="skip"))
    (photos / "b.png").write_bytes(b"broken")
    if is_gone:
        (photos / "b.png").unlink()
    assert len(set(raw.digests())) == 3
    assert [position for position, _ in raw.iterate([0, 1, 2], None, 0)] == [0, 2]
    assert list(raw.broken) == [1]


def test_a_broken_image_is_named(photos):
    (photos / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n and nothing")
    with pytest.raises(InputError, match=r"b\.png: the image cannot be read"):
        load(as_raw_items(photos))
