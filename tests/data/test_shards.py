import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from annotrace.data import ImageFolder, ImageShards, encode, open_images
from annotrace.data.shards import expand_ranges, find_shards
from annotrace.errors import InputError, LimitError


def write_shard(path, members):
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def png(level):
    stream = io.BytesIO()
    Image.new("L", (3, 3), level).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def shards(tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    for shard in range(3):
        members = {}
        for k in range(2):
            key = f"train/{2 * shard + k:04}"
            members |= {f"{key}.input.png": png(20 * shard + k), f"{key}.cls": b"1"}
        write_shard(folder / f"data-{shard:03}.tar", members)
    return folder


@pytest.mark.parametrize("pattern", ["", "data-{000..002}.tar"])
def test_shards_are_one_source(shards, pattern):
    images = open_images(shards / pattern, size=(2, 2), color=False)
    assert isinstance(images, ImageShards)
    assert images.items.tolist() == [f"train/{k:04}.input.png" for k in range(6)]
    assert images.load(np.arange(6))[:, 0, 0].tolist() == [0, 1, 20, 21, 40, 41]
    assert images.decoded().X[:, 1, 1].tolist() == [0, 1, 20, 21, 40, 41]


def test_one_shard(shards):
    images = open_images(shards / "data-001.tar")
    assert repr(images) == (
        f"ImageShards({str(shards / 'data-001.tar')!r}, 2 images of shape (64, 64, 3))"
    )


@pytest.mark.parametrize("n_workers", [0, 2])
def test_images_are_those_of_the_unpacked_folder(shards, tmp_path, n_workers):
    for shard in shards.iterdir():
        with tarfile.open(shard) as archive:
            archive.extractall(tmp_path / "unpacked", filter="data")
    packed = open_images(shards, n_workers=n_workers)
    unpacked = ImageFolder(tmp_path / "unpacked")
    np.testing.assert_array_equal(packed.decoded().X, unpacked.decoded().X)
    assert [file.digest() for file in packed.files] == [file.digest() for file in unpacked.files]


@pytest.mark.parametrize(
    "name",
    [
        "train/0003.input.png",
        "0003.input.png",
        "0003.input",
        "train/0003.input",
        "train/0003",
        "0003",
    ],
)
def test_labels_may_name_members_in_any_usual_way(shards, name):
    assert open_images(shards).matching([name]).items.tolist()[3] == name


def test_shards_are_encoded(shards):
    encoded = encode(shards, lambda images: [[image.getpixel((0, 0))[0]] for image in images])
    assert encoded.X[:, 0].tolist() == [0, 1, 20, 21, 40, 41]
    assert encoded.items[0] == "train/0000.input.png"


def test_a_folder_with_an_image_is_a_folder_of_images(shards):
    Image.new("L", (3, 3)).save(shards / "x.png")
    assert isinstance(open_images(shards), ImageFolder)


@pytest.mark.parametrize("other", ["data-000.tar", "data-001.tar"])
def test_a_repeated_name_is_an_error(shards, other):
    with tarfile.open(shards / other, "a") as archive:
        info = tarfile.TarInfo("train/0000.input.png")
        archive.addfile(info)
    with pytest.raises(InputError, match=r"train/0000\.input\.png' has the name of another image"):
        open_images(shards)


def test_a_damaged_shard_is_named(shards):
    content = (shards / "data-001.tar").read_bytes()
    (shards / "data-001.tar").write_bytes(content[:700])
    with pytest.raises(InputError, match=r"data-001\.tar: damaged or not a tar file"):
        open_images(shards)


def test_a_broken_member_is_named_and_skipped_on_request(shards):
    write_shard(shards / "data-003.tar", {"x.png": b"broken", "._y.png": b"of a Mac"})
    with pytest.raises(InputError, match=r"data-003\.tar, member 'x\.png': .*--skip-broken"):
        open_images(shards).decoded()
    with pytest.warns(UserWarning, match=r"1 image of .* is skipped \('x\.png'\)"):
        decoded = open_images(shards, on_error="skip").decoded()
    assert (len(decoded), decoded.skipped.tolist()) == (6, ["x.png"])


def test_a_compressed_shard_is_refused(tmp_path):
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.png"))
    with pytest.raises(InputError, match=r"x\.tar\.gz is compressed"):
        open_images(tmp_path / "x.tar.gz")


def test_nothing_to_read(tmp_path):
    write_shard(tmp_path / "x.tar", {"a.txt": b"text"})
    with pytest.raises(InputError, match="the tar files have no images"):
        open_images(tmp_path / "x.tar")
    with pytest.raises(InputError, match=r"y-1\.tar: there is no such file\."):
        open_images(tmp_path / "y-{1..1}.tar")
    with pytest.raises(InputError, match=r"y-1\.tar: there is no such file, nor 2 others of .*y-"):
        open_images(tmp_path / "y-{1..3}.tar")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no tar files"):
        find_shards(tmp_path / "empty")


def test_a_link_out_of_the_folder_is_refused(shards, tmp_path):
    write_shard(tmp_path / "outside.tar", {"secret.png": png(1)})
    (shards / "link.tar").symlink_to("../outside.tar")
    with pytest.raises(InputError, match=r"link\.tar is a link that leads out of"):
        open_images(shards)
    assert "secret.png" in open_images(shards, follow_links=True).items.tolist()


def test_ranges_are_expanded():
    assert expand_ranges("plain.tar") == ["plain.tar"]
    assert expand_ranges("{0..1}/x-{08..10}.tar")[2:4] == ["0/x-10.tar", "1/x-08.tar"]
    with pytest.raises(InputError, match=r"expected a range of 1 to 100,000 numbers"):
        expand_ranges("x-{5..1}.tar")
    with pytest.raises(LimitError, match="names more than 100,000 files"):
        expand_ranges("{0..999}/{0..999}.tar")
