"""The published crowd label sets, where they are at hand, against the counts of their sources."""

from pathlib import Path

import numpy as np
import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable

CROWD = Path(__file__).parents[2] / ".." / "shared" / "data" / "crowd"

pytestmark = pytest.mark.skipif(not CROWD.is_dir(), reason="the real files are not here")

# items, annotators, labels, classes, items with truth
COUNTS = {
    "snow2008_rte": (800, 164, 8000, 2, 800),
    "snow2008_temp": (462, 76, 4620, 2, 462),
    "snow2008_wsd": (177, 34, 1770, 3, 177),
    "bluebirds": (108, 39, 4212, 2, 108),
    "dog": (807, 109, 8070, 4, 807),
    "product_match": (8315, 176, 24945, 2, 8315),
    "weather_sentiment_amt": (300, 110, 6025, 5, 300),
    "sentiment_polarity_amt500": (500, 143, 10000, 2, 500),
    "zencrowd_us": (2040, 74, 11155, 2, 2040),
    "adult_content2": (11040, 825, 89799, 4, 333),
    "adult_content3": (496, 338, 35323, 5, 0),
    "hitspam_crowdflower": (5380, 153, 38593, 2, 100),
    "hitspam_mturk": (5840, 135, 28354, 2, 0),
    "anesthesia_with_repeats": (45, 5, 315, 4, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    table = LabelTable.read(CROWD / "label_only" / f"{name}.csv.gz")
    n_truth = 0 if table.truth is None else int(np.sum(table.truth >= 0))
    counts = (table.n_items, table.n_annotators, table.n_labels, table.n_classes, n_truth)
    assert counts == COUNTS[name]


def test_annotator_accuracy_against_the_truth():
    table = LabelTable.read(CROWD / "label_only" / "dog.csv.gz")
    assert np.mean(table.truth[table.item] == table.label) == pytest.approx(0.6964, abs=5e-5)


def test_scores_are_refused():
    with pytest.raises(InputError, match=r"row 2, column 'truth': '3\.1' is a score"):
        LabelTable.read(CROWD / "label_only" / "snow2008_wordsim.csv.gz")


def test_counts_of_patterns_are_refused():
    with pytest.raises(InputError, match=r"found no item .* it has 'rater_1'"):
        LabelTable.read(CROWD / "label_only" / "caries_pattern_counts.csv.gz")


@pytest.mark.parametrize(
    ("name", "options", "counts"),
    [
        ("labelme", {"truth": "y_train"}, (1000, 59, 2547, 8)),
        ("face_sentiment", {"truth": "y"}, (584, 27, 5242, 4)),
        ("sentiment_polarity", {"truth": "y"}, (4999, 203, 27746, 2)),
        ("cifar10n", {"label": "R", "truth": "clean"}, (50000, 3, 150000, 10)),
    ],
)
def test_arrays(name, options, counts):
    table = LabelTable.read(CROWD / f"{name}.npz", **options)
    assert (table.n_items, table.n_annotators, table.n_labels, table.n_classes) == counts
    assert table.positional
    assert np.all(table.truth >= 0)
