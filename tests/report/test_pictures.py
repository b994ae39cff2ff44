import base64
import io

import numpy as np
import pytest
from PIL import Image

import annotrace as at
from annotrace.errors import InputError
from annotrace.report.pictures import MAX_SIDE, pictures_of


def table(items):
    columns = {"item": items, "annotator": ["a"] * len(items), "label": ["x"] * len(items)}
    return at.LabelTable.from_long(columns, classes=["x", "y"])


def decoded(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def test_an_array_is_shown_pixel_by_pixel():
    images = np.arange(2 * 8 * 8, dtype=np.float32).reshape(2, 8, 8)
    shown = decoded(pictures_of(images, table(["a", "b"]))(1))
    assert (shown.format, shown.size) == ("PNG", (8, 8))
    np.testing.assert_allclose(np.asarray(shown), images[1] / 127 * 255, atol=0.51)


def test_bytes_are_shown_as_they_are():
    images = np.random.default_rng(0).integers(0, 100, (1, 5, 7, 3)).astype(np.uint8)
    shown = decoded(pictures_of(images, table(["a"]))(0))
    np.testing.assert_array_equal(np.asarray(shown), images[0])


def test_a_folder_is_matched_by_name_and_made_small(tmp_path):
    Image.new("RGB", (400, 200), "red").save(tmp_path / "b.png")
    picture = pictures_of(tmp_path, table(["a", "b"]))
    assert picture(0) == ""
    assert decoded(picture(1)).size == (MAX_SIDE, MAX_SIDE // 2)


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    levels = np.array([[0, 256 * 100], [256 * 200, 65535]], dtype=np.uint16)
    Image.fromarray(levels).save(tmp_path / "a.png")
    shown = decoded(pictures_of(tmp_path, table(["a"]))(0))
    assert np.asarray(shown).tolist() == [[0, 100], [200, 255]]


def test_a_wrong_number_of_pictures_is_an_error():
    with pytest.raises(InputError, match=r"for each of 2 items.*got \(3, 8, 8\)"):
        pictures_of(np.zeros((3, 8, 8)), table(["a", "b"]))


def test_a_damaged_picture_is_named(tmp_path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"a\.png: the image cannot be read"):
        pictures_of(tmp_path, table(["a"]))(0)
