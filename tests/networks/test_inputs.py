import pytest
import torch

from annotrace.errors import InputError
from annotrace.networks import ImageInput, Standardize
from annotrace.networks.inputs import fit_standardize


@pytest.mark.parametrize(
    ("shape", "channels"), [((6, 5), 1), ((6, 5, 3), 3), ((6, 5, 1), 1), ((3, 6, 5), 3)]
)
def test_images_become_channels_first(shape, channels):
    stage = ImageInput(shape)
    images = torch.randint(256, (2, *shape), dtype=torch.uint8)
    x = stage(images)
    assert stage.channels == channels
    assert x.shape == (2, channels, 6, 5)
    assert x.dtype == torch.float32
    assert x.sum().item() == pytest.approx(images.sum().item() / 255, rel=1e-5)


def test_pixels_keep_their_position():
    images = torch.randn(2, 6, 5, 3)
    assert torch.equal(ImageInput((6, 5, 3))(images)[1, 2, 4, 3], images[1, 4, 3, 2])


def test_other_shapes_are_errors():
    with pytest.raises(InputError, match=r"1 or 3 channels, but got \(6, 5, 7\)"):
        ImageInput((6, 5, 7))


def test_features_are_standardised_and_constants_become_zero():
    x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    assert fit_standardize(x)(x).tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_images_are_standardised_by_channel():
    x = torch.randn(8, 3, 5, 5) * torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1) + 4
    y = fit_standardize(x)(x)
    torch.testing.assert_close(y.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.std((0, 2, 3), correction=0), torch.ones(3))


def test_mean_and_deviation_are_saved_with_the_network():
    fitted = fit_standardize(torch.randn(9, 2))
    other = Standardize(torch.zeros(2), torch.ones(2))
    other.load_state_dict(fitted.state_dict())
    assert torch.equal(other.mean, fitted.mean)


def test_features_on_a_common_scale_keep_their_relative_sizes():
    x = torch.randn(50, 3) * torch.tensor([1.0, 2.0, 4.0]) + 7
    scaled = fit_standardize(x, "common")(x)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    ratio = scaled.std(0, correction=0) / x.std(0, correction=0)
    torch.testing.assert_close(ratio, ratio[:1].expand(3))
    assert scaled.square().mean() == pytest.approx(1, abs=1e-5)
