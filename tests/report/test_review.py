from dataclasses import replace

import numpy as np
import pytest

import annotrace as at
from annotrace.report.review import SHOWN, suspect_labels, uncertain_items
from annotrace.report.view import view_of


def no_picture(item):
    return ""


def no_texts(item):
    return []


def test_the_least_certain_items_come_first(trained):
    result = view_of(trained)
    found = uncertain_items(result, no_picture, no_texts)
    order = np.argsort(trained.confidence_, kind="stable")
    expected = [k for k in order[:SHOWN] if trained.confidence_[k] < 0.8]
    assert [item.name for item in found] == trained.table_.items[expected].tolist()
    assert found
    for item in found:
        assert item.choices[0].probability == pytest.approx(
            trained.confidence_[trained.table_.items.tolist().index(item.name)]
        )


def test_an_item_shows_its_labels_and_who_disagrees(trained):
    item = uncertain_items(view_of(trained), lambda item: f"picture {item}", no_texts)[0]
    table = trained.table_
    k = table.items.tolist().index(item.name)
    rows = slice(*table.offsets[k : k + 2])
    assert item.picture == f"picture {k}"
    assert [(g.annotator, g.label) for g in item.labels] == list(
        zip(
            table.annotators[table.annotator[rows]].tolist(),
            table.classes[table.label[rows]].tolist(),
            strict=True,
        )
    )
    assert [g.agrees for g in item.labels] == [g.label == item.choices[0].name for g in item.labels]


def test_long_lists_of_labels_are_cut_and_items_without_labels_are_left_out(made_up):
    table = at.LabelTable.from_codes(np.zeros(30, int), np.arange(30), np.arange(30) % 2, n_items=2)
    even = np.full((2, 2), 0.5)
    result = made_up(table, even, np.full((30, 2, 2), 0.5))
    found = uncertain_items(result, no_picture, no_texts)
    assert len(found) == 1
    assert (len(found[0].labels), found[0].n_more_labels) == (12, 18)


def test_suspect_labels_are_those_the_posterior_speaks_against(aggregated):
    found = suspect_labels(view_of(aggregated), no_picture, no_texts)
    rights = [label.probability for label in found]
    assert rights == sorted(rights)
    assert all(label.label != label.estimate.name for label in found)
    assert sum(label.annotator == "mallory" for label in found) > len(found) / 4


@pytest.fixture
def misled():
    """Ten annotators, most of them label hens as dogs; 60 items, the last five without labels."""
    crowd = np.tile(np.array([[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.1, 0.5, 0.4]]), (10, 1, 1))
    codes = at.simulate.simulate_labels(np.arange(55) % 3, crowd, labels_per_item=3, random_state=0)
    table = at.LabelTable.from_codes(codes.item, codes.annotator, codes.label, n_items=60)
    return at.aggregation.make("dawid-skene").fit(table)


def test_python_ranks_labels_as_the_page_does(misled):
    page = suspect_labels(view_of(misled), no_picture, no_texts)
    frame = misled.suspect_labels(SHOWN)
    frame = frame.filter(frame["label"] != frame["likeliest"])
    assert [(label.item, label.annotator) for label in page] == [
        (str(item), str(annotator)) for item, annotator in frame["item", "annotator"].rows()
    ]
    np.testing.assert_allclose([label.probability for label in page], frame["probability"])
    np.testing.assert_allclose([label.estimate.probability for label in page], frame["confidence"])


def test_plots_draw_the_items_that_the_page_lists(misled):
    page = uncertain_items(view_of(misled), no_picture, no_texts)
    axes = at.plots.items(misled, top=60)
    drawn = [tick.get_text() for tick in axes.yaxis.get_ticklabels()]
    assert page
    assert drawn[: len(page)] == [item.name for item in page]
    assert len(drawn) == 55


def test_nothing_is_listed_if_there_are_no_labels(made_up):
    table = at.LabelTable.from_codes([], [], [], n_items=0, n_annotators=0, n_classes=2)
    result = made_up(table, np.empty((0, 2)), np.empty((0, 2, 2)))
    assert (
        uncertain_items(result, no_picture, no_texts)
        == suspect_labels(result, no_picture, no_texts)
        == []
    )


def test_an_item_says_if_another_class_is_more_probable(made_up):
    """The labels favour one class, and the errors that annotators share another."""
    table = at.LabelTable.from_codes([0, 1], [0, 0], [0, 1])
    posterior = np.array([[0.6, 0.4], [0.3, 0.7]])
    chances = np.array([[0.45, 0.55], [0.3, 0.7]])
    view = replace(made_up(table, posterior, np.eye(2)[None]), posterior=chances)
    first, second = uncertain_items(view, no_picture, no_texts)
    assert (first.choices[0].name, first.has_likelier_class) == ("0", True)
    assert (second.choices[0].name, second.has_likelier_class) == ("1", False)
