import numpy as np
import pytest
from PIL import Image

from annotrace.data import ArraySource, ImageFolder, ImageSource, encode, image_source
from annotrace.errors import InputError


@pytest.fixture
def folder(tmp_path):
    for k in range(6):
        Image.new("L", (4, 4), 10 * k).save(tmp_path / f"{k}.png")
    return tmp_path


@pytest.fixture
def broken(folder):
    (folder / "1.png").write_bytes(b"broken")
    (folder / "4.png").write_bytes((folder / "4.png").read_bytes()[:50])
    return folder


@pytest.mark.parametrize("n_workers", [0, 2])
def test_all_images_are_decoded_once(folder, n_workers):
    images = ImageFolder(folder, (2, 2), color=False, n_workers=n_workers)
    decoded = images.decoded()
    assert isinstance(decoded, ArraySource)
    np.testing.assert_array_equal(decoded.X, images.load(np.arange(6)))
    assert decoded.items.tolist() == images.items.tolist()
    assert len(decoded.skipped) == 0


def test_the_progress_is_shown(folder, capsys):
    ImageFolder(folder).decoded(verbose=True)
    assert capsys.readouterr().err == "decoded 6/6\n"


@pytest.mark.parametrize("n_workers", [0, 2])
def test_a_broken_image_is_named_with_the_option(broken, n_workers):
    images = ImageFolder(broken, n_workers=n_workers)
    message = r'1\.png: the image cannot be read .*on_error="skip" \(--skip-broken\)'
    for read in (images.decoded, lambda: images.load(np.arange(6)), lambda: encode(images, len)):
        with pytest.raises(InputError, match=message):
            read()


@pytest.mark.parametrize("n_workers", [0, 2])
def test_broken_images_are_skipped_on_request(broken, n_workers):
    images = ImageFolder(broken, (2, 2), color=False, on_error="skip", n_workers=n_workers)
    message = (
        r"2 images of .* cannot be read and are skipped \('1\.png', '4\.png'\)\. .*1\.png: the"
    )
    with pytest.warns(UserWarning, match=message):
        decoded = images.decoded()
    assert decoded.items.tolist() == ["0.png", "2.png", "3.png", "5.png"]
    assert decoded.X[:, 0, 0].tolist() == [0, 20, 30, 50]
    assert decoded.skipped.tolist() == ["1.png", "4.png"]
    with pytest.raises(InputError, match=r"1\.png: .*`decoded\(\)` leaves it out"):
        images.load(np.arange(6))


def test_broken_images_are_not_encoded(broken):
    (broken / "6.png").write_bytes(b"broken")  # Like 1.png, to the last byte.
    images = ImageFolder(broken, on_error="skip")
    seen = []

    def level(batch):
        seen.append(len(batch))
        return [[image.getpixel((0, 0))[0]] for image in batch]

    with pytest.warns(UserWarning, match=r"3 images of .* are skipped"):
        encoded = encode(images, level, batch_size=3)
    assert encoded.items.tolist() == ["0.png", "2.png", "3.png", "5.png"]
    assert encoded.X[:, 0].tolist() == [0, 20, 30, 50]
    assert encoded.skipped.tolist() == ["1.png", "4.png", "6.png"]
    assert seen == [3, 1]


def test_no_image_is_left(tmp_path):
    (tmp_path / "x.png").write_bytes(b"broken")
    images = ImageFolder(tmp_path, on_error="skip")
    for read in (images.decoded, lambda: encode(images, len)):
        with pytest.raises(InputError, match=r"no image can be read\. .*x\.png"):
            read()


def test_images_that_exceed_memory_are_decoded_whenever_used(folder, monkeypatch):
    monkeypatch.setattr(image_source, "MAX_DECODED_BYTES", 6 * 64 * 64 * 3 - 1)
    with pytest.warns(UserWarning, match="take 0.0 GiB, more than .* decoded again whenever"):
        assert isinstance(ImageFolder(folder).decoded(), ImageSource)
    with pytest.raises(InputError, match=r"the broken ones are not known .*--image-size"):
        ImageFolder(folder, on_error="skip").decoded()


@pytest.mark.parametrize("options", [{"on_error": "ignore"}, {"n_workers": -1}])
def test_wrong_options_are_refused(folder, options):
    with pytest.raises(InputError, match=next(iter(options))):
        ImageFolder(folder, **options)
