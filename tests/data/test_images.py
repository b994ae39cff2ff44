import os

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


@pytest.fixture
def outside(tmp_path):
    """A folder of images beside an image that is none of them."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "secret").mkdir()
    Image.new("L", (2, 2), 50).save(tmp_path / "photos" / "own.png")
    Image.new("L", (2, 2), 200).save(tmp_path / "secret" / "other.png")
    return tmp_path


@pytest.mark.parametrize("target", ["../secret/other.png", "{}/secret/other.png", "chain.png"])
def test_a_link_to_a_file_outside_the_folder_is_an_error(outside, target):
    photos = outside / "photos"
    (outside / "photos" / "chain.png").symlink_to("../secret/other.png")
    (photos / "link.png").symlink_to(target.format(outside))
    with pytest.raises(InputError, match=r"\.png is a link that leads out of .*--follow-links"):
        ImageFolder(photos)
    images = ImageFolder(photos, size=(2, 2), color=False, follow_links=True)
    assert images.items.tolist() == ["chain.png", "link.png", "own.png"]
    assert (images.load(np.arange(3))[:2] == 200).all()


def test_a_folder_beside_with_a_name_that_begins_alike_is_outside(outside):
    (outside / "photos-private").mkdir()
    Image.new("L", (2, 2)).save(outside / "photos-private" / "x.png")
    (outside / "photos" / "link.png").symlink_to("../photos-private/x.png")
    with pytest.raises(InputError, match="leads out"):
        ImageFolder(outside / "photos")


def test_a_link_to_a_folder_outside_is_skipped_with_a_warning(outside):
    photos = outside / "photos"
    (photos / "more").symlink_to("../secret")
    with pytest.warns(UserWarning, match=r"more is a link that leads out .*--follow-links") as seen:
        assert ImageFolder(photos).items.tolist() == ["own.png"]
    assert seen[0].filename == __file__
    followed = ImageFolder(photos, follow_links=True)
    assert followed.items.tolist() == ["more/other.png", "own.png"]


def test_links_within_the_folder_and_to_the_folder_itself_are_followed(outside):
    photos = outside / "photos"
    (photos / "sub").mkdir()
    (photos / "sub" / "again.png").symlink_to("../own.png")
    (outside / "root").symlink_to("photos")
    images = ImageFolder(outside / "root", size=(2, 2), color=False)
    assert images.items.tolist() == ["own.png", "sub/again.png"]
    assert (images.load(np.arange(2)) == 50).all()


def test_links_in_a_circle_end(outside):
    photos = outside / "photos"
    (photos / "self").symlink_to(".")
    (photos / "up").symlink_to("..")
    (photos / "loop.png").symlink_to("loop.png")
    (outside / "secret" / "back").symlink_to("../photos")
    with pytest.warns(UserWarning, match="up is a link"):
        assert ImageFolder(photos).items.tolist() == ["own.png"]
    items = ImageFolder(photos, follow_links=True).items.tolist()
    assert items == ["own.png", "up/photos/own.png", "up/secret/other.png"]


@pytest.mark.parametrize("swap", ["file", "folder"])
def test_a_link_that_replaces_an_image_later_is_not_followed(outside, swap):
    photos = outside / "photos"
    (photos / "sub").mkdir()
    Image.new("L", (2, 2)).save(photos / "sub" / "other.png")
    images = ImageFolder(photos)
    (photos / "sub" / "other.png").unlink()
    if swap == "folder":
        (photos / "sub").rmdir()
        (photos / "sub").symlink_to("../secret")
    else:
        (photos / "sub" / "other.png").symlink_to("../../secret/other.png")
    with pytest.raises(InputError, match=r"other\.png is a link that leads out of"):
        images.load(np.array([1]))


@pytest.mark.parametrize(
    "name",
    ["../secret/other.png", "{}/secret/other.png", "C:\\other.png", "sub/../../secret/other"],
)
def test_names_of_items_are_no_paths(outside, name):
    item = name.format(outside)
    with pytest.raises(InputError, match="is the name of an image"):
        ImageFolder(outside / "photos").matching([item])
    matched = ImageFolder(outside / "photos").matching([item, "own"])
    assert matched.items.tolist() == ["own"]


def test_a_pipe_is_no_image(outside):
    photos = outside / "photos"
    os.mkfifo(photos / "pipe.png")
    images = ImageFolder(photos)
    assert images.items.tolist() == ["own.png"]
    (photos / "own.png").unlink()
    os.mkfifo(photos / "own.png")
    with pytest.raises(InputError, match="is not a regular file"):
        images.load(np.array([0]))
    (photos / "own.png").unlink()
    with pytest.raises(InputError, match=r"own\.png: cannot be opened"):
        images.load(np.array([0]))


def test_the_limit_on_pixels_can_be_raised(tmp_path):
    Image.new("L", (40, 30)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match=r"x\.png has 40 x 30 pixels .* 1,199 .*\(--max-pixels\)"):
        ImageFolder(tmp_path, max_pixels=1199).load(np.array([0]))
    assert ImageFolder(tmp_path, max_pixels=1200).load(np.array([0])).shape == (1, 64, 64, 3)
