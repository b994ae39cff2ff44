import csv
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotrace.labels.formulas import guard_frame, unguard_names, unguard_texts

DANGEROUS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-",
    "-x",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "+1-2",
    "-1e",
    "=-1",
]
HARMLESS = ["-1", "+1.5e3", "-.5", "-3.", "1", "a=1", " =1", "'a'", "'", "", "a\n=1", "é-"]

texts = st.lists(st.text("'=+-@\t\r1.e\na,;\"^$", max_size=6) | st.none(), min_size=1)


@pytest.mark.parametrize("text", DANGEROUS)
def test_formulas_are_guarded(text):
    guarded = guard_frame(pl.DataFrame({text: [text]}))
    assert guarded.columns == ["'" + text]
    assert guarded.item() == "'" + text


@pytest.mark.parametrize("text", HARMLESS)
def test_numbers_and_other_text_stay_as_they_are(text):
    assert guard_frame(pl.DataFrame({text: [text]})).to_dict(as_series=False) == {text: [text]}


def test_a_number_with_a_line_below_is_no_number():
    assert guard_frame(pl.DataFrame({"x": ["-1\n"]})).item() == "'-1\n"


def test_text_that_looks_guarded_gets_another_quote():
    guarded = guard_frame(pl.DataFrame({"x": ["'=1", "''-1", "'-1", None]}))
    assert guarded["x"].to_list() == ["''=1", "'''-1", "''-1", None]


def test_numbers_of_a_frame_stay_numbers():
    frame = pl.DataFrame({"x": [-1, 2], "y": [-0.5, float("-inf")]})
    assert guard_frame(frame).equals(frame)


@given(texts, st.lists(st.text("'=-1^$a", max_size=4), min_size=1, max_size=4, unique=True))
def test_reading_removes_what_writing_has_added(values, names):
    frame = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name in names})
    guarded = guard_frame(frame)
    assert unguard_texts(guarded).rows() == frame.rows()
    assert unguard_names(guarded.columns) == names


@given(texts)
def test_no_cell_begins_a_formula(values):
    written = guard_frame(pl.DataFrame({"x": pl.Series(values, dtype=pl.String)})).write_csv()
    for row in csv.reader(io.StringIO(written, newline="")):
        cell = row[0] if row else ""
        assert not cell.startswith(tuple("=+-@\t\r")) or is_number(cell)


def is_number(text):
    try:
        return float(text) == float(text) and text == text.strip()
    except ValueError:
        return False
