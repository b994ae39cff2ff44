from itertools import combinations

from annotrace.labels.columns import find_column
from annotrace.labels.usual_names import OTHER_NAMES, USUAL_NAMES, WEAK_NAMES


def test_a_name_has_one_meaning():
    roles = ("item", "annotator", "label", "truth")
    meanings = [*(set(USUAL_NAMES[role]) for role in roles), OTHER_NAMES]
    assert all(not first & second for first, second in combinations(meanings, 2))
    assert all(len(set(names)) == len(names) for names in USUAL_NAMES.values())
    assert set(WEAK_NAMES) <= set(USUAL_NAMES["item"])


def test_every_name_is_found_as_it_is_written():
    for role, names in USUAL_NAMES.items():
        assert [name for name in names if find_column([name], role, "x") is None] == []
