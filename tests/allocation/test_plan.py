import numpy as np

import annotrace as at
from annotrace.allocation.plan import CANDIDATES, Plan


def test_candidates_are_those_of_a_whole_sort():
    rng = np.random.default_rng(0)
    table = at.LabelTable.from_codes([0], [0], [0], n_annotators=300, n_classes=2)
    plan = Plan(table, np.full((1, 2), 0.5), np.full((300, 2, 2), 0.5), np.ones(300), 1)
    plan.load = rng.integers(0, 3, 300)
    for item in (0, 7, 301):
        row = rng.integers(0, 4, 300) / 4
        place = {who: (-row[who], plan.load[who], (who - item) % 300) for who in range(300)}
        expected = sorted(np.flatnonzero(row).tolist(), key=place.__getitem__)[:CANDIDATES]
        assert plan._best(item, row, np.sort(row)[-CANDIDATES]).tolist() == expected
