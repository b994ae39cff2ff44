from functools import partial

import pytest

from annotrace.errors import InputError
from annotrace.registry import Entry, Registry


@pytest.fixture
def registry():
    return Registry("number", Entry("one", int, "a whole one"), Entry("two", complex, "two parts"))


def test_it_is_a_mapping_in_the_order_of_registration(registry):
    assert list(registry) == ["one", "two"]
    assert len(registry) == 2
    assert "one" in registry
    assert "three" not in registry
    assert registry["two"].summary == "two parts"
    assert [entry.name for entry in registry.values()] == ["one", "two"]


def test_instances_are_made_by_name(registry):
    assert registry.make("one", "12", base=3) == 5
    assert registry.make("two", 1, imag=2) == 1 + 2j


def test_an_entry_is_added_or_replaced(registry):
    registry.register(Entry("three", partial(int, base=3), "to the base of three"))
    assert registry.make("three", "12") == 5
    registry.register(Entry("one", float, "a number", "Gauss", 1801))
    assert list(registry) == ["one", "two", "three"]
    assert registry["one"].year == 1801


def test_unknown_names_list_the_known(registry):
    with pytest.raises(InputError, match="There is no number 'four'; there are one, two"):
        registry.make("four")
