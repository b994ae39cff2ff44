import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotrace.labels.delimited import read_delimited

cells = st.text(st.sampled_from('ab1 ,;\t"\n.NA'), max_size=4)
tables = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=6)
)


@given(tables, st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_cells_are_those_that_were_written(rows, separator, line_end, quote_all):
    header = [f"column {k}" for k in range(len(rows[0]))]
    buffer = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=separator, lineterminator=line_end, quoting=quoting)
    writer.writerows([header, *rows])
    table = read_delimited(buffer.getvalue().encode(), "x.csv")
    assert table.frame.columns == header
    assert [[cell or "" for cell in row] for row in table.frame.rows()] == rows
    assert table.row_numbers.tolist() == list(range(2, len(rows) + 2))


@pytest.mark.parametrize("empty", ["", '""'])
def test_rows_are_numbered_as_a_spreadsheet_does(empty):
    content = f'a,b\n1,2\n\n"x\ny",{empty}\n3,4\n'
    table = read_delimited(content.encode(), "x.csv")
    assert table.row_numbers.tolist() == [2, 4, 5]
    assert table.frame["a"].to_list() == ["1", "x\ny", "3"]


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


def test_quoted_cells_with_separators_and_line_breaks(read):
    table = read('item,worker,label\n"a, b",kim,x\n"c\nd",kim,"say ""y"""\n')
    assert rows(table) == [("a, b", "kim", "x"), ("c\nd", "kim", 'say "y"')]


def test_a_comma_in_a_quoted_header_is_no_separator(read):
    table = read('"left, right";item;kim\nx;a;y\ny;b;x\n')
    assert table.annotators.tolist() == ["left, right", "kim"]


def test_wide_csv(read):
    table = read("image,kim,lee,truth\na,x,,x\nb,,,y\nc,y,x,\n")
    assert rows(table) == [("a", "kim", "x"), ("c", "kim", "y"), ("c", "lee", "x")]
    assert table.truth.tolist() == [0, 1, -1]
    assert table.labels_per_item().tolist() == [1, 0, 2]


def test_wide_csv_with_the_index_of_pandas(read):
    assert rows(read(",kim\na,x\nb,y\n")) == [("a", "kim", "x"), ("b", "kim", "y")]
