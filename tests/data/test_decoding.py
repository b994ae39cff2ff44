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
from annotrace.data.image_files import ImageFile
from annotrace.errors import InputError

N_EXAMPLES = int(os.environ.get("ANNOTRACE_FUZZ_EXAMPLES", "200"))


def read_image(path, **options):
    return decoding.read_image(ImageFile(str(path)), **options)


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


@pytest.mark.parametrize("format", ["EPS", "PPM", "ICO", "TGA", "PCX"])
def test_other_formats_are_not_decoded(tmp_path, format):
    (tmp_path / "x.png").write_bytes(encoded(Image.new("RGB", (16, 16)), format))
    with pytest.raises(InputError, match=r"x\.png: .* \(it is not PNG, JPEG, .* or AVIF\)"):
        read_image(tmp_path / "x.png")


def test_the_name_need_not_tell_the_format(tmp_path):
    (tmp_path / "x.png").write_bytes(encoded(Image.new("RGB", (2, 2), (9, 9, 9)), "JPEG"))
    assert read_image(tmp_path / "x.png").getpixel((0, 0)) == (9, 9, 9)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_mode_is_read_without_a_warning(tmp_path, mode):
    levels = np.array([[0, 255], [255, 0]], dtype=np.uint8)
    image = Image.fromarray(levels.astype(np.uint16) * 257 if mode == "I;16" else levels)
    (image if mode == "I;16" else image.convert(mode)).save(tmp_path / "x.png")
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


LEVELS = np.random.default_rng(1).integers(0, 256, (5, 7), dtype=np.uint8)


def save(tmp_path, image, format, **options):
    """Write an image under a name that does not tell its format; return its path."""
    (tmp_path / "x.png").write_bytes(encoded(image, format, **options))
    return tmp_path / "x.png"


@pytest.mark.parametrize("format", ["PNG", "BMP", "GIF", "TIFF"])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_formats_without_loss(tmp_path, format, mode):
    image = Image.fromarray(LEVELS).convert(mode)
    read = read_image(save(tmp_path, image, format))
    np.testing.assert_array_equal(read.convert("L"), LEVELS)


def test_webp(tmp_path):
    image = Image.fromarray(noise(5, 7))
    read = read_image(save(tmp_path, image, "WEBP", lossless=True))
    np.testing.assert_array_equal(read, noise(5, 7))


def test_avif(tmp_path):
    pytest.importorskip("PIL.AvifImagePlugin")
    read = read_image(save(tmp_path, Image.new("RGB", (16, 16), (10, 120, 200)), "AVIF"))
    assert np.abs(np.asarray(read, int) - (10, 120, 200)).max() < 8


def test_heic(tmp_path):
    heif = pytest.importorskip("pillow_heif")
    file = heif.from_pillow(Image.new("RGB", (64, 64), (10, 120, 200)))
    file.save(tmp_path / "x.png", quality=95)
    read = read_image(tmp_path / "x.png")
    assert read.size == (64, 64)
    assert np.abs(np.asarray(read, int) - (10, 120, 200)).max() < 8
    with pytest.raises(InputError, match="64 x 64 pixels"):
        read_image(tmp_path / "x.png", max_pixels=64 * 64 - 1)


def test_heic_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    (tmp_path / "x.jpg").write_bytes(
        b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic" + bytes(50)
    )
    with pytest.raises(InputError, match=r'x\.jpg: HEIC .* pip install "annotrace\[heic\]"\.$'):
        ImageFolder(tmp_path, on_error="skip").decoded()


@pytest.mark.parametrize("format", ["GIF", "WEBP", "TIFF"])
def test_the_first_frame_of_other_formats(tmp_path, format):
    frames = [Image.new("RGB", (4, 4), 3 * (level,)) for level in (0, 255)]
    path = save(tmp_path, frames[0], format, save_all=True, append_images=frames[1:])
    assert np.asarray(read_image(path)).max() < 5


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
@pytest.mark.parametrize("format", ["PNG", "WEBP", "TIFF"])
def test_what_is_transparent_is_white(tmp_path, mode, format):
    colours = np.zeros((2, 2, 4), np.uint8)
    colours[..., 3] = [[0, 255], [128, 64]]
    options = {"lossless": True, "exact": True} if format == "WEBP" else {}
    image = Image.fromarray(colours).convert(mode)
    read = read_image(save(tmp_path, image, format, **options)).convert("L")
    np.testing.assert_allclose(np.asarray(read, int), [[255, 0], [127, 191]], atol=1)


