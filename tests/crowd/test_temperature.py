import numpy as np
import pytest
import torch

from annotrace.crowd import FixedMatrices
from annotrace.crowd.temperature import held_out_temperature, held_out_temperature_of
from annotrace.simulate import hammer_spammers, simulate_labels

UNKNOWN = np.full(3000, -1, np.int32)
HELD_OUT = np.arange(2000, 3000)


def crowd(labels_per_item, matrices=None):
    """Return labels and the logits of a calibrated classifier: table, logits, matrices, truth."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2, size=(3000, 4))
    # The largest of logits with Gumbel noise is a draw by their softmax.
    truth = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    if matrices is None:
        matrices = hammer_spammers(6, 4, 0.6, random_state=rng)
    table = simulate_labels(truth, matrices, labels_per_item=labels_per_item, random_state=rng)
    return table, torch.from_numpy(logits), torch.from_numpy(matrices), truth


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_labels_show_the_temperature(factor):
    table, logits, matrices, _ = crowd(labels_per_item=3)
    found = held_out_temperature(table, UNKNOWN, factor * logits, matrices, HELD_OUT)
    assert found == pytest.approx(factor, rel=0.2)


def test_the_initial_matrices_hardly_matter():
    table, logits, matrices, _ = crowd(labels_per_item=2)
    right = held_out_temperature(table, UNKNOWN, logits, matrices, HELD_OUT)
    too_good = 0.5 * matrices + 0.5 * torch.eye(4, dtype=torch.float64)
    assert held_out_temperature(table, UNKNOWN, logits, too_good, HELD_OUT) == pytest.approx(
        right, rel=0.1
    )


def test_gold_items_weigh_more_than_labels():
    table, logits, matrices, truth = crowd(labels_per_item=1)
    gold = np.where(np.arange(3000) >= 2000, truth, -1).astype(np.int32)
    found = held_out_temperature(table, gold, 4 * logits, matrices, HELD_OUT)
    assert found == pytest.approx(4, rel=0.1)


def test_few_labels_change_it_little_and_none_not_at_all():
    table, logits, matrices, _ = crowd(labels_per_item=1)
    few = held_out_temperature(table, UNKNOWN, 10 * logits, matrices, HELD_OUT[:3])
    assert 0.5 < few < 2
    assert held_out_temperature(table, UNKNOWN, logits, matrices, HELD_OUT[:0]) == 1


def test_annotators_with_few_labels_borrow_from_the_others():
    alike = np.repeat((0.5 * np.eye(4) + 0.125)[None], 1500, axis=0)
    table, logits, matrices, _ = crowd(labels_per_item=3, matrices=alike)
    found = held_out_temperature(table, UNKNOWN, 2 * logits, matrices, HELD_OUT)
    assert found == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_labels_show_the_temperature_given_an_annotator_model(factor):
    table, logits, matrices, _ = crowd(labels_per_item=3)
    model = FixedMatrices(matrices)
    found = held_out_temperature_of(model, table, UNKNOWN, factor * logits, HELD_OUT)
    assert found == pytest.approx(factor, rel=0.2)
    assert held_out_temperature_of(model, table, UNKNOWN, logits, HELD_OUT[:0]) == 1
