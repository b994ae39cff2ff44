import pytest
import torch

from annotrace.networks import build_backbone
from annotrace.training import Batch, draw_mixture, mixed_logits


def test_partners_are_a_permutation():
    torch.manual_seed(0)
    mixture = draw_mixture(1.0, torch.zeros(50, dtype=torch.long))
    assert sorted(mixture.partner.tolist()) == list(range(50))
    assert not torch.any(mixture.partner == torch.arange(50))


def test_partners_are_in_the_same_group_except_for_one_row_each():
    torch.manual_seed(0)
    group = torch.arange(60) % 3
    mixture = draw_mixture(1.0, group)
    assert int((group[mixture.partner] != group).sum()) == 3


def test_the_weight_follows_the_beta_distribution():
    torch.manual_seed(0)
    group = torch.zeros(2, dtype=torch.long)
    weights = torch.stack([draw_mixture(0.5, group).weight for _ in range(4000)])
    assert float(weights.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(weights.var()) == pytest.approx(1 / 8, abs=0.01)  # of Beta(1/2, 1/2)


def test_rows_are_convex_combinations():
    torch.manual_seed(0)
    rows = torch.randn(7, 3)
    mixture = draw_mixture(1.0, torch.zeros(7, dtype=torch.long))
    w, other = float(mixture.weight), mixture.partner
    torch.testing.assert_close(mixture.mix(rows), w * rows + (1 - w) * rows[other])


def test_a_row_gets_the_labels_of_its_partner():
    torch.manual_seed(0)
    row = torch.tensor([0, 0, 1, 2, 2])
    batch = Batch(torch.arange(3.0)[:, None], torch.tensor([7, 8, 9]), row, row, row)
    mixture = draw_mixture(1.0, torch.zeros(3, dtype=torch.long))
    swapped = mixture.partners(batch)
    for place, partner in enumerate(mixture.partner.tolist()):
        assert swapped.item[place] == batch.item[partner]
        assert swapped.inputs[place] == batch.inputs[partner]
        assert set(swapped.label[swapped.row == place].tolist()) == {partner}


def test_uint8_images_are_mixed_as_floats():
    images = torch.randint(0, 255, (8, 12, 12), dtype=torch.uint8)
    network = build_backbone("cnn", images, 3).eval()
    torch.manual_seed(0)
    mixture = draw_mixture(1.0, torch.zeros(8, dtype=torch.long))
    mixed = mixture.mix(images.float())
    expected = network[1:](mixed[:, None] / 255)
    torch.testing.assert_close(
        mixed_logits(network, images, mixture), expected, rtol=1e-4, atol=1e-5
    )


def test_uint8_features_are_mixed_as_floats():
    rows = torch.randint(0, 255, (8, 3), dtype=torch.uint8)
    network = build_backbone("mlp", rows, 3)
    torch.manual_seed(0)
    mixture = draw_mixture(1.0, torch.zeros(8, dtype=torch.long))
    expected = network(mixture.mix(rows.float()))
    torch.testing.assert_close(mixed_logits(network, rows, mixture), expected)