@pytest.mark.parametrize("format", ["PNG", "GIF"])
def test_a_transparent_colour_of_a_palette_is_white(tmp_path, format):
    image = Image.new("P", (2, 1))
    image.putpalette([200, 0, 0, 0, 0, 100])
    image.putpixel((1, 0), 1)
    read = read_image(save(tmp_path, image, format, transparency=0))
    assert [read.getpixel((x, 0)) for x in (0, 1)] == [(255, 255, 255), (0, 0, 100)]


def test_a_transparent_grey_level_is_white(tmp_path):
    image = Image.fromarray(np.array([[7, 8]], np.uint8))
    read = read_image(save(tmp_path, image, "PNG", transparency=7))
    assert np.asarray(read).tolist() == [[255, 8]]


def ink(cmyk):
    """The colour of inks from 0 to 255, each of which takes away its part of the light."""
    cyan_to_yellow, black = np.array(cmyk[:3]), cmyk[3]
    return (255 - cyan_to_yellow) * (255 - black) / 255


INKS = (200, 40, 90, 30)


@pytest.mark.parametrize("format", ["JPEG", "TIFF"])
def test_cmyk(tmp_path, format):
    options = {"quality": 100} if format == "JPEG" else {}
    read = read_image(save(tmp_path, Image.new("CMYK", (8, 8), INKS), format, **options))
    np.testing.assert_allclose(read.getpixel((3, 3)), ink(INKS), atol=3)


def split_adobe(content):
    """The parts of a JPEG file before, in and after the marker of Adobe."""
    start = content.index(b"\xff\xee\x00\x0eAdobe")
    return content[:start], content[start : start + 16], content[start + 16 :]


def test_cmyk_that_is_not_of_adobe_is_not_inverted(tmp_path):
    inverted = Image.new("CMYK", (8, 8), tuple(255 - level for level in INKS))
    before, _, after = split_adobe(encoded(inverted, "JPEG", quality=100))
    (tmp_path / "x.jpg").write_bytes(before + after)
    read = read_image(tmp_path / "x.jpg")
    np.testing.assert_allclose(read.getpixel((3, 3)), ink(INKS), atol=3)


def test_ycck(tmp_path):
    stored = np.array([150, 110, 140, 60])  # luma, blue and red difference, black
    image = Image.new("CMYK", (8, 8), tuple((255 - stored).tolist()))
    before, adobe, after = split_adobe(encoded(image, "JPEG", quality=100))
    (tmp_path / "x.jpg").write_bytes(before + adobe[:-1] + b"\x02" + after)
    luma, blue, red = stored[0], stored[1] - 128, stored[2] - 128
    colour = luma + np.array([1.402 * red, -0.344136 * blue - 0.714136 * red, 1.772 * blue])
    # The inks are 255 minus these colours, and stored inverted: full ink is 0.
    expected = ink([*(255 - (255 - colour)), 255 - stored[3]])
    np.testing.assert_allclose(read_image(tmp_path / "x.jpg").getpixel((3, 3)), expected, atol=4)


UPRIGHT = {
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.T,
    6: lambda x: x[::-1].T,
    7: lambda x: x[::-1, ::-1].T,
    8: lambda x: x[:, ::-1].T,
}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_every_orientation(tmp_path, format, orientation):
    # Blocks of eight survive the compression of JPEG.
    levels = np.kron(np.array([[0, 80, 160], [200, 120, 255]]), np.ones((8, 8))).astype(np.uint8)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    options = {"lossless": True} if format == "WEBP" else {}
    path = save(tmp_path, Image.fromarray(levels), format, exif=exif, **options)
    read = np.asarray(read_image(path).convert("L"), int)
    np.testing.assert_allclose(read, UPRIGHT[orientation](levels), atol=2)


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path, format, order):
    levels = np.array([[0, 256 * 100], [256 * 200, 65535]], f"{order}u2")
    path = save(tmp_path, Image.fromarray(levels), format)
    assert np.asarray(read_image(path)).tolist() == [[0, 100], [200, 255]]


def tiff(levels, **tags):
    """A grey TIFF file of one strip; tags are (type, value) by number, as t262=(3, 0)."""
    entries = {256: (3, levels.shape[1]), 257: (3, levels.shape[0]), 259: (3, 1), 262: (3, 1)}
    entries |= {258: (3, 8 * levels.itemsize), 273: (4, 8), 277: (3, 1), 278: (3, len(levels))}
    entries |= {279: (4, levels.nbytes)} | {int(tag[1:]): value for tag, value in tags.items()}
    packed = b"".join(
        struct.pack("<HHII", tag, kind, *((1, value) if isinstance(value, int) else value))
        for tag, (kind, value) in sorted(entries.items())
    )
    start = 8 + levels.nbytes
    directory = struct.pack("<H", len(entries)) + packed + bytes(4)
    return b"II*\x00" + struct.pack("<I", start) + levels.tobytes() + directory


