import numpy as np
import pytest

import annotrace as at
from annotrace.labels.matching import merge_tables


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.array([1, 2], np.int16), np.array([65537, 3])),
        (np.array([0, 1], np.int32), np.array([5_000_000_000, 1])),
        (np.array([7, 8], np.uint8), np.array([300, 7])),
    ],
)
def test_names_too_large_for_the_numbers_of_before_stay_what_they_are(before, after):
    old, new = (
        at.LabelTable([0, 1], [0, 0], [0, 1], items=names, annotators=names[:1], classes=names)
        for names in (before, after)
    )
    merged = merge_tables(old, new)
    expected = [*before.tolist(), *(name for name in after.tolist() if name not in before)]
    assert merged.items.tolist() == expected
    assert merged.classes.tolist() == expected
    assert {row[0] for row in merged.to_frame().rows()} == set(expected)
