import pytest
import torch
from torch import nn

from annotrace.errors import InputError
from annotrace.networks import BACKBONES, build_backbone


@pytest.mark.parametrize("name", ["auto", *BACKBONES])
def test_uint8_images_become_logits(name):
    sample = torch.randint(256, (3, 16, 16, 3), dtype=torch.uint8)
    network = build_backbone(name, sample, 7).eval()
    assert network(sample).shape == (3, 7)


@pytest.mark.parametrize("name", ["auto", "linear", "mlp"])
def test_features_become_logits(name):
    sample = torch.randn(5, 6)
    assert build_backbone(name, sample, 4)(sample).shape == (5, 4)


def test_auto_depends_on_the_data():
    features = build_backbone("auto", torch.randn(5, 6), 4)
    assert [m.out_features for m in features.modules() if isinstance(m, nn.Linear)] == [128, 4]
    images = build_backbone("auto", torch.randn(5, 8, 8), 4)
    widths = [m.out_channels for m in images.modules() if isinstance(m, nn.Conv2d)]
    assert widths == [32, 32, 64, 64]


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 3)])
def test_images_stay_in_the_channels_last_layout(shape):
    sample = torch.randn(5, *shape)
    *stages, network = build_backbone("cnn", sample, 4).children()
    x = sample
    for layer in [*stages, *network[:8]]:
        x = layer(x)
        assert x.stride(1) == 1


def test_the_papers_widths():
    wide = build_backbone("cnn-wide", torch.randn(5, 8, 8), 4)
    assert [m.out_channels for m in wide.modules() if isinstance(m, nn.Conv2d)] == [128] * 4


class Mean(nn.Module):
    """Channel means through a linear layer."""

    def __init__(self, channels, n_classes):
        super().__init__()
        self.linear = nn.Linear(channels, n_classes)

    def forward(self, x):
        assert x.dtype == torch.float32
        return self.linear(x.mean((2, 3)))


def test_the_users_module_is_copied():
    mine = Mean(3, 4)
    before = mine.linear.weight.detach().clone()
    network = build_backbone(mine, torch.randint(256, (5, 8, 8, 3), dtype=torch.uint8), 4)
    assert network.training
    for parameter in network.parameters():
        parameter.data.zero_()
    assert torch.equal(mine.linear.weight, before)


def test_wrong_logits_are_errors():
    with pytest.raises(InputError, match=r"\(rows, 3\), but for 2 rows it returned \(2, 4\)"):
        build_backbone(nn.Linear(6, 4), torch.randn(5, 6), 3)
    with pytest.raises(InputError, match="to return logits, but it returned a tuple"):
        build_backbone(nn.LSTM(6, 3), torch.randn(5, 6), 3)
    with pytest.raises(InputError, match="to have trainable weights, but it has none"):
        build_backbone(nn.Identity(), torch.randn(5, 3), 3)


def test_wrong_names_and_data_are_errors():
    with pytest.raises(InputError, match=r"one of linear, mlp, cnn, .* but got 'vgg'"):
        build_backbone("vgg", torch.randn(5, 6), 3)
    with pytest.raises(InputError, match="'resnet9' takes images, but the data are rows of 6"):
        build_backbone("resnet9", torch.randn(5, 6), 3)


@pytest.mark.parametrize(("name", "least"), [("cnn", 4), ("resnet9", 8), ("resnet50", 1)])
def test_images_have_a_minimum_size(name, least):
    images = torch.rand(2, least, least)
    assert build_backbone(name, images, 3).eval()(images).shape == (2, 3)
    if least > 1:
        with pytest.raises(InputError, match=f"needs images of {least} x {least} pixels"):
            build_backbone(name, images[:, 1:], 3)
