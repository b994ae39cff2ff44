import numpy as np
import torch

from annotrace.crowd import CrowdResult, FixedMatrices, RegionalAnnotators
from annotrace.diagnosis import failing_regions
from annotrace.labels import LabelTable


def result_of(annotator_model=None):
    """Annotator 0 is wrong on the first half of 80 items, 1 on none: known true classes."""
    truth, item = np.arange(80) % 2, np.tile(np.arange(80), 2)
    annotator = np.repeat([0, 1], 80)
    is_wrong = (annotator == 0) & (item < 40)
    table = LabelTable.from_codes(item, annotator, np.where(is_wrong, 1 - truth[item], truth[item]))
    able, failing = torch.eye(2).repeat(2, 1, 1), (1 - torch.eye(2)).repeat(2, 1, 1)
    places = torch.linspace(-2, 2, 80)[:, None]
    gates = torch.tensor([[0.0, 3.0], [0.0, 3.0]])
    model = annotator_model or RegionalAnnotators(able, failing, gates, places)
    gold = np.full(80, -1, np.int32)
    return CrowdResult(table, np.eye(2)[truth], truth, model, np.full(2, 0.5), gold)


def test_only_annotators_who_fail_inside_are_listed():
    (region,) = failing_regions(result_of())
    assert region.annotator == 0
    assert region.items.tolist() == list(range(40))
    assert (region.inside.value, region.outside.value) == (0.0, 1.0)
    assert region.inside.high < 0.1 < 0.9 < region.outside.low
    assert (region.n_outside, region.difference) == (40, 1.0)
    assert (np.diff(region.depth) <= 0).all()


def test_it_does_not_matter_which_matrix_is_called_able():
    result = result_of()
    model = result.annotator_model
    swapped = RegionalAnnotators(
        model.log_failing.exp(), model.log_able.exp(), -model.gates, model.items
    )
    one, other = (failing_regions(each) for each in (result, result_of(swapped)))
    np.testing.assert_array_equal(one[0].items, other[0].items)
    np.testing.assert_allclose(one[0].depth, other[0].depth, atol=1e-6)


def test_annotators_whose_errors_do_not_depend_on_the_item_have_no_regions():
    assert failing_regions(result_of(FixedMatrices(torch.eye(2).repeat(2, 1, 1)))) == []