def test_sixteen_bits_with_white_as_zero(tmp_path):
    levels = np.array([[0, 256 * 100, 65535]], "<u2")
    for white_is_zero, expected in ((1, [0, 100, 255]), (0, [255, 155, 0])):
        (tmp_path / "x.tif").write_bytes(tiff(levels, t262=(3, white_is_zero)))
        assert np.asarray(read_image(tmp_path / "x.tif")).tolist() == [expected]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_levels_of_unknown_range_are_refused(tmp_path, dtype):
    path = save(tmp_path, Image.fromarray(np.ones((2, 2), dtype)), "TIFF")
    with pytest.raises(InputError, match="black and white are not known; save it with 8 or 16"):
        read_image(path)


def test_a_tile_larger_than_the_image_is_refused(tmp_path):
    content = tiff(np.zeros((2, 2), np.uint8), t322=(4, 60_000), t323=(4, 60_000))
    (tmp_path / "x.tif").write_bytes(content)
    with pytest.raises(InputError, match="60,000 x 60,000 pixels"):
        read_image(tmp_path / "x.tif")


def test_a_directory_with_too_many_values_is_refused(tmp_path):
    content = tiff(np.zeros((2, 2), np.uint8), t273=(4, (2**24, 8)))
    (tmp_path / "x.tif").write_bytes(content)
    with pytest.raises(InputError, match="entry 273 of its directory has 16,777,216 values"):
        read_image(tmp_path / "x.tif")


def claims(format, side):
    """A small file of a format whose header claims side x side pixels."""
    content = bytearray(encoded(Image.new("RGB", (8, 8)), format, **LOSSLESS.get(format, {})))
    if format == "GIF":
        content[6:10] = struct.pack("<HH", side, side)
    elif format == "WEBP":
        bits = int.from_bytes(content[21:25], "little") >> 28 << 28 | (side - 1) | (side - 1) << 14
        content[21:25] = bits.to_bytes(4, "little")
    else:
        content = bytearray(tiff(np.zeros((8, 8), np.uint8), t256=(4, side), t257=(4, side)))
    return bytes(content)


LOSSLESS = {"WEBP": {"lossless": True}}


@pytest.mark.parametrize("format", ["GIF", "WEBP", "TIFF"])
def test_the_size_is_checked_before_the_decoder_opens_the_file(tmp_path, monkeypatch, format):
    (tmp_path / "x.png").write_bytes(claims(format, 16_000))
    names = {"GIF": "Gif", "WEBP": "WebP", "TIFF": "Tiff"}
    opened = []
    decoder = f"PIL.{names[format]}ImagePlugin.{names[format]}ImageFile"
    monkeypatch.setattr(decoder, opened.append)
    with pytest.raises(InputError, match="16,000 x 16,000 pixels"):
        read_image(tmp_path / "x.png")
    assert opened == []


def test_a_frame_larger_than_the_screen_of_a_gif_is_refused(tmp_path):
    content = bytearray(encoded(Image.new("L", (8, 8)), "GIF"))
    frame = content.index(b",\x00\x00\x00\x00\x08\x00\x08\x00")
    content[frame + 5 : frame + 9] = struct.pack("<HH", 60_000, 60_000)
    (tmp_path / "x.gif").write_bytes(bytes(content))
    with pytest.raises(InputError, match="60,000 x 60,000 pixels"):
        read_image(tmp_path / "x.gif")


TINY = Image.fromarray(noise(9, 7))
SAMPLES = [
    *(encoded(TINY, format) for format in ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")),
    encoded(TINY, "JPEG", progressive=True, exif=Image.Exif()),
    encoded(TINY.quantize(), "PNG", transparency=b"\x00\x80"),
    encoded(TINY.quantize(), "BMP"),
    encoded(TINY, "PNG", save_all=True, append_images=[TINY.rotate(90)]),
    *(encoded(TINY, format, save_all=True, append_images=[TINY]) for format in ("GIF", "WEBP")),
    encoded(TINY, "TIFF", compression="tiff_lzw"),
    encoded(Image.fromarray(np.arange(63, dtype=np.uint16).reshape(9, 7)), "TIFF"),
    encoded(TINY.convert("CMYK"), "JPEG"),
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
