import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from annotrace.networks import Bags, Ensemble, build_backbone, max_saved_size, mlp


def networks(n=3, backbone="mlp", sample=None):
    torch.manual_seed(0)
    sample = torch.randn(20, 4) if sample is None else sample
    return [build_backbone(backbone, sample, 5) for _ in range(n)], sample


def test_stacked_perceptrons_equal_separate_ones():
    alone, rows = networks()
    together = Ensemble(alone)
    expected = torch.stack([network(rows) for network in alone])
    torch.testing.assert_close(together.each(together.stage(rows)), expected)
    assert len(list(together.parameters())) == len(list(alone[0].parameters()))


def test_other_networks_run_separately():
    images = torch.randint(0, 255, (6, 12, 12), dtype=torch.uint8)
    alone, _ = networks(backbone="cnn", sample=images)
    together = Ensemble(alone).eval()
    expected = torch.stack([network.eval()(images) for network in alone])
    torch.testing.assert_close(together.each(together.stage(images)), expected)


def test_a_perceptron_without_bias_is_not_stacked():
    rows = torch.randn(6, 4)
    alone, _ = networks(backbone=nn.Sequential(nn.Linear(4, 5, bias=False)), sample=rows)
    together = Ensemble(alone)
    torch.testing.assert_close(together.each(together.stage(rows))[1], alone[1](rows))


class Shifted(nn.Sequential):
    def forward(self, rows):
        return 100 * rows[:, :1] + super().forward(rows)


class Doubled(nn.Linear):
    def forward(self, rows):
        return 2 * super().forward(rows)


def hooked(layer):
    layer.register_forward_hook(lambda layer, rows, said: said + 1)
    return layer


def tied():
    layer = nn.Linear(5, 5)
    return nn.Sequential(nn.Linear(4, 5), layer, nn.ReLU(), layer)


@pytest.mark.parametrize(
    "own",
    [
        Shifted(nn.Linear(4, 5)),
        nn.Sequential(Doubled(4, 5)),
        nn.Sequential(spectral_norm(nn.Linear(4, 5))),
        nn.Sequential(hooked(nn.Linear(4, 5))),
        nn.Sequential(nn.Sequential(nn.Linear(4, 5))),
        tied(),
    ],
    ids=["sequential", "linear", "parametrized", "hooked", "nested", "tied"],
)
def test_modified_perceptrons_are_not_stacked(own):
    alone, rows = networks(backbone=own)
    together = Ensemble(alone).eval()
    expected = torch.stack([network.eval()(rows) for network in alone])
    torch.testing.assert_close(together.each(together.stage(rows)), expected)
    assert len(list(together.parameters())) == 3 * len(list(own.parameters()))


def test_frozen_layers_stay_frozen():
    own = nn.Sequential(nn.Linear(4, 8).requires_grad_(False), nn.ReLU(), nn.Linear(8, 5))
    together = Ensemble(networks(backbone=own)[0])
    assert sum(not weight.requires_grad for weight in together.parameters()) == 6


def test_probabilities_are_averaged():
    alone, rows = networks()
    together = Ensemble(alone)
    expected = torch.stack([network(rows).softmax(1) for network in alone]).mean(0)
    torch.testing.assert_close(together(rows).exp().float(), expected)


def normalized(n=3):
    """Perceptrons with batch normalisation whose averages and scales differ."""
    torch.manual_seed(0)
    bodies = [mlp(4, 5, (8,), batch_norm=True) for _ in range(n)]
    for norm in (body[1] for body in bodies):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    return [nn.Sequential(nn.Flatten(), body) for body in bodies], torch.randn(20, 4)


def test_stacked_batch_normalisation_equals_that_of_separate_networks():
    alone, rows = normalized()
    together = Ensemble(alone)
    assert len(list(together.parameters())) == len(list(alone[0].parameters()))
    for _ in range(2):  # The second step starts from averages that the first one has changed.
        expected = torch.stack([network.train()(rows) for network in alone])
        found = together.train().each(rows)
        torch.testing.assert_close(found, expected)
    expected.square().sum().backward()
    found.square().sum().backward()
    own = torch.stack([network[1][1].weight.grad for network in alone])
    torch.testing.assert_close(together.bodies[1].weight.grad, own)
    expected = torch.stack([network.eval()(rows) for network in alone])
    torch.testing.assert_close(together.eval().each(rows), expected)


def test_joined_rounds_keep_the_averages_of_batch_normalisation():
    (alone, rows), n_folds = normalized(4), 2
    rounds = [Ensemble(alone[:n_folds]).eval(), Ensemble(alone[n_folds:]).eval()]
    joined = Ensemble.joined(rounds).eval()
    expected = torch.cat([each.each(rows) for each in rounds])
    torch.testing.assert_close(joined.each(rows), expected)
    again = Ensemble(normalized(4)[0], 2).eval()
    again.load_state_dict(joined.state_dict())
    torch.testing.assert_close(again.each(rows), expected)


def test_batch_normalisation_without_weights_or_fixed_momentum_is_not_stacked():
    for norm in (nn.BatchNorm1d(4, affine=False), nn.BatchNorm1d(4, momentum=None)):
        alone, rows = networks(backbone=nn.Sequential(norm, nn.Linear(4, 5)))
        together = Ensemble(alone)
        assert len(list(together.parameters())) == 3 * len(list(alone[0].parameters()))
        torch.testing.assert_close(together.each(rows)[1], alone[1](rows))


def test_a_high_temperature_gives_uniform_probabilities():
    together = Ensemble(networks()[0])
    together.temperature.fill_(1e6)
    uniform = torch.full((20, 5), 0.2)
    found = together(networks()[1]).exp().float()
    torch.testing.assert_close(found, uniform, atol=1e-4, rtol=0)


@pytest.mark.parametrize("backbone", ["mlp", "cnn"])
def test_joined_rounds_average_log_probabilities_by_place(backbone):
    images = torch.randint(0, 255, (6, 12, 12), dtype=torch.uint8)
    rounds = [Ensemble(networks(2, backbone, images)[0]).eval() for _ in range(3)]
    for number, each in enumerate(rounds):
        for weight in each.parameters():
            weight.data.mul_(1 + number)
    joined = Ensemble.joined(rounds).eval()
    each = torch.stack([own.each(own.stage(images)) for own in rounds])
    expected = each.log_softmax(-1).mean(0)
    torch.testing.assert_close(joined.by_place(joined.stage(images)), expected)
    assert (joined.size, joined.n_rounds) == (6, 3)
    mean = (expected / 1.0).softmax(-1).mean(0)
    torch.testing.assert_close(joined(images).exp().float(), mean)


@pytest.mark.parametrize("backbone", ["linear", "mlp"])
def test_rounds_of_networks_on_texts_are_joined(backbone):
    texts = Bags(torch.arange(12) % 4, torch.ones(12), torch.arange(5) * 3)
    rounds = [Ensemble(networks(2, backbone, texts)[0]).eval() for _ in range(2)]
    for weight in rounds[1].parameters():
        weight.data.add_(0.1)
    joined = Ensemble.joined(rounds).eval()
    each = torch.cat([own.each(own.stage(texts)) for own in rounds])
    torch.testing.assert_close(joined.each(joined.stage(texts)), each)


def test_the_number_of_networks_is_known_from_their_state():
    for bodies in ([mlp(4, 5) for _ in range(3)], [nn.Sequential(nn.Tanh(), mlp(4, 5))] * 3):
        ensemble = Ensemble([nn.Sequential(nn.Flatten(), body) for body in bodies])
        assert max_saved_size(ensemble.state_dict()) == 3
    assert max_saved_size({}) == 0
