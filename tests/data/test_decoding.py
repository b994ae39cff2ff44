import io
import os
import struct
import subprocess
import sys
import threading
import time
import warnings
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, PngImagePlugin

from annotrace.data import ImageFolder, decoding
from annotrace.data.decoding import read_image
from annotrace.errors import InputError

N_EXAMPLES = int(os.environ.get("ANNOTRACE_FUZZ_EXAMPLES", "200"))


def encoded(image, format, **options):
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def noise(height, width, channels=3):
    return np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)


def gradient(height, width):
    rows, columns = np.mgrid[:height, :width]
    levels = np.stack([rows * 255 // height, columns * 255 // width, (rows + columns) % 256], -1)
    return Image.fromarray(levels.astype(np.uint8))


def chunk(kind, content):
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png_bomb(side):
    """A grey PNG of side x side pixels in a few kilobytes."""
    packer, lines = zlib.compressobj(9), bytes(1000 * (side + 1))
    data = b"".join([packer.compress(lines) for _ in range(side // 1000)] + [packer.flush()])
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def one_scan_per_colour(image):
    """A baseline JPEG whose three channels, all equal, are in three scans."""
    grey = encoded(image.convert("L"), "JPEG")
    frame, scan = grey.index(b"\xff\xc0"), grey.index(b"\xff\xda")
    tables = grey[2:frame] + grey[frame + 2 + 11 : scan]
    size = grey[frame + 4 : frame + 9]
    colours = b"".join(bytes([colour, 0x11, 0]) for colour in (1, 2, 3))
    header = b"\xff\xc0" + struct.pack(">H", 17) + size + b"\x03" + colours
    data = grey[scan + 10 : -2]
    scans = b"".join(b"\xff\xda\x00\x08\x01" + bytes([k, 0, 0, 63, 0]) + data for k in (1, 2, 3))
    return b"\xff\xd8" + tables + header + scans + b"\xff\xd9"


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path):
    (tmp_path / "bomb.png").write_bytes(png_bomb(9_000))
    code = (
        "import resource, sys, numpy as np\n"
        "from annotrace.data import ImageFolder\n"
        "from annotrace.errors import InputError\n"
        "import PIL.PngImagePlugin, PIL.JpegImagePlugin, PIL.BmpImagePlugin, PIL.ImageOps\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    ImageFolder(sys.argv[1]).load(np.array([0]))\n"
        "except InputError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    message, kilobytes = done.stdout.splitlines()
    assert "bomb.png has 9,000 x 9,000 pixels" in message
    assert int(kilobytes) < 20_000


def test_a_large_photo_is_decoded_at_a_reduced_size(tmp_path):
    photo = gradient(1600, 1200)
    photo.save(tmp_path / "x.jpg", quality=95)
    batch = ImageFolder(tmp_path, size=(64, 64), max_pixels=200 * 150).load(np.array([0]))
    whole = np.asarray(photo.resize((64, 64), Image.Resampling.BILINEAR), float)
    assert np.abs(batch[0] - whole).mean() < 1.5
    assert read_image(tmp_path / "x.jpg", min_side=75).size == (150, 200)
    assert read_image(tmp_path / "x.jpg", min_side=600).size == (1200, 1600)


def test_a_photo_larger_than_pillow_allows_is_read(tmp_path):
    Image.new("L", (20_000, 9_000), 77).save(tmp_path / "x.jpg")
    assert (ImageFolder(tmp_path, size=(2, 2)).load(np.array([0])) == 77).all()


def test_what_the_decoder_holds_in_memory_as_a_whole_counts_as_a_whole(tmp_path):
    photo = gradient(160, 160)
    photo.save(tmp_path / "progressive.jpg", progressive=True)
    photo.convert("CMYK").save(tmp_path / "cmyk.jpg")
    (tmp_path / "scans.jpg").write_bytes(one_scan_per_colour(photo))
    for name in ("progressive", "cmyk", "scans"):
        path = tmp_path / f"{name}.jpg"
        assert read_image(path, min_side=10).size == (20, 20)
        with pytest.raises(InputError, match=r"160 x 160 pixels .*--max-pixels"):
            read_image(path, min_side=10, max_pixels=160 * 160 - 1)


def test_a_file_with_more_bytes_than_its_pixels_can_need(tmp_path):
    padded = encoded(Image.new("L", (2, 2)), "PNG")[:-12] + chunk(b"prVt", bytes(2**20))
    (tmp_path / "x.png").write_bytes(padded)
    with pytest.raises(InputError, match="--max-pixels"):
        read_image(tmp_path / "x.png", max_pixels=4)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "TIFF", "EPS", "PPM", "ICO"])
def test_other_formats_are_not_decoded(tmp_path, format):
    (tmp_path / "x.png").write_bytes(encoded(Image.new("RGB", (16, 16)), format))
    with pytest.raises(InputError, match=r"x\.png: .* \(it is not PNG, JPEG or BMP\)"):
        read_image(tmp_path / "x.png")


def test_the_name_need_not_tell_the_format(tmp_path):
    (tmp_path / "x.png").write_bytes(encoded(Image.new("RGB", (2, 2), (9, 9, 9)), "JPEG"))
    assert read_image(tmp_path / "x.png").getpixel((0, 0)) == (9, 9, 9)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_mode_is_read_without_a_warning(tmp_path, mode):
    levels = np.array([[0, 255], [255, 0]], dtype=np.uint8)
    image = Image.fromarray(levels.astype(np.uint16) * 257 if mode == "I;16" else levels)
    options = {"transparency": b"\x00\x80"} if mode == "P" else {}
    (image if mode == "I;16" else image.convert(mode)).save(tmp_path / "x.png", **options)
    read = read_image(tmp_path / "x.png")
    assert read.mode == ("RGB" if mode in ("P", "RGB", "RGBA") else "L")
    assert np.asarray(read.convert("L")).tolist() == levels.tolist()


def test_the_first_frame_of_an_animation(tmp_path):
    frames = [Image.new("L", (2, 2), level) for level in (10, 20)]
    frames[0].save(tmp_path / "x.png", save_all=True, append_images=frames[1:])
    assert read_image(tmp_path / "x.png").getpixel((0, 0)) == 10


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_a_wrong_orientation_is_none(tmp_path, value):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = value
    gradient(8, 16).save(tmp_path / "x.jpg", exif=exif)
    assert read_image(tmp_path / "x.jpg").size == (16, 8)


def test_damaged_metadata_do_not_matter(tmp_path):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    damaged = exif.tobytes()[:-7] + b"\xff" * 7
    gradient(8, 16).save(tmp_path / "x.jpg", exif=damaged)
    assert read_image(tmp_path / "x.jpg").mode == "RGB"


def test_text_that_expands_is_refused(tmp_path):
    text = PngImagePlugin.PngInfo()
    text.add_itxt("comment", "x" * 2**24, zip=True)
    Image.new("L", (2, 2)).save(tmp_path / "x.png", pnginfo=text)
    with pytest.raises(InputError, match=r"x\.png: the image cannot be read"):
        read_image(tmp_path / "x.png")


def test_metadata_are_not_passed_on(tmp_path):
    Image.new("L", (2, 2)).save(tmp_path / "x.jpg", comment="taken at home")
    assert read_image(tmp_path / "x.jpg").info == {}


TINY = Image.fromarray(noise(9, 7))
SAMPLES = [
    *(encoded(TINY, format) for format in ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")),
    encoded(TINY, "JPEG", progressive=True, exif=Image.Exif()),
    encoded(TINY.quantize(), "PNG", transparency=b"\x00\x80"),
    encoded(TINY.quantize(), "BMP"),
    encoded(TINY, "PNG", save_all=True, append_images=[TINY.rotate(90)]),
    png_bomb(1000),
]


@pytest.mark.fuzz
@settings(max_examples=N_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sample=st.sampled_from(SAMPLES),
    flips=st.lists(st.tuples(st.integers(0, 2**12), st.integers(0, 7)), max_size=12),
    cut=st.none() | st.integers(0, 2**10),
)
def test_a_damaged_image_is_an_image_or_one_error(tmp_path, sample, flips, cut):
    content = bytearray(sample)
    for place, bit in flips:
        content[place % len(content)] ^= 1 << bit
    (tmp_path / "x.png").write_bytes(bytes(content[:cut]))
    images = ImageFolder(tmp_path, size=(4, 4), max_pixels=10**6)
    with suppress(InputError):
        assert images.load(np.array([0])).shape == (1, 4, 4, 3)


def test_threads_leave_the_filters_of_warnings_as_they_were(tmp_path, monkeypatch):
    Image.new("L", (4, 4)).save(tmp_path / "x.png")
    monkeypatch.setattr(decoding, "_decode", lambda *_: time.sleep(0.1))
    before = list(warnings.filters)
    threads = [threading.Thread(target=read_image, args=(tmp_path / "x.png",)) for _ in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert warnings.filters == before
