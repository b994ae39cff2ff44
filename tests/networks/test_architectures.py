import pytest
import torch
from torch import nn

from annotrace.networks import cnn4, mlp, resnet9, resnet50


def weights_of(network):
    return sum(parameter.numel() for parameter in network.parameters())


def test_perceptrons_have_the_given_widths():
    layers = [layer for layer in mlp(6, 4, (9, 8)) if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in layers] == [(6, 9), (9, 8), (8, 4)]
    assert len(mlp(6, 4, ())) == 1


def test_hidden_layers_are_normalised_before_the_activation():
    kinds = [type(layer) for layer in mlp(6, 4, (9, 8), batch_norm=True)]
    hidden = [nn.Linear, nn.BatchNorm1d, nn.ReLU]
    assert kinds == [*hidden, *hidden, nn.Linear]


def test_the_papers_network_has_its_size():
    assert weights_of(cnn4(1, 10)) == 320 + 9_248 + 18_496 + 36_928 + 650


def test_signals_do_not_fade_in_the_papers_network():
    torch.manual_seed(0)
    x = torch.randn(20, 1, 28, 28)
    scales = []
    for layer in cnn4(1, 10)[:10]:
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            scales.append(x.std().item())
    assert all(0.7 < scale < 5 for scale in scales)


def test_residual_networks_have_their_usual_size():
    assert weights_of(resnet9(3, 10)) == pytest.approx(6.57e6, rel=0.01)
    # The usual count, 25.557 million with 1,000 classes and a 7 x 7 stem, less what differs.
    usual = 25_557_032 - (2048 * 990 + 990) - 64 * 3 * (49 - 9)
    assert weights_of(resnet50(3, 10)) == usual
