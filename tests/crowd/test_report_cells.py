import numpy as np
import pytest
import torch

from annotrace.crowd.cell_counts import CellCounts
from annotrace.crowd.report_cells import ReportCells, Support
from annotrace.labels import LabelTable

ITEM, ANNOTATOR, LABEL = np.array([[0, 0, 0, 1, 1, 3], [0, 1, 1, 0, 2, 1], [2, 0, 0, 1, 1, 2]])
UNINFORMED = torch.tensor([2])


@pytest.fixture
def table():
    return LabelTable.from_codes(ITEM, ANNOTATOR, LABEL, n_items=4, n_annotators=3, n_classes=3)


@pytest.fixture
def posterior():
    likely = [[0.6, 0.0, 0.4], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.2, 0.3, 0.5]]
    return torch.tensor(likely, dtype=torch.float64)


@pytest.fixture
def cells(table, posterior):
    return ReportCells(table, Support.from_posterior(posterior, UNINFORMED), torch.float64)


def test_counts_are_those_of_a_loop(table, posterior, cells):
    expected = np.zeros((3, 3, 3))
    for i, r, j in zip(ITEM, ANNOTATOR, LABEL, strict=True):
        expected[r, :, j] += posterior[i].numpy()
    counted = cells.counts(cells.select(posterior))[:, 0]
    counts = CellCounts(cells.code, counted, 3, 3)
    np.testing.assert_allclose(counts.dense(torch.arange(3)), expected)
    np.testing.assert_allclose(counts.dense(torch.tensor([2, 1, 2])), expected[[2, 1, 2]])
    np.testing.assert_allclose(counts.row_totals(), expected.sum(2))
    columns, asked = counts.columns(), (torch.tensor([0, 1, 2, 2]), torch.tensor([2, 0, 0, 2]))
    np.testing.assert_allclose(columns.of(*asked), expected[[0, 1, 2, 2], :, [2, 0, 0, 2]])
    assert counts.of_cells(torch.tensor([0, 26])).tolist() == [0, 0]
    np.testing.assert_allclose(counts.of_cells(cells.code), counted)
    np.testing.assert_allclose(cells.sum_columns(counted), expected.sum(1))
    np.testing.assert_allclose(
        cells.sum_rows(counted), expected.sum(2).flatten()[np.unique(cells.code // 3)]
    )
    assert cells.correct.tolist() == np.flatnonzero(cells.true == cells.label).tolist()


def test_the_posterior_is_that_of_the_support(table, posterior, cells):
    torch.manual_seed(0)
    logs = torch.randn(3, 3, 3, dtype=torch.float64)
    given = logs.flatten()[cells.code][:, None]
    found, evidence = cells.normalize(cells.sum_by_pair(given))
    expected = 0.0
    place = 0
    for item in (0, 1, 3):
        likely = np.flatnonzero(posterior[item] > 0)
        joint = [
            np.exp(sum(float(logs[r, k, j]) for i, r, j in zip(*CODES, strict=True) if i == item))
            for k in likely
        ]
        own = found[place : place + len(likely), 0]
        np.testing.assert_allclose(own, np.array(joint) / sum(joint))
        expected += np.log(sum(joint))
        place += len(likely)
    assert evidence == pytest.approx(expected)
    assert place == len(found)


CODES = ITEM, ANNOTATOR, LABEL


def test_gold_items_have_one_class(table):
    gold = np.array([-1, 2, -1, -1])
    support = Support.of_all_classes(table, gold)
    assert support.item.tolist() == [0, 0, 0, 1, 3, 3, 3]
    assert support.true.tolist() == [0, 1, 2, 2, 0, 1, 2]
