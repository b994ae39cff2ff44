import math

import numpy as np
import pytest

from annotrace.labels.value_kinds import Kind, as_number, is_never_label, is_row_number, kind_of


def kind(*values):
    return kind_of(np.array(values))


@pytest.mark.parametrize(
    ("expected", "values"),
    [
        (Kind.WHOLE, ["12", "-1", "007", "3.0"]),
        (Kind.SCORE, ["0.5", "1", "1,25", ".3"]),
        (Kind.SCORE, ["80 %", "12.5%"]),
        (Kind.SCORE, ["1e-3", "12 s"]),
        (Kind.DATE, ["2024-03-01", "2024-03-01T10:22:11Z", "2024-03-01 10:22:11.5+01:00"]),
        (Kind.DATE, ["1.3.2024", "31.12.2024 10:22"]),
        (Kind.DATE, ["3/1/24", "12/31/2024"]),
        (Kind.DATE, ["3. März 2024", "3 mars 2024", "3 de marzo de 2024", "March 3, 2024"]),
        (Kind.DATE, ["Mon, 4 Mar 2024 10:00:11 GMT"]),
        (Kind.DATE, ["10:22", "00:01:12"]),
        (Kind.DATE, ["20240301", "20231224"]),
        (Kind.URL, ["https://example.org/a b".replace(" ", ""), "s3://bucket/1.jpg"]),
        (Kind.FILE, ["IMG_1.jpg", "photos/2.PNG", "a b.txt"]),
        (Kind.EMAIL, ["ann@example.org", "b.c@x.de"]),
        (Kind.UUID, ["00000000-0000-0000-0000-000000000001"]),
        (Kind.TEXT, ["this is a sentence with words", "and here is another one of them"]),
        (Kind.TEXT, ["x" * 100]),
        (Kind.LIST, ["[]", "['a'\n 'b']", '{"a": 1}']),
        (Kind.NAME, ["cat", "guinea pig", "A-17", "kim", "2024 cat", "class 3"]),
    ],
)
def test_kinds_of_values(expected, values):
    assert kind(*values) is expected


def test_a_single_odd_cell_does_not_change_the_kind():
    dates = [f"2024-01-{day:02}" for day in range(1, 31)]
    assert kind(*dates, "unknown") is Kind.DATE
    assert kind(*dates[:3], "unknown") is Kind.NAME


def test_years_and_long_numbers_are_numbers():
    assert kind("2019", "2020") is Kind.WHOLE
    assert kind("1234.56", "99.1") is Kind.SCORE
    assert kind("20249999", "20240000") is Kind.WHOLE


def test_text_of_any_length_is_looked_at_in_no_time():
    assert kind("." * 100_000, "a." * 100_000) is Kind.TEXT


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), (" -0,5 ", -0.5), ("80 %", 80), ("12s", 12), ("1e3", 1000)]
)
def test_numbers(text, number):
    assert as_number(text) == number


@pytest.mark.parametrize("text", ["", "cat", "1.2.3", "%"])
def test_what_is_no_number(text):
    assert math.isnan(as_number(text))


def test_dates_and_addresses_are_never_labels():
    assert is_never_label("2024-01-01")
    assert is_never_label("https://example.org")
    assert is_never_label("['a' 'b']")
    assert not is_never_label("1")
    assert not is_never_label("very good")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([1, 2, 3], True),
        ([10, 20, 35], True),
        ([3, 1, 2], True),
        ([1710000300, 1710000100, 1710000200], True),
        ([1710000300500, 1710000100900, 1710000200100], True),
        ([17, 3, 99], False),
    ],
)
def test_numbers_of_rows(numbers, expected):
    assert is_row_number(np.array(list(map(str, numbers)))) is expected
