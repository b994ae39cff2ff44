from collections import Counter

import numpy as np

from annotrace.labels import LabelTable


def test_counts_are_those_of_the_labels_one_by_one():
    rng = np.random.default_rng(0)
    sizes = {"n_items": 9, "n_annotators": 4, "n_classes": 3}
    item, annotator, label = (rng.integers(0, size - 1, 40) for size in sizes.values())
    table = LabelTable.from_codes(item, annotator, label, **sizes)
    assert (table.n_items, table.n_annotators, table.n_classes, table.n_labels) == (9, 4, 3, 40)
    assert table.shape == (9, 4)
    pairs = Counter(zip(item.tolist(), label.tolist(), strict=True))
    assert table.votes().tolist() == [[pairs[k, c] for c in range(3)] for k in range(9)]
    counted = (table.labels_per_item(), table.labels_per_annotator(), table.labels_per_class())
    for counts, codes in zip(counted, (item, annotator, label), strict=True):
        assert counts.dtype == np.int64
        assert counts.tolist() == [codes.tolist().count(code) for code in range(len(counts))]
