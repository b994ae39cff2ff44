import numpy as np
import pytest
from PIL import ExifTags, Image

from annotrace.data import ImageFolder, ItemSource
from annotrace.errors import InputError

RED, GREEN = (255, 0, 0), (0, 255, 0)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "more").mkdir()
    Image.new("RGB", (6, 4), RED).save(tmp_path / "b.png")
    Image.new("L", (5, 5), 100).save(tmp_path / "more" / "c.bmp")
    Image.new("RGB", (8, 8), GREEN).save(tmp_path / "a.JPG", quality=95)
    (tmp_path / "notes.txt").write_text("not an image")
    (tmp_path / "._b.png").write_bytes(b"left by a Mac")
    return tmp_path


def test_images_are_found_and_named_by_relative_path(folder):
    images = ImageFolder(folder)
    assert isinstance(images, ItemSource)
    assert images.items.tolist() == ["a.JPG", "b.png", "more/c.bmp"]
    assert len(images) == 3


def test_a_batch_is_resized_colour(folder):
    batch = ImageFolder(folder, size=(3, 2)).load(np.array([1, 2]))
    assert batch.shape == (2, 3, 2, 3)
    assert batch.dtype == np.uint8
    assert (batch[0] == RED).all()
    assert (batch[1] == 100).all()


def test_grey(folder):
    images = ImageFolder(folder, size=(3, 2), color=False)
    assert images.shape == (3, 2)
    # 0.299 of red, by ITU-R 601.
    assert np.unique(images.load(np.array([1]))).tolist() == [76]


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    levels = np.array([[0, 256 * 100], [256 * 200, 65535]], dtype=np.uint16)
    Image.fromarray(levels).save(tmp_path / "x.png")
    batch = ImageFolder(tmp_path, size=(2, 2), color=False).load(np.array([0]))
    assert batch[0].tolist() == [[0, 100], [200, 255]]


def test_images_are_turned_upright(tmp_path):
    sideways = Image.fromarray(np.array([[10, 20], [30, 40]], dtype=np.uint8))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    sideways.save(tmp_path / "x.png", exif=exif)
    batch = ImageFolder(tmp_path, size=(2, 2), color=False).load(np.array([0]))
    assert batch[0].tolist() == [[30, 10], [40, 20]]


def test_resizing_is_bilinear(tmp_path):
    Image.fromarray(np.array([[0, 200]], dtype=np.uint8)).save(tmp_path / "x.png")
    batch = ImageFolder(tmp_path, size=(1, 4), color=False).load(np.array([0]))
    assert batch[0].tolist() == [[0, 50, 150, 200]]


@pytest.mark.parametrize(
    "names", [["a.JPG", "more/c.bmp"], ["c.bmp", "b.png", "a.JPG"], ["a", "b", "c", "unknown"]]
)
def test_names_match_by_path_file_or_stem(folder, names):
    images = ImageFolder(folder).matching(names)
    known = set(images.items.tolist())
    assert known.issuperset(set(names) - {"unknown"})
    assert len(known) == 3


def test_numbers_match_stems(tmp_path):
    Image.new("L", (2, 2)).save(tmp_path / "7.png")
    assert ImageFolder(tmp_path).matching(np.array([7])).items.tolist() == ["7"]


def test_no_match_names_both_sides(folder):
    with pytest.raises(InputError, match=r"None of 2 items \('x', 'y'\) is the name of an image"):
        ImageFolder(folder).matching(["x", "y"])


def test_one_stem_for_two_images(folder):
    Image.new("L", (2, 2)).save(folder / "more" / "a.png")
    with pytest.raises(InputError, match="but got 1 repeated name: 'a'"):
        ImageFolder(folder).matching(["a", "b", "c"])


def test_a_broken_image_is_named(folder):
    (folder / "b.png").write_bytes((folder / "b.png").read_bytes()[:40])
    with pytest.raises(InputError, match=r"b\.png: the image cannot be read"):
        ImageFolder(folder).load(np.array([1]))


def test_no_images_and_no_folder(tmp_path):
    with pytest.raises(InputError, match="and its subfolders have no images"):
        ImageFolder(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        ImageFolder(tmp_path / "nowhere")
