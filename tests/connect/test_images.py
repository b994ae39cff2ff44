"""Images of items: from the labelling tool, once, and named by item."""

import base64
import io

import numpy as np
import pytest
from fake_label_studio import TOKEN, FakeLabelStudio
from fake_server import serving
from PIL import Image

from annotrace.connect.images import ImageStore
from annotrace.connect.label_studio.api import LabelStudioApi
from annotrace.errors import ConnectError, InputError


def png(value, side=8):
    stream = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), value, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def store(fake, url, tmp_path):
    fake.files = {f"/data/upload/7/{k}.png": png(50 * k) for k in range(4)}

    def make(**options):
        return ImageStore(tmp_path, LabelStudioApi(url, 7, TOKEN).files, **options)

    return make


def open_images(store, addresses, **options):
    return store.open(addresses, "the field 'image'", size=(4, 4), **options)


def shades(images):
    return images.load(np.arange(len(images))).max(axis=(1, 2, 3)).tolist()


def test_every_kind_of_address(fake, url, store):
    text = base64.b64encode(png(200)).decode()
    addresses = {
        "http://a//b": "/data/upload/7/0.png",
        "1": f"{url}/data/upload/7/1.png",
        "2": f"data:image/png;base64,{text}",
    }
    images = open_images(store(), addresses)
    assert images.items.tolist() == list(addresses)
    assert images.matching(["1"]).items.tolist() == list(addresses)
    assert shades(images) == [0, 50, 200]
    assert fake.requests == ["GET /data/upload/7/0.png", "GET /data/upload/7/1.png"]


def test_an_image_is_downloaded_once(fake, store):
    addresses = {"a": "/data/upload/7/1.png", "b": "/data/upload/7/2.png"}
    store = store()
    assert shades(open_images(store, addresses)) == [50, 100]
    more = addresses | {"c": "/data/upload/7/1.png", "d": "/data/upload/7/3.png"}
    assert shades(open_images(store, more)) == [50, 100, 50, 150]
    assert fake.requests == [f"GET /data/upload/7/{k}.png" for k in (1, 2, 3)]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_nothing_is_downloaded_if_an_address_is_on_another_host(fake, store, on_error):
    other = FakeLabelStudio()
    other.files = {"/data/upload/7/1.png": png(1)}
    with serving(other) as elsewhere:
        bad = f"{elsewhere}/data/upload/7/1.png"
        with pytest.raises(InputError, match=f"^Item b, '{bad}': It is on {elsewhere}, and files"):
            open_images(store(on_error=on_error), {"a": "/data/upload/7/1.png", "b": bad})
    assert fake.requests == other.requests == []


@pytest.mark.parametrize("address", ["", "  ", None, 3, ["/data/upload/7/1.png"]])
def test_what_is_no_address(store, address):
    with pytest.raises(InputError, match=r"^Item b: expected the address of an image.*--image"):
        open_images(store(), {"b": address})


def test_an_image_that_is_gone(fake, store):
    with pytest.raises(
        InputError, match=r"^Item b, '/data/upload/7/9.png': .*500: .*lost the file"
    ):
        open_images(store(), {"a": "/data/upload/7/1.png", "b": "/data/upload/7/9.png"})


def test_redirects_are_not_followed(fake, store):
    other = FakeLabelStudio()
    with serving(other) as elsewhere:
        fake.failures.append(("GET", 302, f"{elsewhere}/1.png".encode()))
        with pytest.raises(InputError, match=r"^Item b, .* answered 302: the file is elsewhere"):
            open_images(store(), {"b": "/data/upload/7/1.png"})
    assert other.requests == []


@pytest.mark.parametrize(("status", "temporary"), [(503, True), (401, False)])
def test_errors_of_the_server_are_not_those_of_an_image(fake, store, status, temporary):
    fake.failures.append(("GET", status, {}))
    with pytest.raises(ConnectError, match=f"^Item b, .* answered {status}") as raised:
        open_images(store(on_error="skip"), {"b": "/data/upload/7/1.png"})
    assert raised.value.is_temporary == temporary


def test_images_are_limited_in_bytes(fake, store):
    fake.files["/data/upload/7/1.png"] = bytes(2**20 + 81)
    with pytest.raises(InputError, match=r"^Item b, .* more than 1,048,656 bytes\..*--max-pixels"):
        open_images(store(max_pixels=10), {"b": "/data/upload/7/1.png"})


def test_images_are_limited_in_pixels(store):
    images = open_images(store(max_pixels=63), {"b": "/data/upload/7/1.png"})
    with pytest.raises(InputError, match=r"^Item b, .* has 8 x 8 pixels where the limit is 63"):
        images.decoded()


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_broken_image_is_named_by_item(fake, store, n_workers):
    fake.files["/data/upload/7/1.png"] = b"no image"
    images = open_images(store(), {"b": "/data/upload/7/1.png"}, n_workers=n_workers)
    with pytest.raises(InputError, match=r"^Item b, '/data/upload/7/1.png': the image cannot be"):
        images.decoded()


def test_images_that_are_gone_or_broken_can_be_skipped(fake, store):
    fake.files["/data/upload/7/1.png"] = b"no image"
    names = {"a": "0", "b": "1", "c": "9", "d": "2"}
    addresses = {item: f"/data/upload/7/{name}.png" for item, name in names.items()}
    store = store(on_error="skip")
    with pytest.warns(UserWarning, match="^Item c, .* lost the file"):
        images = open_images(store, addresses)
    with pytest.warns(UserWarning, match=r"2 images of the field 'image' .* \('b', 'c'\)"):
        decoded = images.decoded()
    assert decoded.items.tolist() == ["a", "d"]
    assert decoded.skipped.tolist() == ["b", "c"]


def test_progress(store, capsys):
    addresses = {"a": "/data/upload/7/1.png", "b": "/data/upload/7/1.png"}
    store = store()
    open_images(store, addresses, verbose=True)
    assert capsys.readouterr().err == "downloaded 1/1\n"
    open_images(store, addresses, verbose=True)
    assert capsys.readouterr().err == ""
