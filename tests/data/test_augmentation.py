"""Random shifts and mirror images of image batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotrace.data.augmentation import image_layout, make_augmentation, mirror
from annotrace.errors import InputError

SHAPES = [(8, 8), (8, 8, 1), (16, 8, 3), (3, 16, 8), (1, 8, 8)]


def images(shape: tuple[int, ...], n: int = 64) -> torch.Tensor:
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.integers(0, 256, (n, *shape), dtype=np.uint8))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def columns(x: torch.Tensor) -> torch.Tensor:
    """Return images whose pixels say which column they are in, shape like x."""
    layout = image_layout(tuple(x.shape[1:]))
    width = 2 if layout.channels_last else 3
    view = [1] * x.dim()
    view[width] = x.shape[width]
    return torch.arange(x.shape[width], dtype=torch.uint8).view(view).expand_as(x).contiguous()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["crop", "crop+flip"])
def test_augmentation_keeps_shape_type_and_pixels(kind: str, shape: tuple[int, ...]) -> None:
    x = images(shape)
    changed = make_augmentation(kind, shape)(x, generator())
    assert changed.shape == x.shape
    assert changed.dtype == x.dtype
    assert not torch.equal(changed, x)
    for before, after in zip(x, changed, strict=True):
        assert set(after.flatten().tolist()) <= set(before.flatten().tolist())


@pytest.mark.parametrize("shape", SHAPES)
def test_crop_moves_by_at_most_an_eighth(shape: tuple[int, ...]) -> None:
    x = columns(images(shape))
    changed = make_augmentation("crop", shape)(x, generator())
    moved = (changed.int() - x.int()).abs()
    assert moved.max() == 1
    assert (moved.flatten(1).amax(1) == 0).any()


def test_crop_never_mirrors_and_flip_mirrors_half() -> None:
    x = columns(images((8, 8), n=2000))
    for kind, share in (("crop", 0.0), ("crop+flip", 0.5)):
        changed = make_augmentation(kind, (8, 8))(x, generator()).int()
        mirrored = (changed[:, 0, 1] > changed[:, 0, 6]).float().mean()
        assert abs(float(mirrored) - share) < 0.05


def test_all_channels_move_together() -> None:
    grey = images((8, 8, 1))
    changed = make_augmentation("crop+flip", (8, 8, 3))(grey.expand(-1, -1, -1, 3), generator())
    assert torch.equal(changed[..., 0], changed[..., 1])
    assert torch.equal(changed[..., 0], changed[..., 2])


def test_layouts_are_changed_alike() -> None:
    last = images((8, 8, 3))
    first = last.permute(0, 3, 1, 2).contiguous()
    changed = make_augmentation("crop+flip", (8, 8, 3))(last, generator())
    same = make_augmentation("crop+flip", (3, 8, 8))(first, generator())
    assert torch.equal(changed.permute(0, 3, 1, 2), same)


def test_same_generator_same_images() -> None:
    x = images((8, 8))
    augment = make_augmentation("crop+flip", (8, 8))
    assert torch.equal(augment(x, generator(1)), augment(x, generator(1)))
    assert not torch.equal(augment(x, generator(1)), augment(x, generator(2)))


def test_none_is_no_augmentation() -> None:
    assert make_augmentation("none", (8, 8)) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_own_function_gets_floats_with_channels_first(shape: tuple[int, ...]) -> None:
    seen = []

    def negative(x: torch.Tensor) -> torch.Tensor:
        seen.append(x)
        return 1 - x

    x = images(shape)
    changed = make_augmentation(negative, shape)(x, None)
    (given,) = seen
    assert given.dtype == torch.float32
    assert given.shape[1] == image_layout(shape).n_channels
    assert given.min() >= 0
    assert given.max() <= 1
    torch.testing.assert_close(changed, 1 - x.float() / 255)


def test_own_function_of_another_shape_is_refused() -> None:
    augment = make_augmentation(lambda x: x[:, :, 1:], (8, 8))
    with pytest.raises(InputError, match=r"to return images of shape \(64, 1, 8, 8\)"):
        augment(images((8, 8)), None)


@pytest.mark.parametrize("shape", SHAPES)
def test_mirror_twice_is_the_same(shape: tuple[int, ...]) -> None:
    x = images(shape)
    assert torch.equal(mirror(mirror(x)), x)
    assert torch.equal(mirror(columns(x)).int(), shape_width(x) - 1 - columns(x).int())


def shape_width(x: torch.Tensor) -> int:
    return x.shape[2 if image_layout(tuple(x.shape[1:])).channels_last else 3]


def test_shape_that_is_no_image_is_refused() -> None:
    with pytest.raises(InputError, match="1 or 3 channels"):
        image_layout((8, 8, 2))
