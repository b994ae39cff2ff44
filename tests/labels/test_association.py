from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotrace.labels.association import associate, intraclass_correlation


def codes(*values):
    return np.array(values, np.int32)


CODES = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 3)), min_size=2, max_size=40)


@given(CODES)
def test_counts_of_pairs_and_what_determines_what(rows):
    group, value = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    found = associate(group, value)
    filled = [row for row in rows if min(row) >= 0]
    assert found.group_determines_value == (len({g for g, _ in filled}) == len(set(filled)))
    assert found.value_determines_group == (len({v for _, v in filled}) == len(set(filled)))
    pairs = list(combinations(filled, 2))
    assert found.equal_pairs == sum(a == b for a, b in pairs)
    chance = np.mean([[a[1] == b[1] for a in filled] for b in filled]) if filled else 0
    expected = sum(a[0] == b[0] for a, b in pairs) * chance
    assert found.expected_equal_pairs == pytest.approx(expected)


def test_few_and_many_cells_are_counted_alike():
    rng = np.random.default_rng(0)
    group, value = rng.integers(0, 10, 300).astype(np.int32), rng.integers(0, 9, 300)
    few = associate(group, value.astype(np.int32))
    many = associate(group * 1000, (value * 1000).astype(np.int32))
    assert many._replace(agreement=few.agreement) == few
    assert many.agreement == pytest.approx(few.agreement)


def test_agreement_is_one_minus_what_differs_beyond_chance():
    """Ten groups of two rows and two classes as frequent: six agree, so kappa is 0.2."""
    group = np.repeat(np.arange(10), 2).astype(np.int32)
    value = codes(*[0, 0] * 3, *[1, 1] * 3, *[0, 1] * 4)
    assert associate(group, value).agreement.value == pytest.approx((0.6 - 0.5) / (1 - 0.5))


@pytest.mark.parametrize("seed", range(5))
def test_independent_columns_agree_by_chance(seed):
    rng = np.random.default_rng(seed)
    group, value = rng.integers(0, 200, 1000), rng.choice(3, 1000, p=[0.6, 0.3, 0.1])
    agreement = associate(group.astype(np.int32), value.astype(np.int32)).agreement
    assert abs(agreement.value) < 4 * agreement.error < 0.2


def test_one_large_group_is_little_evidence():
    group = codes(*[0] * 500, *range(1, 501))
    value = codes(*[0] * 500, *np.arange(500) % 2)
    agreement = associate(group, value).agreement
    assert agreement.value > 0.5
    assert agreement.error > 0.9 * agreement.value


def test_groups_of_equal_size():
    assert associate(codes(0, 0, 1, 1), codes(0, 1, 0, 1)).has_equal_groups
    assert not associate(codes(0, 0, 1), codes(0, 1, 0)).has_equal_groups
    assert associate(codes(0, 0, 2, 2, -1), codes(0, 1, 0, 1, 1)).has_equal_groups


def test_columns_without_common_rows():
    found = associate(codes(0, -1), codes(-1, 0))
    assert found.equal_pairs == found.expected_equal_pairs == 0
    assert found.agreement.value == 0


def test_correlation_within_groups_depends_on_ranks_only():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(100), 4).astype(np.int32)
    numbers = rng.normal(size=100)[group] + 0.5 * rng.normal(size=400)
    found = intraclass_correlation(group, numbers)
    assert found == pytest.approx(0.8, abs=0.08)
    assert intraclass_correlation(group, np.exp(numbers)) == pytest.approx(found)
    assert abs(intraclass_correlation(group, rng.normal(size=400))) < 0.15
    assert intraclass_correlation(group, np.full(400, np.nan)) == 0
    assert intraclass_correlation(np.arange(400, dtype=np.int32), numbers) == 0
